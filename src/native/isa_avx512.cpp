// x86-64 with AVX-512, its VNNI and its BF16. Compiled with their flags; called only where the processor has all.
#if defined(__AVX512F__)
#include "kernels.inl.hpp"
#include "encoder.inl.hpp"

const likewise::Kernels* likewise::avx512() {
    static constexpr Kernels set = kernels("avx512");
    return &set;
}

const likewise::EncoderKernels* likewise::avx512_encoder() { return &kEncoder; }
#else
#include "encoder.hpp"
const likewise::Kernels* likewise::avx512() { return nullptr; }
const likewise::EncoderKernels* likewise::avx512_encoder() { return nullptr; }
#endif
