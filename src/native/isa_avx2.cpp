// x86-64 with AVX2 and FMA. Compiled with their flags; called only where the processor has both.
#if defined(__AVX2__)
#include "kernels.inl.hpp"
#include "encoder.inl.hpp"

const likewise::Kernels* likewise::avx2() {
    static constexpr Kernels set = kernels("avx2");
    return &set;
}

const likewise::EncoderKernels* likewise::avx2_encoder() { return &kEncoder; }
#else
#include "encoder.hpp"
const likewise::Kernels* likewise::avx2() { return nullptr; }
const likewise::EncoderKernels* likewise::avx2_encoder() { return nullptr; }
#endif
