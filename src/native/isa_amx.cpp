// AVX-512 and the tile registers of Intel's AMX. Compiled with their flags; called only where the processor has all.
#if defined(__AMX_TILE__)
#include "kernels.inl.hpp"
#include "encoder.inl.hpp"

const likewise::Kernels* likewise::amx() {
    static constexpr Kernels set = kernels("amx");
    return &set;
}

const likewise::EncoderKernels* likewise::amx_encoder() { return &kEncoder; }
#else
#include "encoder.hpp"
const likewise::Kernels* likewise::amx() { return nullptr; }
const likewise::EncoderKernels* likewise::amx_encoder() { return nullptr; }
#endif
