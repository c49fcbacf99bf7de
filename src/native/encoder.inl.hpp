// The encoder's kernels, written once and compiled once for each instruction set. Included behind kernels.inl.hpp.
//
// A linear layer is the tile of the RCMD kernels with weights for candidates: 6 tokens times 64 output channels
// stay in registers over the whole input, then bias, activation or residual are applied before they are stored.
#include <cmath>

#include "encoder.hpp"

namespace {

// exp(x) for x <= 88; relative error below 1e-6. Coefficients: interpolation of exp at Chebyshev nodes, degree 6.
inline vfloat exponential(vfloat x) {
    x = x > spread(-87.0f) ? x : spread(-87.0f);
    constexpr float kLog2e = 1.44269504088896341f, kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to integers
    const vfloat shifted = x * kLog2e + spread(kRound);
    const vint power = (vint)shifted - (vint)spread(kRound);
    const vfloat whole = shifted - spread(kRound);
    const vfloat r = (x - whole * 0.693145751953125f) - whole * 1.42860682030941723e-6f;
    vfloat p = spread(0.0013942159880561559f);
    p = p * r + spread(0.008375968226539809f);
    p = p * r + spread(0.041666340141410456f);
    p = p * r + spread(0.16666405302631393f);
    p = p * r + spread(0.5000000050019137f);
    p = p * r + spread(1.0000000400388704f);
    p = p * r + spread(1.0f);
    return (vfloat)((vint)p + (power << 23));
}

// erf(x); absolute error below 4e-7. A rational least-squares fit on [0, 3.9], beyond which erf is 1 in float32.
inline vfloat error_function(vfloat x) {
    const vfloat limit = spread(3.9f);
    x = x > limit ? limit : x;
    x = x < -limit ? -limit : x;
    const vfloat z = x * x;
    vfloat p = spread(2.0126181610180538e-08f);
    p = p * z + spread(-1.9800154404947534e-06f);
    p = p * z + spread(0.0001440868800273165f);
    p = p * z + spread(0.0037662615068256855f);
    p = p * z + spread(0.05075112357735634f);
    p = p * z + spread(0.20125225186347961f);
    p = p * z + spread(1.128378987312317f);
    vfloat q = spread(0.0009741095709614456f);
    q = q * z + spread(0.014472438022494316f);
    q = q * z + spread(0.11555156111717224f);
    q = q * z + spread(0.5116854310035706f);
    q = q * z + spread(1.0f);
#if defined(__AVX512F__)
    // A reciprocal of 14 bits and one step of Newton: a division would take as long as all the rest.
    const __m512 guess = _mm512_rcp14_ps((__m512)q), rest = _mm512_fnmadd_ps((__m512)q, guess, _mm512_set1_ps(2));
    vfloat ratio = x * p * (vfloat)_mm512_mul_ps(guess, rest);
    __asm__("" : "+v"(ratio));  // else the compiler fuses this product with the caller's sum in some tiles, not in all
    return ratio;
#else
    return x * p / q;
#endif
}

template <Finish F>
inline vfloat finished(vfloat x, const float* out) {
    if constexpr (F == Finish::residual) return x + load(out);
    if constexpr (F == Finish::relu) return larger(x, vfloat{});
    if constexpr (F == Finish::gelu) return x * 0.5f * (error_function(x * 0.70710678118654752f) + spread(1.0f));
    if constexpr (F == Finish::gelu_tanh) {  // 0.5 x (1 + tanh(u)) = x / (1 + exp(-2 u))
        const vfloat u = (x + x * x * x * 0.044715f) * 0.79788456080286536f;
        vfloat minus = u * -2.0f;
        minus = minus > spread(80.0f) ? spread(80.0f) : minus;
        return x / (exponential(minus) + spread(1.0f));
    }
    return x;
}

// One vector of channels: what their sums mean as numbers, with the bias.
template <Precision P>
struct Channels {
    vfloat bias, scales{}, sums{};

