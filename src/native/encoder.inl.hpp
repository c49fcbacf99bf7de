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
    return x * p / q;
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
#pragma GCC unroll 16
        for (int i = 0; i < M; ++i) {
            float* to = out + (row + i) * layer.n + channel;
            vfloat value;
            if constexpr (P == Precision::int8) {
                const vfloat codes = to_float(sums[i][j]) * spread(x.scales[row + i]) + load(layer.sums + channel) * spread(x.lows[row + i]);
                value = codes * load(layer.scales + channel) + load(layer.bias + channel);
            } else {
                value = sums[i][j] + load(layer.bias + channel);
            }
            store(to, finished<F>(value, to));
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

template <Precision P, Finish F>
void linear_of(const Linear& layer, const Activations& x, int64_t rows, float* out) {
    const int64_t panels = layer.n / kLanes;
    for (int64_t panel = 0; panel < panels;) {
        const int n = int(piece(panels - panel, kPositions));
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
}

template <Precision P>
void linear_in(const Linear& layer, const Activations& x, int64_t rows, float* out, Finish finish) {
    switch (finish) {
        case Finish::bias: return linear_of<P, Finish::bias>(layer, x, rows, out);
        case Finish::residual: return linear_of<P, Finish::residual>(layer, x, rows, out);
        case Finish::gelu: return linear_of<P, Finish::gelu>(layer, x, rows, out);
        case Finish::gelu_tanh: return linear_of<P, Finish::gelu_tanh>(layer, x, rows, out);
        case Finish::relu: return linear_of<P, Finish::relu>(layer, x, rows, out);
    }
}

void linear(const Linear& layer, const Activations& x, int64_t rows, float* out, Finish finish) {
    if (layer.precision == Precision::float32) return linear_in<Precision::float32>(layer, x, rows, out, finish);
    if (layer.precision == Precision::bfloat16) return linear_in<Precision::bfloat16>(layer, x, rows, out, finish);
    linear_in<Precision::int8>(layer, x, rows, out, finish);
}

void to_bfloat16(const float* x, int64_t n, uint16_t* out) {
    for (int64_t k = 0; k < n; ++k) {
        uint32_t bits;
        std::memcpy(&bits, x + k, sizeof bits);
        out[k] = uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
    }
}

inline float largest(vfloat v) {
    float most = v[0];
    for (int i = 1; i < kWidth; ++i) most = v[i] > most ? v[i] : most;
    return most;
}

// Codes 0 to 255 over the range of a row: x is about scale * code + low.
void to_codes(const Linear& layer, const float* x, uint8_t* out, float* scale, float* low, float* moved) {
    vfloat most = spread(-3.4e38f), least = spread(-3.4e38f);
    for (int64_t k = 0; k < layer.k; k += kWidth) {
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
    for (int64_t k = 0; k < layer.k; k += kWidth) {
        const vint code = __builtin_convertvector((load(moved + k) - base) * inverse + spread(0.5f), vint);
#if defined(__AVX512F__)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out + k), _mm512_cvtusepi32_epi8((__m512i)code));
#else
        for (int i = 0; i < kWidth; ++i) out[k + i] = uint8_t(code[i]);
#endif
    }
}

void convert(const Linear& layer, const float* x, int64_t rows, void* values, float* scales, float* lows) {
    if (layer.precision == Precision::bfloat16) return to_bfloat16(x, rows * layer.k, static_cast<uint16_t*>(values));
    std::vector<float> moved(static_cast<size_t>(layer.k));
    for (int64_t row = 0; row < rows; ++row)
        to_codes(layer, x + row * layer.k, static_cast<uint8_t*>(values) + row * layer.k, scales + row, lows + row, moved.data());
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
        // Positions behind the text hold exp(-87), which is not zero: they are left out of the sum.
        float whole = 0;
        if (keys == length) whole = total(sum);
        else for (int64_t j = 0; j < length; ++j) whole += line[j];
        inverse[i] = 1 / whole;
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
        for (int64_t j = 0; j < keys; ++j)
            for (int64_t d = 0; d < head_dim; ++d) turned[d * keys + j] = j < length ? own[j * 3 * hidden + hidden + d] : 0;
        const float* bias = distance ? distance + head * (2 * reach - 1) + reach - 1 : nullptr;
        float* to = out + head * head_dim;
        int64_t first = 0;
        for (; first + 4 <= length; first += 4)
            attend_rows<4>(own, length, hidden, head_dim, turned, keys, bias, first, scores, to);
        for (; first < length; ++first) attend_rows<1>(own, length, hidden, head_dim, turned, keys, bias, first, scores, to);
    }
}

constexpr EncoderKernels kEncoder = {linear, convert, normalise, attend};

}  // namespace
