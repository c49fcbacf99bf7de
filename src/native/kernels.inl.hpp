// The kernels, written once and compiled once for each instruction set (see isa_*.cpp).
//
// A tile multiplies up to kTokens tokens of a text with up to kPositions positions of a group: all products stay
// in registers over the whole dimension, and leave them only as maxima. Per step of k a tile loads kPositions
// vectors and kTokens scalars and multiplies them all. The panel of a group (16 texts of 16 tokens, 384 float32:
// 393 KB) stays in the second-level cache while every text on the left passes by; a text (24 KB) stays in the first.
#include <algorithm>
#include <chrono>
#include <limits>

#include "layout.hpp"
#include "simd.hpp"
#if defined(__AMX_TILE__)
#include "amx.hpp"
#endif

namespace {

using namespace likewise;

// Accumulators: 6 x 4 of 32 registers with AVX-512, 6 x 1 x 2 of 16 with AVX2, 2 x 1 x 4 of 16 with SSE2.
constexpr int kTokens = kWidth == 16 ? 6 : kWidth == 8 ? 6 : 2;
constexpr int kPositions = kWidth == 16 ? 4 : 1;

// One number format: how k advances, and what a tile's sums mean as cosines.
template <Precision P>
struct Format;

template <>
struct Format<Precision::float32> {
    using Stored = float;
    using Sum = vfloat;
    static constexpr int pack = 1;
    static vfloat multiply(vfloat sum, vfloat a, vfloat b) { return sum + a * b; }
    static vfloat token(const float* p) { return spread(*p); }
    static vfloat panel(const float* p) { return load(p); }
};

template <>
struct Format<Precision::bfloat16> {
    using Stored = uint16_t;
    using Sum = vfloat;
    static constexpr int pack = 2;
    static vfloat multiply(vfloat sum, vint a, vint b) { return dot_bf16(sum, a, b); }
    static vint token(const uint16_t* p) { return word(p); }
    static vint panel(const uint16_t* p) { return load(reinterpret_cast<const int32_t*>(p)); }
    static vint word(const void* p) {
        int32_t pair;
        std::memcpy(&pair, p, sizeof pair);
        return spread(pair);
    }
};

template <>
struct Format<Precision::int8> {
    using Stored = uint8_t;
    using Sum = vint;
    static constexpr int pack = 4;
    static vint multiply(vint sum, vint a, vint b) { return dot_int8(sum, a, b); }
    static vint token(const uint8_t* p) { return Format<Precision::bfloat16>::word(p); }
    static vint panel(const uint8_t* p) { return load(reinterpret_cast<const int32_t*>(p)); }
};

// Products of M tokens with N positions; N * kParts vectors a token.
template <Precision P, int M, int N>
inline void multiply(const typename Format<P>::Stored* tokens, const typename Format<P>::Stored* panel, int64_t stride,
                     typename Format<P>::Sum (&sums)[M][N * kParts]) {
    using F = Format<P>;
    typename F::Sum acc[M][N * kParts] = {};
    const int64_t position = stride * kLanes;
    for (int64_t k = 0; k < stride; k += F::pack) {
        decltype(F::panel(panel)) b[N * kParts];
#pragma GCC unroll 16
        for (int j = 0; j < N; ++j)
#pragma GCC unroll 16
            for (int part = 0; part < kParts; ++part)
                b[j * kParts + part] = F::panel(panel + j * position + k * kLanes + part * kWidth * F::pack);
#pragma GCC unroll 16
        for (int i = 0; i < M; ++i) {
            const auto a = F::token(tokens + i * stride + k);
#pragma GCC unroll 16
            for (int j = 0; j < N * kParts; ++j) acc[i][j] = F::multiply(acc[i][j], a, b[j]);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 16
        for (int j = 0; j < N * kParts; ++j) sums[i][j] = acc[i][j];
}

// Where the maxima of one text and one group are kept while tiles pass: one vector for 16 texts each.
struct Maxima {
    float* columns;             // [g.length][16]
    int32_t* column_places;     // the same, or null
    float* rows;                // [kTokens][16] of the tokens at hand
    int32_t* row_places;        // [kTokens][16], or null
};

// The largest of some values met in order, and where it was: the first of equals stays.
template <bool kPlaces>
struct Best {
    vfloat value;
    vint place;

    Best(vfloat first, int32_t here) : value(first), place(spread(here)) {}

    void meet(vfloat other, vint there) {
        if constexpr (kPlaces) place = other > value ? there : place;
        value = larger(other, value);
    }

    // What was kept earlier comes first.
    void keep(float* best, int32_t* best_place) const {
        if constexpr (kPlaces) store(best_place, value > load(best) ? place : load(best_place));
        store(best, larger(value, load(best)));
    }
};

template <Precision P, bool kPlaces, int M, int N>
void tile(const Rows& rows, int64_t token, const Group& g, int64_t position, int64_t first, const Maxima& best) {
    using F = Format<P>;
    typename F::Sum sums[M][N * kParts];
    multiply<P, M, N>(static_cast<const typename F::Stored*>(rows.tokens) + token * rows.stride,
                      static_cast<const typename F::Stored*>(g.panel) + position * rows.stride * kLanes, rows.stride, sums);
    vfloat cosine[M][N * kParts];
#pragma GCC unroll 16
    for (int j = 0; j < N * kParts; ++j) {
        const int64_t at = (position + j / kParts) * kLanes + j % kParts * kWidth;
#pragma GCC unroll 16
        for (int i = 0; i < M; ++i) {
            if constexpr (P == Precision::int8) {
                const vint exact = sums[i][j] - load(g.sums + at);
                cosine[i][j] = to_float(exact) * load(g.scales + at) * spread(rows.scales[token + i]);
            } else {
                cosine[i][j] = sums[i][j];
            }
        }
        Best<kPlaces> column(cosine[0][j], int32_t(token - first));
#pragma GCC unroll 16
        for (int i = 1; i < M; ++i) column.meet(cosine[i][j], spread(int32_t(token - first + i)));
        column.keep(best.columns + at, best.column_places + at);
    }
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 16
        for (int part = 0; part < kParts; ++part) {
            Best<kPlaces> row(cosine[i][part], int32_t(position));
#pragma GCC unroll 16
            for (int j = 1; j < N; ++j) row.meet(cosine[i][j * kParts + part], spread(int32_t(position + j)));
            row.keep(best.rows + i * kLanes + part * kWidth, best.row_places + i * kLanes + part * kWidth);
        }
}

template <Precision P, bool kPlaces, int M>
void tile_of(int n, const Rows& rows, int64_t token, const Group& g, int64_t position, int64_t first, const Maxima& best) {
    if constexpr (kPositions >= 4) {
        if (n == 4) return tile<P, kPlaces, M, 4>(rows, token, g, position, first, best);
        if (n == 3) return tile<P, kPlaces, M, 3>(rows, token, g, position, first, best);
        if (n == 2) return tile<P, kPlaces, M, 2>(rows, token, g, position, first, best);
    }
    tile<P, kPlaces, M, 1>(rows, token, g, position, first, best);
}

template <Precision P, bool kPlaces>
void tile_of(int m, int n, const Rows& rows, int64_t token, const Group& g, int64_t position, int64_t first,
             const Maxima& best) {
    if constexpr (kTokens >= 6) {
        if (m == 6) return tile_of<P, kPlaces, 6>(n, rows, token, g, position, first, best);
        if (m == 5) return tile_of<P, kPlaces, 5>(n, rows, token, g, position, first, best);
        if (m == 4) return tile_of<P, kPlaces, 4>(n, rows, token, g, position, first, best);
        if (m == 3) return tile_of<P, kPlaces, 3>(n, rows, token, g, position, first, best);
    }
    if (m == 2) return tile_of<P, kPlaces, 2>(n, rows, token, g, position, first, best);
    tile_of<P, kPlaces, 1>(n, rows, token, g, position, first, best);
}

// Size of the next of `left` equal-as-possible pieces of `rest` items.
inline int64_t piece(int64_t rest, int64_t largest) {
    const int64_t left = (rest + largest - 1) / largest;
    return (rest + left - 1) / left;
}

template <Precision P, bool kPlaces>
void score_group(const Rows& rows, int64_t row, const Group& g, float* scratch, Places places, float* out) {
    const int64_t first = rows.offsets[row], last = rows.offsets[row + 1];
    int32_t row_places[kTokens * kLanes] = {};
    Maxima best{scratch, places.of_columns, scratch + g.length * kLanes, row_places};
    constexpr float kNever = -std::numeric_limits<float>::infinity();
    std::fill(best.columns, best.columns + g.length * kLanes, kNever);
    vfloat forward[kParts] = {};
    for (int64_t token = first; token < last;) {
        const int m = int(piece(last - token, kTokens));
        std::fill(best.rows, best.rows + m * kLanes, kNever);
        for (int64_t position = 0; position < g.length;) {
            const int n = int(piece(g.length - position, kPositions));
            tile_of<P, kPlaces>(m, n, rows, token, g, position, first, best);
            position += n;
        }
        for (int i = 0; i < m; ++i)
            for (int part = 0; part < kParts; ++part) forward[part] += load(best.rows + i * kLanes + part * kWidth);
        if constexpr (kPlaces)
            std::copy(row_places, row_places + m * kLanes, places.of_rows + (token - first) * kLanes);
        token += m;
    }
    const vfloat length = spread(float(last - first));
    for (int part = 0; part < kParts; ++part) {
        const int lane = part * kWidth;
        const vint tokens = load(g.tokens + lane);
        vfloat backward{};
        for (int64_t p = 0; p < g.length; ++p)
            backward += tokens > spread(int32_t(p)) ? load(best.columns + p * kLanes + lane) : vfloat{};
        store(out + lane, (forward[part] / length + backward * load(g.inverse + lane)) * 0.5f);
    }
}

void score(Precision p, const Rows& rows, int64_t row, const Group& g, float* scratch, float* out) {
    const Places none{nullptr, nullptr};
    if (p == Precision::float32) return score_group<Precision::float32, false>(rows, row, g, scratch, none, out);
    if (p == Precision::bfloat16) return score_group<Precision::bfloat16, false>(rows, row, g, scratch, none, out);
    score_group<Precision::int8, false>(rows, row, g, scratch, none, out);
}

void score_places(Precision p, const Rows& rows, int64_t row, const Group& g, float* scratch, Places places, float* out) {
    if (p == Precision::bfloat16) return score_group<Precision::bfloat16, true>(rows, row, g, scratch, places, out);
    score_group<Precision::float32, true>(rows, row, g, scratch, places, out);
}

inline float total(vfloat v) {
#if defined(__AVX512F__)
    return _mm512_reduce_add_ps((__m512)v);
#endif
    float sum = 0;
    for (int i = 0; i < kWidth; ++i) sum += v[i];
    return sum;
}

// Dot products of M by N rows, both packed token after token: k runs along the vector.
template <int M, int N>
void block(const float* x, const float* y, int64_t stride, int64_t m, float* out) {
    vfloat acc[M][N] = {};
    for (int64_t k = 0; k < stride; k += kWidth) {
        vfloat b[N];
#pragma GCC unroll 8
        for (int j = 0; j < N; ++j) b[j] = load(y + j * stride + k);
#pragma GCC unroll 8
        for (int i = 0; i < M; ++i) {
            const vfloat a = load(x + i * stride + k);
#pragma GCC unroll 8
            for (int j = 0; j < N; ++j) acc[i][j] += a * b[j];
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < N; ++j) out[i * m + j] = total(acc[i][j]);
}

void cosines(const float* x, int64_t n, const float* y, int64_t m, int64_t stride, float* out) {
    constexpr int kSide = kWidth == 4 ? 2 : 4;
    int64_t i = 0;
    for (; i + kSide <= n; i += kSide) {
        int64_t j = 0;
        for (; j + kSide <= m; j += kSide) block<kSide, kSide>(x + i * stride, y + j * stride, stride, m, out + i * m + j);
        for (; j < m; ++j) block<kSide, 1>(x + i * stride, y + j * stride, stride, m, out + i * m + j);
    }
    for (; i < n; ++i)
        for (int64_t j = 0; j < m; ++j) block<1, 1>(x + i * stride, y + j * stride, stride, m, out + i * m + j);
}

template <int V>
void gather_block(const float* x, int64_t stride, const int64_t* entry, const float* weight, int64_t n, float* out) {
    vfloat acc[V];
#pragma GCC unroll 32
    for (int v = 0; v < V; ++v) acc[v] = load(out + v * kWidth);
    for (int64_t e = 0; e < n; ++e) {
        const vfloat w = spread(weight[e]);
        const float* row = x + entry[e] * stride;
#pragma GCC unroll 32
        for (int v = 0; v < V; ++v) acc[v] += w * load(row + v * kWidth);
    }
#pragma GCC unroll 32
    for (int v = 0; v < V; ++v) store(out + v * kWidth, acc[v]);
}

void gather(const float* x, int64_t stride, const int64_t* entry, const float* weight, int64_t n, float* out) {
    constexpr int kLarge = kWidth == 16 ? 24 : 8;
    int64_t k = 0;
    for (; k + kLarge * kWidth <= stride; k += kLarge * kWidth) gather_block<kLarge>(x + k, stride, entry, weight, n, out + k);
    for (; k + 4 * kWidth <= stride; k += 4 * kWidth) gather_block<4>(x + k, stride, entry, weight, n, out + k);
    for (; k < stride; k += kWidth) gather_block<1>(x + k, stride, entry, weight, n, out + k);
}

template <Precision P>
double peak_of(double seconds) {
    using F = Format<P>;
    using Clock = std::chrono::steady_clock;
    constexpr int kChains = kWidth == 16 ? 24 : 12;
    typename F::Sum acc[kChains] = {};
    typename F::Stored ones[64] = {};
    auto a = F::token(ones), b = F::panel(ones);
    __asm__ volatile("" : "+m"(a), "+m"(b));
    double rounds = 0, spent = 0;
    const auto start = Clock::now();
    do {
        for (int repeat = 0; repeat < 20000; ++repeat) {
#pragma GCC unroll 32
            for (int i = 0; i < kChains; ++i) acc[i] = F::multiply(acc[i], a, b);
#pragma GCC unroll 32
            for (int i = 0; i < kChains; ++i) __asm__ volatile("" : "+x"(acc[i]));
        }
        rounds += 20000;
        spent = std::chrono::duration<double>(Clock::now() - start).count();
    } while (spent < seconds);
    return rounds * kChains * kWidth * F::pack * 2 / spent;
}

double peak(Precision p, double seconds, [[maybe_unused]] bool tiles) {
    if (p == Precision::float32) return peak_of<Precision::float32>(seconds);
#if defined(__AMX_TILE__)
    if (tiles && p == Precision::bfloat16) return amx_peak<Precision::bfloat16>(seconds);
    if (tiles) return amx_peak<Precision::int8>(seconds);
#endif
    if (p == Precision::bfloat16) return peak_of<Precision::bfloat16>(seconds);
    return peak_of<Precision::int8>(seconds);
}

constexpr Kernels kernels(const char* name) { return {name, score, score_places, cosines, gather, peak}; }

}  // namespace