    Channels(const Linear& layer, int64_t channel) : bias(load(layer.bias + channel)) {
        if constexpr (P == Precision::int8) scales = load(layer.scales + channel), sums = load(layer.sums + channel);
    }
    vfloat operator()(typename Format<P>::Sum sum, const Activations& x, int64_t row) const {
        if constexpr (P == Precision::int8)
            return (to_float(sum) * spread(x.scales[row]) + sums * spread(x.lows[row])) * scales + bias;
        else
            return sum + bias;
    }
};

template <Precision P, Finish F, int M, int N>
void linear_tile(const Linear& layer, const Activations& x, int64_t row, int64_t panel, float* out) {
    using Format_ = Format<P>;
    using Stored = typename Format_::Stored;
    typename Format_::Sum sums[M][N * kParts];
    multiply<P, M, N>(static_cast<const Stored*>(x.values) + row * layer.k,
                      static_cast<const Stored*>(layer.panel) + panel * layer.k * kLanes, layer.k, sums);
#pragma GCC unroll 16
    for (int j = 0; j < N * kParts; ++j) {
        const int64_t channel = panel * kLanes + j * kWidth;
        const Channels<P> meant(layer, channel);
#pragma GCC unroll 16
        for (int i = 0; i < M; ++i) {
            float* to = out + (row + i) * layer.n + channel;
            store(to, finished<F>(meant(sums[i][j], x, row + i), to));
        }
    }
}

template <Precision P, Finish F, int M>
void linear_panels(const Linear& layer, const Activations& x, int64_t row, int64_t panel, int n, float* out) {
    if constexpr (kPositions >= 4) {
        if (n == 4) return linear_tile<P, F, M, 4>(layer, x, row, panel, out);
        if (n == 3) return linear_tile<P, F, M, 3>(layer, x, row, panel, out);
        if (n == 2) return linear_tile<P, F, M, 2>(layer, x, row, panel, out);
    }
    linear_tile<P, F, M, 1>(layer, x, row, panel, out);
}

#if defined(__AMX_TILE__)
// 32 tokens times 32 channels, or the last 16 tokens times 64, stay in the tile registers over the whole input. Every
// sum of a token runs over the input in one order, whatever the block, and tokens behind the last are not looked at.
template <Precision P, Finish F, int M>
void amx_block(const Linear& layer, const Activations& x, int64_t row, int64_t rows, int64_t panel, Ahead ahead, float* out) {
    constexpr int N = 4 / M;
    const int64_t k_bytes = layer.row_bytes(), size = k_bytes * kLanes, last = layer.n / kLanes - 1;
    const char* const a = static_cast<const char*>(x.values) + row * k_bytes;
    const char* b[N];  // behind the last panel it is met again, and not stored
    for (int j = 0; j < N; ++j) b[j] = static_cast<const char*>(layer.panel) + std::min(panel + j, last) * size;
    alignas(64) typename Format<P>::Sum sums[4][kRowsATile];
    if constexpr (P == Precision::float32 && M == 2) amx_split_two_by_two(a, b, k_bytes, ahead, sums);
    else if constexpr (P == Precision::float32) amx_split_one_by_four(a, b, k_bytes, ahead, sums);
    else if constexpr (M == 2) amx_two_by_two<P>(a, b, k_bytes, ahead, sums);
    else amx_one_by_four<P>(a, b, k_bytes, ahead, sums);
    for (int tile = 0; tile < 4; ++tile) {
        const int64_t first = row + tile / N * kRowsATile, channel = (panel + tile % N) * kLanes;
        if (channel >= layer.n) continue;
        const int64_t count = std::min(rows - first, kRowsATile);
        const Channels<P> meant(layer, channel);
        for (int64_t i = 0; i < count; ++i) {
            float* to = out + (first + i) * layer.n + channel;
            store(to, finished<F>(meant(sums[tile][i], x, first + i), to));
        }
    }
}

template <Precision P, Finish F>
void amx_linear(const Linear& layer, const Activations& x, int64_t rows, float* out, Panels panels) {
    const Tiles tiles;
    const int64_t pairs = rows <= kRowsATile ? 0 : (rows + kRowsATile - 1) / 2 / kRowsATile;
    const int64_t size = layer.row_bytes() * kLanes, steps = size / 1024 / (layer.split ? 3 : 1);
    const char* const end = static_cast<const char*>(layer.panel) + panels.to * size;
    // Each block fetches its share of the panels that come next.
    const auto ahead = [&](int64_t panel, int64_t n, int64_t block, int64_t blocks) {
        const int64_t lines = (n * size / 64 + blocks * steps - 1) / (blocks * steps);
        const char* const from = static_cast<const char*>(layer.panel) + (panel + n) * size + block * steps * lines * 64;
        return Ahead{from, from + steps * lines * 64 <= end ? lines : 0};
    };
    for (int64_t panel = panels.from; pairs && panel < panels.to; panel += 2)
        for (int64_t pair = 0; pair < pairs; ++pair)
            amx_block<P, F, 2>(layer, x, pair * 2 * kRowsATile, rows, panel, ahead(panel, 2, pair, pairs), out);
    const int64_t row = pairs * 2 * kRowsATile;
    for (int64_t panel = panels.from; row < rows && panel < panels.to; panel += 4)
        amx_block<P, F, 1>(layer, x, row, rows, panel, ahead(panel, 4, 0, 1), out);
}
#endif

template <Precision P, Finish F>
void linear_of(const Linear& layer, const Activations& x, int64_t rows, float* out, Panels panels) {
#if defined(__AMX_TILE__)
    return amx_linear<P, F>(layer, x, rows, out, panels);
#else
    for (int64_t panel = panels.from; panel < panels.to;) {
        const int n = int(piece(panels.to - panel, kPositions));
        for (int64_t row = 0; row < rows;) {
            const int m = int(piece(rows - row, kTokens));
            if constexpr (kTokens >= 6) {
                if (m == 6) linear_panels<P, F, 6>(layer, x, row, panel, n, out);
                if (m == 5) linear_panels<P, F, 5>(layer, x, row, panel, n, out);
                if (m == 4) linear_panels<P, F, 4>(layer, x, row, panel, n, out);
                if (m == 3) linear_panels<P, F, 3>(layer, x, row, panel, n, out);
            }
            if (m == 2) linear_panels<P, F, 2>(layer, x, row, panel, n, out);
            if (m == 1) linear_panels<P, F, 1>(layer, x, row, panel, n, out);
            row += m;
        }
        panel += n;
    }
#endif
}

template <Precision P>
void linear_in(const Linear& layer, const Activations& x, int64_t rows, float* out, Finish finish, Panels panels) {
    switch (finish) {
        case Finish::bias: return linear_of<P, Finish::bias>(layer, x, rows, out, panels);
        case Finish::residual: return linear_of<P, Finish::residual>(layer, x, rows, out, panels);
        case Finish::gelu: return linear_of<P, Finish::gelu>(layer, x, rows, out, panels);
        case Finish::gelu_tanh: return linear_of<P, Finish::gelu_tanh>(layer, x, rows, out, panels);
        case Finish::relu: return linear_of<P, Finish::relu>(layer, x, rows, out, panels);
    }
}

void linear(const Linear& layer, const Activations& x, int64_t rows, float* out, Finish finish, Panels panels) {
    if (layer.precision == Precision::float32) return linear_in<Precision::float32>(layer, x, rows, out, finish, panels);
    if (layer.precision == Precision::bfloat16) return linear_in<Precision::bfloat16>(layer, x, rows, out, finish, panels);
    linear_in<Precision::int8>(layer, x, rows, out, finish, panels);
}

void to_bfloat16(const float* x, int64_t n, uint16_t* out) {
    int64_t k = 0;
#if defined(__AVX512F__)
    for (; k + 16 <= n; k += 16) _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + k), (__m256i)_mm512_cvtneps_pbh((__m512)load(x + k)));
