// Which instruction set runs.
#include <atomic>

#include "rcmd.hpp"

namespace likewise {
namespace {

bool has_avx2() {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && avx2();
#else
    return false;
#endif
}

bool has_avx512() {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni") &&
           __builtin_cpu_supports("avx512bf16") && avx512();
#else
    return false;
#endif
}

const Kernels* best() { return has_avx512() ? avx512() : has_avx2() ? avx2() : &portable(); }

std::atomic<const Kernels*> chosen{nullptr};

}  // namespace

const Kernels& active() {
    if (!chosen) chosen = best();
    return *chosen;
}

bool use(const std::string& name) {
    const Kernels* set = name.empty() ? best()
                         : name == "portable"                  ? &portable()
                         : name == "avx2" && has_avx2()        ? avx2()
                         : name == "avx512" && has_avx512()    ? avx512()
                                                               : nullptr;
    if (set) chosen = set;
    return set;
}

std::vector<std::string> available() {
    std::vector<std::string> names{"portable"};
    if (has_avx2()) names.push_back("avx2");
    if (has_avx512()) names.push_back("avx512");
    return names;
}

}  // namespace likewise
