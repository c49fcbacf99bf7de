// x86-64 with AVX2 and FMA. Compiled with their flags; called only where the processor has both.
#if defined(__AVX2__)
#include "kernels.inl.hpp"

const likewise::Kernels* likewise::avx2() {
    static constexpr Kernels set = kernels("avx2");
    return &set;
}
#else
#include "layout.hpp"
const likewise::Kernels* likewise::avx2() { return nullptr; }
#endif