#endif
    for (; k < n; ++k) {
        uint32_t bits;
        std::memcpy(&bits, x + k, sizeof bits);
        out[k] = uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
    }
}

// Of each 32 inputs the three bfloat16 parts, which add up to the float32: each is the next 8 bits.
void to_parts(const float* x, int64_t n, uint16_t* out) {
    for (int64_t k = 0; k < n; k += 16) {
        float rest[16];
        std::copy(x + k, x + k + 16, rest);
        for (int part = 0; part < 3; ++part) {
            uint16_t* const to = out + k / kSplit * 3 * kSplit + part * kSplit + k % kSplit;
            to_bfloat16(rest, 16, to);
            for (int i = 0; i < 16; ++i) {
                const uint32_t bits = uint32_t(to[i]) << 16;
                float own;
                std::memcpy(&own, &bits, sizeof own);
                rest[i] -= own;
            }
        }
    }
}

inline float largest(vfloat v) {
#if defined(__AVX512F__)
    return _mm512_reduce_max_ps((__m512)v);
#endif
    float most = v[0];
    for (int i = 1; i < kWidth; ++i) most = v[i] > most ? v[i] : most;
    return most;
}

// Codes 0 to 255 over the range of a row: x is about scale * code + low.
void to_codes(const Linear& layer, const float* x, uint8_t* out, float* scale, float* low, float* moved) {
    vfloat most = spread(-3.4e38f), least = spread(-3.4e38f);
    for (int64_t k = 0; k < layer.inputs; k += kWidth) {
        vfloat v = load(x + k);
        if (layer.smooth) v = (v - load(layer.shift + k)) * load(layer.smooth + k);
        store(moved + k, v);
        most = larger(most, v);
        least = larger(least, -v);
    }
    const float high = largest(most), bottom = -largest(least), range = high - bottom;
    *low = bottom;
    *scale = range / 255;
    const vfloat inverse = spread(range > 0 ? 255 / range : 0), base = spread(bottom);
    for (int64_t k = 0; k < layer.inputs; k += kWidth) {
        const vint code = __builtin_convertvector((load(moved + k) - base) * inverse + spread(0.5f), vint);
#if defined(__AVX512F__)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out + k), _mm512_cvtusepi32_epi8((__m512i)code));
#else
        for (int i = 0; i < kWidth; ++i) out[k + i] = uint8_t(code[i]);
#endif
    }
}

