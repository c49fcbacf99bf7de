// Intel's tile registers: eight of 16 rows of 64 bytes, and products of whole tiles.
//
// A tile of a layer's panel is 1 KB as it lies in memory (16 pairs or quads of the input by 16 channels), a tile of
// activations 64 bytes of 16 rows. Inline assembly with a memory clobber: the intrinsics of GCC 12 have none, and
// stores may pass them.
#pragma once

#include <chrono>
#include <cstdint>

#include "layout.hpp"
#include "simd.hpp"

namespace {

// Tile registers of one thread, all of full size, as long as this lives.
class Tiles {
public:
    Tiles() {
        struct alignas(64) {
            uint8_t palette = 1, start = 0, reserved[14] = {};
            uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
            uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
        } form;
        __asm__ volatile("ldtilecfg %0" : : "m"(form));
    }
    ~Tiles() { __asm__ volatile("tilerelease"); }
    Tiles(const Tiles&) = delete;
};

#define AMX_ZERO(tile) __asm__ volatile("tilezero %%tmm" #tile : : )
#define AMX_LOAD(tile, from) \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile : : "r"(from), "r"(int64_t(64)) : "memory")
#define AMX_STORE(tile, to) \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" : : "r"(to), "r"(int64_t(64)) : "memory")
// The four tiles of sums, before and after their products.
#define AMX_BEGIN() \
    AMX_ZERO(0);    \
    AMX_ZERO(1);    \
    AMX_ZERO(2);    \
    AMX_ZERO(3)
#define AMX_END(sums)      \
    AMX_STORE(0, sums[0]); \
    AMX_STORE(1, sums[1]); \
    AMX_STORE(2, sums[2]); \
    AMX_STORE(3, sums[3])
// sum += a * b: pairs of bfloat16, or quads of unsigned and signed bytes.
#define AMX_DOT(sum, a, b)                                                                         \
    if constexpr (P == likewise::Precision::bfloat16)                                              \
        __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sum : : );                   \
    else                                                                                           \
        __asm__ volatile("tdpbusd %%tmm" #b ", %%tmm" #a ", %%tmm" #sum : : )

// What is needed next, on its way to the second-level cache while something else is multiplied.
struct Ahead {
    const char* from;
    int64_t lines;  // a step

    void fetch() {
        for (int64_t line = 0; line < lines; ++line, from += 64) __builtin_prefetch(from, 0, 2);
    }
};

// 32 rows of activations, k_bytes each, with two panels: sums of rows 0 to 15 with either, then of 16 to 31.
template <likewise::Precision P, class Sum>
inline void amx_two_by_two(const char* a, const char* const (&b)[2], int64_t k_bytes, Ahead ahead, Sum (&sums)[4][16]) {
    AMX_BEGIN();
    const char* const lower = a + 16 * k_bytes;
    for (int64_t k = 0; k < 16 * k_bytes; k += 1024) {
        ahead.fetch();
        AMX_LOAD(4, a + k);
        AMX_LOAD(6, b[0] + k);
        AMX_DOT(0, 4, 6);
        AMX_LOAD(7, b[1] + k);
        AMX_DOT(1, 4, 7);
        AMX_LOAD(5, lower + k);
        AMX_DOT(2, 5, 6);
        AMX_DOT(3, 5, 7);
    }
    AMX_END(sums);
}

// 16 rows with four panels.
template <likewise::Precision P, class Sum>
inline void amx_one_by_four(const char* a, const char* const (&b)[4], int64_t k_bytes, Ahead ahead, Sum (&sums)[4][16]) {
    AMX_BEGIN();
    for (int64_t k = 0; k < 16 * k_bytes; k += 1024) {
        ahead.fetch();
        AMX_LOAD(4, a + k);
        AMX_LOAD(5, b[0] + k);
        AMX_DOT(0, 4, 5);
        AMX_LOAD(6, b[1] + k);
        AMX_DOT(1, 4, 6);
        AMX_LOAD(7, b[2] + k);
        AMX_DOT(2, 4, 7);
        AMX_LOAD(5, b[3] + k);
        AMX_DOT(3, 4, 5);
    }
    AMX_END(sums);
}

// float32 from bfloat16: x = x0 + x1 + x2, each part the next 8 bits, so that a product of two numbers is the sum of
// nine, of which the three smallest are below float32's own rounding. The six others are taken, the smallest part of
// the row first: x2 w0, x1 w1, x1 w0, x0 w2, x0 w1, x0 w0. Rows and panels hold the parts of 32 inputs side by side.
#define AMX_PART(tile, from, part) AMX_LOAD(tile, (from) + k + (part) * 1024)

// As amx_two_by_two, k_bytes for all parts of a row.
inline void amx_split_two_by_two(const char* a, const char* const (&b)[2], int64_t k_bytes, Ahead ahead, vfloat (&sums)[4][16]) {
    constexpr auto P = likewise::Precision::bfloat16;
    AMX_BEGIN();
    const char* const lower = a + 16 * k_bytes;
    for (int64_t k = 0; k < 16 * k_bytes; k += 3 * 1024) {
        ahead.fetch();
#define AMX_PARTS(part)      \
    AMX_PART(6, b[0], part); \
    AMX_DOT(0, 4, 6);        \
    AMX_DOT(2, 5, 6);        \
    AMX_PART(7, b[1], part); \
    AMX_DOT(1, 4, 7);        \
    AMX_DOT(3, 5, 7)
        AMX_PART(4, a, 2);
        AMX_PART(5, lower, 2);
        AMX_PARTS(0);
        AMX_PART(4, a, 1);
        AMX_PART(5, lower, 1);
        AMX_PARTS(1);
        AMX_PARTS(0);
        AMX_PART(4, a, 0);
        AMX_PART(5, lower, 0);
        AMX_PARTS(2);
        AMX_PARTS(1);
        AMX_PARTS(0);
#undef AMX_PARTS
    }
    AMX_END(sums);
}

// As amx_one_by_four.
inline void amx_split_one_by_four(const char* a, const char* const (&b)[4], int64_t k_bytes, Ahead ahead, vfloat (&sums)[4][16]) {
    constexpr auto P = likewise::Precision::bfloat16;
    AMX_BEGIN();
    for (int64_t k = 0; k < 16 * k_bytes; k += 3 * 1024) {
        ahead.fetch();
#define AMX_PARTS(part)      \
    AMX_PART(5, b[0], part); \
    AMX_DOT(0, 4, 5);        \
    AMX_PART(6, b[1], part); \
    AMX_DOT(1, 4, 6);        \
    AMX_PART(7, b[2], part); \
    AMX_DOT(2, 4, 7);        \
    AMX_PART(5, b[3], part); \
    AMX_DOT(3, 4, 5)
        AMX_PART(4, a, 2);
        AMX_PARTS(0);
        AMX_PART(4, a, 1);
        AMX_PARTS(1);
        AMX_PARTS(0);
        AMX_PART(4, a, 0);
        AMX_PARTS(2);
        AMX_PARTS(1);
        AMX_PARTS(0);
#undef AMX_PARTS
    }
    AMX_END(sums);
}

template <likewise::Precision P>
double amx_peak(double seconds) {
    using Clock = std::chrono::steady_clock;
    const Tiles tiles;
    double rounds = 0, spent = 0;
    const auto start = Clock::now();
    do {
        for (int repeat = 0; repeat < 5000; ++repeat) {
            AMX_DOT(0, 4, 6);
            AMX_DOT(1, 4, 7);
            AMX_DOT(2, 5, 6);
            AMX_DOT(3, 5, 7);
        }
        rounds += 5000;
        spent = std::chrono::duration<double>(Clock::now() - start).count();
    } while (spent < seconds);
    return rounds * 4 * 16 * 16 * (64 / likewise::bytes_of(P)) * 2 / spent;
}

#undef AMX_PART
#undef AMX_BEGIN
#undef AMX_END
#undef AMX_ZERO
#undef AMX_LOAD
#undef AMX_STORE
#undef AMX_DOT

}  // namespace
