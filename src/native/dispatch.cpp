// Which instruction set runs.
#include <atomic>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

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

// Tiles, their bfloat16 and their int8; and a system that keeps their state and lets this process use it. Linux
// wants to be asked, once for all threads; it declines where a thread's signal stack is too small for the state.
bool ask_for_amx() {
#if defined(__x86_64__) && defined(__linux__)
    unsigned a = 0, b = 0, c = 0, d = 0, low = 0, high = 0;
    constexpr unsigned kFeatures = 1u << 22 | 1u << 24 | 1u << 25, kState = 1u << 17 | 1u << 18;
    if (!has_avx512() || !amx() || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & kFeatures) != kFeatures) return false;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));  // AVX-512 says that there is this instruction
    constexpr long kRequestPermission = 0x1023, kTileData = 18;
    return (low & kState) == kState && !syscall(SYS_arch_prctl, kRequestPermission, kTileData);
#else
    return false;
#endif
}

bool has_amx() {
    static const bool granted = ask_for_amx();
    return granted;
}

const Kernels* best() { return has_amx() ? amx() : has_avx512() ? avx512() : has_avx2() ? avx2() : &portable(); }

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
                         : name == "amx" && has_amx()          ? amx()
                                                               : nullptr;
    if (set) chosen = set;
    return set;
}

std::vector<std::string> available() {
    std::vector<std::string> names{"portable"};
    if (has_avx2()) names.push_back("avx2");
    if (has_avx512()) names.push_back("avx512");
    if (has_amx()) names.push_back("amx");
    return names;
}

}  // namespace likewise
