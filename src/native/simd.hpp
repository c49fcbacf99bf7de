// The few vector operations that the kernels need, for one instruction set.
//
// Included by each isa_*.cpp, which is compiled with the flags of its instruction set; everything is in an
// anonymous namespace, so that no function compiled for one set can be linked into another.
// GCC and Clang vector types carry the arithmetic; intrinsics stand only where those types have no word.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX2__) || defined(__AVX512F__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace {

#if defined(__AVX512F__)
constexpr int kWidth = 16;  // floats in a vector
#elif defined(__AVX2__)
constexpr int kWidth = 8;
#else
constexpr int kWidth = 4;  // SSE2, NEON
#endif

constexpr int kLanes = 16;              // texts in a group, whatever the vector width
constexpr int kParts = kLanes / kWidth;  // vectors that hold one value for each text of a group

typedef float vfloat __attribute__((vector_size(kWidth * 4)));
typedef int32_t vint __attribute__((vector_size(kWidth * 4)));

inline vfloat load(const float* p) {
    vfloat v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

inline vint load(const int32_t* p) {
    vint v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

template <class V, class T>
inline void store(T* p, V v) {
    std::memcpy(p, &v, sizeof v);
}

inline vfloat spread(float x) { return x - vfloat{}; }
inline vint spread(int32_t x) { return x - vint{}; }
inline vfloat to_float(vint x) { return __builtin_convertvector(x, vfloat); }

inline vfloat larger(vfloat a, vfloat b) {
#if defined(__AVX512F__)
    return (vfloat)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
    return (vfloat)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
    return (vfloat)_mm_max_ps((__m128)a, (__m128)b);
#else
    return a > b ? a : b;
#endif
}

// Two bfloat16 products a lane, summed in float32. `a` is one pair of bfloat16, the same for all lanes.
inline vfloat dot_bf16(vfloat acc, vint a, vint b) {
#if defined(__AVX512F__)
    // Inline assembly: GCC 12 copies the accumulator around the intrinsic and halves the rate.
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(acc) : "v"(a), "v"(b));
    return acc;
#else
    const vint high = spread(int32_t(0xffff0000));
    acc += (vfloat)(a << 16) * (vfloat)(b << 16);
    acc += (vfloat)(a & high) * (vfloat)(b & high);
    return acc;
#endif
}

// Four products a lane of unsigned bytes `a` (the same for all lanes) and signed bytes `b`, summed in int32.
inline vint dot_int8(vint acc, vint a, vint b) {
#if defined(__AVX512F__)
    __asm__("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(a), "v"(b));
    return acc;
#else
    // 16-bit halves of each lane: bytes 0 and 2, then bytes 1 and 3.
    const vint low = spread(0x00ff00ff);
    const vint a_even = a & low, a_odd = (a >> 8) & low;
#if defined(__AVX2__)
    const __m256i b_even = _mm256_srai_epi16(_mm256_slli_epi16((__m256i)b, 8), 8), b_odd = _mm256_srai_epi16((__m256i)b, 8);
    acc += (vint)_mm256_madd_epi16((__m256i)a_even, b_even);
    acc += (vint)_mm256_madd_epi16((__m256i)a_odd, b_odd);
    return acc;
#elif defined(__SSE2__)
    const __m128i b_even = _mm_srai_epi16(_mm_slli_epi16((__m128i)b, 8), 8), b_odd = _mm_srai_epi16((__m128i)b, 8);
    acc += (vint)_mm_madd_epi16((__m128i)a_even, b_even);
    acc += (vint)_mm_madd_epi16((__m128i)a_odd, b_odd);
    return acc;
#else
    acc += (a_even & 0xffff) * ((b << 24) >> 24);
    acc += (a_even >> 16) * ((b << 8) >> 24);
    acc += (a_odd & 0xffff) * ((b << 16) >> 24);
    acc += (a_odd >> 16) * (b >> 24);
    return acc;
#endif
#endif
}

}  // namespace
