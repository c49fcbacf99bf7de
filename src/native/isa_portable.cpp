// Any processor: SSE2 on x86-64, NEON on ARM, through the compiler's vector types.
#include "kernels.inl.hpp"
#include "encoder.inl.hpp"

const likewise::Kernels& likewise::portable() {
    static constexpr Kernels set = kernels("portable");
    return set;
}

const likewise::EncoderKernels& likewise::portable_encoder() { return kEncoder; }