void convert(const Linear& layer, const float* x, int64_t rows, void* values, float* scales, float* lows) {
    const int64_t bytes = layer.row_bytes(), used = layer.inputs * bytes / layer.k / 64 * 64;
    std::vector<float> moved(static_cast<size_t>(layer.inputs));
#if defined(__AMX_TILE__)
    std::vector<uint8_t> line(static_cast<size_t>(bytes));
#endif
    for (int64_t row = 0; row < rows; ++row, x += layer.inputs) {
#if defined(__AMX_TILE__)
        uint8_t* to = line.data();
#else
        uint8_t* to = static_cast<uint8_t*>(values) + row * bytes;
#endif
        std::fill(to + (layer.split ? used / 192 * 192 : used), to + bytes, uint8_t(0));
        if (layer.split) to_parts(x, layer.inputs, reinterpret_cast<uint16_t*>(to));
        else if (layer.precision == Precision::bfloat16) to_bfloat16(x, layer.inputs, reinterpret_cast<uint16_t*>(to));
        else to_codes(layer, x, to, scales + row, lows + row, moved.data());
#if defined(__AMX_TILE__)
        uint8_t* const tile = static_cast<uint8_t*>(values) + row / kRowsATile * kRowsATile * bytes + row % kRowsATile * 64;
        for (int64_t at = 0; at < bytes; at += 64) std::memcpy(tile + at * kRowsATile, to + at, 64);
#endif
    }
}

void normalise(float* x, int64_t rows, int64_t n, const float* weight, const float* bias, float epsilon) {
    for (int64_t row = 0; row < rows; ++row, x += n) {
        vfloat sum{}, square{};
        for (int64_t k = 0; k < n; k += kWidth) sum += load(x + k);
        const float mean = total(sum) / float(n);
        for (int64_t k = 0; k < n; k += kWidth) {
            const vfloat away = load(x + k) - spread(mean);
            square += away * away;
        }
        const float scale = 1 / std::sqrt(total(square) / float(n) + epsilon);
        for (int64_t k = 0; k < n; k += kWidth)
            store(x + k, (load(x + k) - spread(mean)) * scale * load(weight + k) + load(bias + k));
    }
}

// Up to 16 rows of 16 numbers as columns; zeros stand for rows behind the last.
inline void turn(const float* x, int64_t step, int64_t rows, float* out, int64_t out_step) {
#if defined(__AVX512F__)
    __m512 v[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) v[i] = i < rows ? _mm512_loadu_ps(x + i * step) : _mm512_setzero_ps();
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
#pragma GCC unroll 4
    for (int s = 1; s < 16; s *= 2) {  // swap the halves off the diagonal of every block of 2 s by 2 s
        const __mmask16 upper = _mm512_test_epi32_mask(lane, _mm512_set1_epi32(s));
        const __m512i near = _mm512_mask_add_epi32(lane, upper, lane, _mm512_set1_epi32(16 - s));
        const __m512i far = _mm512_mask_add_epi32(_mm512_add_epi32(lane, _mm512_set1_epi32(s)), upper, lane, _mm512_set1_epi32(16));
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i)
            if (!(i & s)) {
                const __m512 a = v[i], b = v[i + s];
                v[i] = _mm512_permutex2var_ps(a, near, b);
                v[i + s] = _mm512_permutex2var_ps(a, far, b);
            }
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) _mm512_storeu_ps(out + i * out_step, v[i]);
#else
    for (int j = 0; j < 16; ++j)
        for (int i = 0; i < 16; ++i) out[i * out_step + j] = j < rows ? x[j * step + i] : 0;
