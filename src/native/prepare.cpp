// Token vectors made ready: length 1, number formats, and the groups of candidates.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <atomic>
#include <new>
#include <numeric>

#include "parallel.hpp"
#include "rcmd.hpp"

namespace likewise {
namespace {

uint16_t to_bfloat16(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);  // to the nearest, ties to even
}

float largest(const float* x, int64_t n) {
    float most = 0;
    for (int64_t k = 0; k < n; ++k) most = std::max(most, std::fabs(x[k]));
    return most;
}

// Codes of -127 to 127; x is about code * scale.
struct Codes {
    float scale, inverse;

    Codes(const float* x, int64_t n) {
        const float most = largest(x, n);
        scale = most / 127;
        inverse = most > 0 ? 127 / most : 0;
    }
    int operator()(float x) const { return int(std::nearbyint(x * inverse)); }
};

// Length of a row without overflow or underflow of its squares; not finite if an entry is not.
float length_of(const float* x, int64_t dim, float most) {
    double sum = 0;
    for (int64_t k = 0; k < dim; ++k) sum += double(x[k] / most) * (x[k] / most);
    return float(most * std::sqrt(sum));
}

bool finite(const float* x, int64_t dim) {
    bool all = true;
    for (int64_t k = 0; k < dim; ++k) all &= std::isfinite(x[k]);
    return all;
}

}  // namespace

int64_t normalise(const Texts& texts, float* out, float* lengths, int n_threads) {
    const int64_t dim = texts.dim, stride = padded(dim), total = texts.total();
    constexpr int64_t kChunk = 1024;
    std::atomic<int64_t> bad{total};
    parallel((total + kChunk - 1) / kChunk, threads_for(4.0 * total * dim, n_threads), [&](int64_t chunk, int) {
        for (int64_t t = chunk * kChunk; t < std::min(total, (chunk + 1) * kChunk); ++t) {
            const float* x = texts.tokens + t * dim;
            float* u = out + t * stride;
            if (!finite(x, dim)) {
                int64_t known = bad;
                while (t < known && !bad.compare_exchange_weak(known, t)) {
                }
            }
            const float most = largest(x, dim);
            const float length = most > 0 ? length_of(x, dim, most) : 0;
            lengths[t] = length;
            // Two divisions: one over a length of 1e-40 would be infinite.
            const float scale = most > 0 ? 1 / (length / most) : 0;
            for (int64_t k = 0; k < dim; ++k) u[k] = most > 0 ? x[k] / most * scale : 0;
            std::fill(u + dim, u + stride, 0.0f);
        }
    });
    return bad < total ? int64_t(bad) : -1;
}

Left::Left(const float* unit, const int64_t* offsets, int64_t n, int64_t stride, Precision precision)
    : unit_(unit), offsets_(offsets), n_(n), stride_(stride), precision_(precision) {
    const int64_t total = offsets[n];
    if (precision == Precision::bfloat16) {
        halves_.resize(size_t(total * stride));
        for (int64_t k = 0; k < total * stride; ++k) halves_[k] = to_bfloat16(unit[k]);
    } else if (precision == Precision::int8) {
        codes_.resize(size_t(total * stride));
        scales_.resize(size_t(total));
        for (int64_t t = 0; t < total; ++t) {
            const Codes code(unit + t * stride, stride);
            scales_[t] = code.scale;
            for (int64_t k = 0; k < stride; ++k) codes_[t * stride + k] = uint8_t(code(unit[t * stride + k]) + 128);
        }
    }
}

Rows Left::rows() const {
    const void* tokens = precision_ == Precision::float32    ? static_cast<const void*>(unit_)
                         : precision_ == Precision::bfloat16 ? static_cast<const void*>(halves_.data())
                                                             : static_cast<const void*>(codes_.data());
    return {tokens, scales_.data(), offsets_, n_, stride_};
}

Candidates::Candidates(const float* unit, const int64_t* offsets, int64_t n, int64_t stride, Precision precision,
                       int n_threads)
    : n_(n), stride_(stride), precision_(precision) {
    std::vector<int64_t> order;
    for (int64_t text = 0; text < n; ++text)
        if (offsets[text + 1] > offsets[text]) order.push_back(text);
    const auto length = [&](int64_t text) { return offsets[text + 1] - offsets[text]; };
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return length(a) < length(b); });

    std::vector<int64_t> base;  // first position of each group in all panels
    int64_t positions = 0;
    for (size_t first = 0; first < order.size(); first += kGroup) {
        Group g{};
        g.n = int(std::min<size_t>(kGroup, order.size() - first));
        g.length = length(order[first + g.n - 1]);
        for (int lane = 0; lane < kGroup; ++lane) {
            g.text[lane] = order[first + (lane < g.n ? lane : 0)];
            g.tokens[lane] = int32_t(length(g.text[lane]));
            g.inverse[lane] = 1 / float(length(g.text[lane]));
        }
        base.push_back(positions);
        positions += g.length;
        longest_ = std::max(longest_, g.length);
        groups_.push_back(g);
    }
    panel_bytes_ = positions * kGroup * stride * bytes_of(precision);
    panels_.reset(static_cast<char*>(::operator new(size_t(std::max<int64_t>(panel_bytes_, 64)), std::align_val_t(64))));
    if (precision == Precision::int8) {
        scales_.resize(size_t(positions * kGroup));
        sums_.resize(size_t(positions * kGroup));
    }
    parallel(int64_t(groups_.size()), threads_for(16.0 * positions * kGroup * stride, n_threads),
             [&](int64_t i, int) { fill(groups_[i], base[i], unit, offsets); });
}

void Candidates::fill(Group& g, int64_t base, const float* unit, const int64_t* offsets) {
    char* panel = panels_.get() + base * kGroup * stride_ * bytes_of(precision_);
    g.panel = panel;
    g.scales = scales_.data() + base * kGroup;
    g.sums = sums_.data() + base * kGroup;
    for (int64_t p = 0; p < g.length; ++p)
        for (int lane = 0; lane < kGroup; ++lane) {
            const int64_t text = g.text[lane], there = offsets[text] + p;
            const float* x = unit + (there < offsets[text + 1] ? there : offsets[text]) * stride_;
            const int64_t place = p * stride_ * kGroup;
            if (precision_ == Precision::float32) {
                float* out = reinterpret_cast<float*>(panel) + place + lane;
                for (int64_t k = 0; k < stride_; ++k) out[k * kGroup] = x[k];
            } else if (precision_ == Precision::bfloat16) {
                uint16_t* out = reinterpret_cast<uint16_t*>(panel) + place + lane * 2;
                for (int64_t k = 0; k < stride_; ++k) out[k / 2 * 2 * kGroup + k % 2] = to_bfloat16(x[k]);
            } else {
                const Codes code(x, stride_);
                int8_t* out = reinterpret_cast<int8_t*>(panel) + place + lane * 4;
                int32_t sum = 0;
                for (int64_t k = 0; k < stride_; ++k) {
                    const int c = code(x[k]);
                    out[k / 4 * 4 * kGroup + k % 4] = int8_t(c);
                    sum += c;
                }
                scales_[(base + p) * kGroup + lane] = code.scale;
                sums_[(base + p) * kGroup + lane] = 128 * sum;
            }
        }
}

int64_t Candidates::n_bytes() const {
    return panel_bytes_ + int64_t(scales_.size() * sizeof(float) + sums_.size() * sizeof(int32_t)) +
           int64_t(groups_.size() * sizeof(Group));
}

}  // namespace likewise