#endif
}

// Scores of Q queries with all keys, [Q][keys], then their softmax; then the weighted sum of the values.
template <int Q>
void attend_rows(const float* qkv, int64_t length, int64_t hidden, int64_t head_dim, const float* turned, int64_t keys,
                 const float* distance, int64_t first, float* scores, float* out) {
    const int64_t step = 3 * hidden;
    const float scale = 1 / std::sqrt(float(head_dim));
    for (int64_t j = 0; j < keys; j += kWidth) {
        vfloat acc[Q] = {};
        for (int64_t d = 0; d < head_dim; ++d) {
            const vfloat key = load(turned + d * keys + j);
#pragma GCC unroll 8
            for (int i = 0; i < Q; ++i) acc[i] += spread(qkv[(first + i) * step + d]) * key;
        }
#pragma GCC unroll 8
        for (int i = 0; i < Q; ++i) {
            acc[i] *= scale;
            if (distance)
                for (int lane = 0; lane < kWidth; ++lane)
                    if (j + lane < length) acc[i][lane] += distance[j + lane - (first + i)];
            store(scores + i * keys + j, acc[i]);
        }
    }
    float inverse[Q];
    for (int i = 0; i < Q; ++i) {
        float* line = scores + i * keys;
        std::fill(line + length, line + keys, -1e30f);
        vfloat most = load(line);
        for (int64_t j = kWidth; j < keys; j += kWidth) most = larger(most, load(line + j));
        const vfloat top = spread(largest(most));
        vfloat sum{};
        for (int64_t j = 0; j < keys; j += kWidth) {
            const vfloat e = exponential(load(line + j) - top);
            store(line + j, e);
            sum += e;
        }
        inverse[i] = 1 / total(sum);  // positions behind the text add exp(-87), nothing beside the largest's 1
    }
    for (int64_t d = 0; d < head_dim; d += kWidth) {
        vfloat acc[Q] = {};
        for (int64_t j = 0; j < length; ++j) {
            const vfloat value = load(qkv + j * step + 2 * hidden + d);
#pragma GCC unroll 8
            for (int i = 0; i < Q; ++i) acc[i] += spread(scores[i * keys + j]) * value;
        }
#pragma GCC unroll 8
        for (int i = 0; i < Q; ++i) store(out + (first + i) * hidden + d, acc[i] * inverse[i]);
    }
}

void attend(const float* qkv, int64_t length, int64_t hidden, int64_t heads, const float* distance, int64_t reach,
            float* scratch, float* out) {
    const int64_t head_dim = hidden / heads, keys = (length + kAlign - 1) / kAlign * kAlign;
    float *turned = scratch, *scores = scratch + keys * head_dim;
    for (int64_t head = 0; head < heads; ++head) {
        const float* own = qkv + head * head_dim;
        for (int64_t j = 0; j < keys; j += 16)
            for (int64_t d = 0; d < head_dim; d += 16)
                turn(own + j * 3 * hidden + hidden + d, 3 * hidden, std::min<int64_t>(length - j, 16), turned + d * keys + j, keys);
        const float* bias = distance ? distance + head * (2 * reach - 1) + reach - 1 : nullptr;
        float* to = out + head * head_dim;
        int64_t first = 0;
        if constexpr (kWidth == 16)
            for (; first + 8 <= length; first += 8)
                attend_rows<8>(own, length, hidden, head_dim, turned, keys, bias, first, scores, to);
        for (; first + 4 <= length; first += 4)
            attend_rows<4>(own, length, hidden, head_dim, turned, keys, bias, first, scores, to);
        for (; first + 2 <= length; first += 2)
            attend_rows<2>(own, length, hidden, head_dim, turned, keys, bias, first, scores, to);
        for (; first < length; ++first) attend_rows<1>(own, length, hidden, head_dim, turned, keys, bias, first, scores, to);
    }
}

#if defined(__AMX_TILE__)
constexpr bool kSplits = true;
#else
constexpr bool kSplits = false;
#endif
constexpr EncoderKernels kEncoder = {kSplits, linear, convert, normalise, attend};

}  // namespace
