// The compiled kernels against two plain loops, to be built with sanitizers (tests/kernels/test_sanitizers.py).
// Prints each fault; exits with their number.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "encoder.hpp"
#include "rcmd.hpp"

using namespace likewise;

namespace {

int faults = 0;

void expect(bool good, const char* what) {
    if (good) return;
    ++faults;
    std::printf("%s: %s\n", active().name, what);
}

struct Packed {
    std::vector<float> tokens, unit, lengths;
    std::vector<int64_t> offsets{0};
    int64_t dim, stride;

    Packed(unsigned seed, const std::vector<int>& sizes, int64_t dim_) : dim(dim_), stride(padded(dim_)) {
        for (const int size : sizes) offsets.push_back(offsets.back() + size);
        std::mt19937 random(seed);
        std::normal_distribution<float> normal;
        tokens.resize(size_t(offsets.back() * dim));
        for (float& x : tokens) x = normal(random);
        unit.resize(size_t(offsets.back() * stride));
        lengths.resize(size_t(offsets.back()));
        expect(normalise({tokens.data(), offsets.data(), n(), dim}, unit.data(), lengths.data(), 3) == -1, "finite tokens");
    }
    int64_t n() const { return int64_t(offsets.size()) - 1; }
    int64_t length(int64_t i) const { return offsets[i + 1] - offsets[i]; }
    const float* at(int64_t token) const { return unit.data() + token * stride; }
};

double dot(const Packed& a, int64_t s, const Packed& b, int64_t t) {
    return std::inner_product(a.at(s), a.at(s) + a.stride, b.at(t), 0.0);
}

double naive(const Packed& a, int64_t i, const Packed& b, int64_t j) {
    if (!a.length(i) || !b.length(j)) return 0;
    double forward = 0, backward = 0;
    for (int64_t s = a.offsets[i]; s < a.offsets[i + 1]; ++s) {
        double best = -2;
        for (int64_t t = b.offsets[j]; t < b.offsets[j + 1]; ++t) best = std::max(best, dot(a, s, b, t));
        forward += best;
    }
    for (int64_t t = b.offsets[j]; t < b.offsets[j + 1]; ++t) {
        double best = -2;
        for (int64_t s = a.offsets[i]; s < a.offsets[i + 1]; ++s) best = std::max(best, dot(a, s, b, t));
        backward += best;
    }
    return (forward / double(a.length(i)) + backward / double(b.length(j))) / 2;
}

void check_scoring(const Packed& a, const Packed& b) {
    for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::int8}) {
        const double tolerance = precision == Precision::float32 ? 1e-5 : 2e-2;
        const Left left(a.unit.data(), a.offsets.data(), a.n(), a.stride, precision);
        const Candidates right(b.unit.data(), b.offsets.data(), b.n(), b.stride, precision, 2);
        std::vector<float> scores(size_t(a.n() * b.n()));
        score(left.rows(), right, scores.data(), 3);
        for (int64_t i = 0; i < a.n(); ++i)
            for (int64_t j = 0; j < b.n(); ++j)
                expect(std::fabs(scores[size_t(i * b.n() + j)] - naive(a, i, b, j)) < tolerance, "score");
        const int64_t k = 3;
        std::vector<float> values(size_t(a.n() * k));
        std::vector<int64_t> indices(size_t(a.n() * k));
        top_k(left.rows(), right, k, values.data(), indices.data(), 2);
        for (size_t e = 0; e < values.size(); ++e)
            if (indices[e] >= 0) expect(values[e] == scores[(e / k) * size_t(b.n()) + size_t(indices[e])], "top_k");
        const Candidates same(a.unit.data(), a.offsets.data(), a.n(), a.stride, precision, 1);
        std::vector<float> best(5);
        std::vector<int64_t> first(5), second(5);
        top_pairs(left.rows(), same, 5, best.data(), first.data(), second.data(), 4);
        for (size_t e = 0; e < 5; ++e)
            if (first[e] >= 0)
                expect(first[e] < second[e] && std::fabs(best[e] - naive(a, first[e], a, second[e])) < tolerance, "top_pairs");
    }
}

template <class Place>
void check_training(const Packed& a, const Packed& b) {
    const size_t a_total = size_t(a.offsets.back()), b_total = size_t(b.offsets.back());
    const Left left(a.unit.data(), a.offsets.data(), a.n(), a.stride, Precision::float32);
    const Candidates right(b.unit.data(), b.offsets.data(), b.n(), b.stride, Precision::float32, 2);
    std::vector<float> scores(size_t(a.n() * b.n())), weights(scores.size());
    std::vector<Place> rows(size_t(b.n()) * a_total), columns(size_t(a.n()) * b_total);
    score_places<Place>(left.rows(), right, b.offsets.data(), scores.data(), rows.data(), columns.data(), 3);
    for (size_t e = 0; e < weights.size(); ++e) weights[e] = float(e % 7) - 3;
    std::vector<float> of_a(a.unit.size()), of_b(b.unit.size());
    gradient<Place>(a.offsets.data(), a.n(), b.unit.data(), b.offsets.data(), b.n(), a.stride, rows.data(), columns.data(),
                    weights.data(), b.n(), 1, of_a.data(), 3);
    gradient<Place>(b.offsets.data(), b.n(), a.unit.data(), a.offsets.data(), a.n(), a.stride, columns.data(), rows.data(),
                    weights.data(), 1, b.n(), of_b.data(), 2);
    // Euler: scores are sums of dot products, so each side's gradient times its tokens is the weighted sum of scores.
    double expected = 0, from_a = 0, from_b = 0;
    for (size_t e = 0; e < scores.size(); ++e) expected += double(weights[e]) * scores[e];
    for (size_t e = 0; e < of_a.size(); ++e) from_a += double(of_a[e]) * a.unit[e];
    for (size_t e = 0; e < of_b.size(); ++e) from_b += double(of_b[e]) * b.unit[e];
    expect(std::fabs(from_a - expected) < 1e-3 && std::fabs(from_b - expected) < 1e-3, "gradient");
    std::vector<float> out(a.tokens.size());
    through_normalise(a.unit.data(), a.lengths.data(), of_a.data(), int64_t(a_total), a.dim, out.data(), 2);
    for (const float x : out) expect(std::isfinite(x), "finite gradient");
}

void check_pairs(const Packed& a, const Packed& b) {
    const int64_t n = std::min(a.n(), b.n());
    std::vector<float> forward(static_cast<size_t>(n)), backward(static_cast<size_t>(n));
    std::vector<int32_t> rows(size_t(a.offsets.back())), columns(size_t(b.offsets.back()));
    score_pairs(a.unit.data(), a.offsets.data(), b.unit.data(), b.offsets.data(), n, a.stride, forward.data(), backward.data(),
                rows.data(), columns.data(), 2);
    for (int64_t i = 0; i < n; ++i)
        expect(std::fabs((forward[size_t(i)] + backward[size_t(i)]) / 2 - naive(a, i, b, i)) < 1e-5, "score_pairs");
}

// A small random encoder: the same bytes alone and in any batch, finite, ranges observed.
void check_encoder(Precision precision) {
    // The float32 one is large enough that threads share the layers of a text alone.
    const int64_t h = 48, f = precision == Precision::float32 ? 2640 : 80, words = 50, positions = 40;
    std::mt19937 random(7);
    std::normal_distribution<float> normal(0, 0.3f);
    const auto drawn = [&](int64_t n) {
        std::vector<float> values(static_cast<size_t>(n));
        for (float& x : values) x = normal(random);
        return values;
    };
    const auto table = drawn(words * h), places = drawn(positions * h), ones = std::vector<float>(size_t(f), 1.0f), zeros = std::vector<float>(size_t(f));
    Encoder encoder({h, 3, f, words, positions, 0, 1e-12f, Activation::gelu}, table.data(), h);
    encoder.positions(places.data());
    encoder.embedding_norm(ones.data(), zeros.data());
    const auto bias = drawn(3 * 79);
    encoder.distances(bias.data(), 40);
    const std::vector<float> shift(size_t(h), 0.1f), smooth(size_t(h), 0.5f);
    for (int layer = 0; layer < 2; ++layer) {
        const std::vector<float> w[6] = {drawn(h * h), drawn(h * h), drawn(h * h), drawn(h * h), drawn(f * h), drawn(h * f)};
        const float* const weights[6] = {w[0].data(), w[1].data(), w[2].data(), w[3].data(), w[4].data(), w[5].data()};
        const float* const biases[6] = {zeros.data(), zeros.data(), zeros.data(), zeros.data(), zeros.data(), zeros.data()};
        const float* const norms[4] = {ones.data(), zeros.data(), ones.data(), zeros.data()};
        const Precision precisions[4] = {precision, precision, precision, precision};
        const float* const shifts[4] = {shift.data(), nullptr, shift.data(), nullptr};
        const float* const smooths[4] = {smooth.data(), nullptr, smooth.data(), nullptr};
        encoder.add_layer(weights, biases, norms, precisions, shifts, smooths);
    }
    std::vector<int64_t> offsets{0};
    for (const int size : {3, 40, 1, 0, 17, 5, 5, 33, 2}) offsets.push_back(offsets.back() + size);
    std::vector<int32_t> ids(size_t(offsets.back()));
    for (int32_t& id : ids) id = int32_t(random() % words);
    const int64_t n = int64_t(offsets.size()) - 1;
    std::vector<float> tokens(ids.size() * size_t(h)), pooled(size_t(n * h));
    encoder.run(ids.data(), offsets.data(), n, tokens.data(), pooled.data(), false, 3);
    for (const float x : tokens) expect(std::isfinite(x), "finite states");
    for (int64_t i = 0; i < n; ++i) {
        const int64_t ends[] = {0, offsets[i + 1] - offsets[i]};
        std::vector<float> alone(size_t(ends[1] * h) + 1), mean(static_cast<size_t>(h));
        encoder.run(ids.data() + offsets[i], ends, 1, alone.data(), mean.data(), false, i % 2 ? 3 : 1);
        expect(!std::memcmp(alone.data(), tokens.data() + offsets[i] * h, size_t(ends[1] * h) * 4), "the same bytes alone");
        expect(!std::memcmp(mean.data(), pooled.data() + i * h, size_t(h) * 4), "the same pooled bytes alone");
    }
    expect(encoder.ranges(ids.data(), offsets.data(), n).size() == size_t(2 * 2 * (3 * h + f)), "ranges");
}

}  // namespace

int main() {
    for (const std::string& name : available()) {
        expect(use(name), "available");
        for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::int8})
            for (const bool tiles : {false, true}) expect(active().peak(precision, 0.001, tiles) > 0, "peak");
        for (const int64_t dim : {1, 17, 100}) {
            const Packed a(1, {3, 0, 1, 7, 12, 2}, dim), b(2, {1, 5, 0, 2, 9, 17, 4, 4, 6, 1, 1, 3, 8, 2, 5, 13, 11, 70, 2}, dim);
            check_scoring(a, b);
            check_training<uint8_t>(a, b);
            check_training<uint16_t>(a, b);
            check_pairs(a, b);
        }
        for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::int8}) check_encoder(precision);
        const Packed none(3, {}, 8), empty(4, {0, 0}, 8), some(5, {2, 3}, 8);
        check_scoring(none, some);
        check_scoring(some, none);
        check_scoring(empty, some);
        check_training<uint8_t>(some, empty);
        check_training<uint8_t>(empty, some);
    }
    std::vector<float> bad{1, 2, std::numeric_limits<float>::quiet_NaN(), 4}, unit(2 * 16), lengths(2);
    const int64_t ends[] = {0, 2};
    expect(normalise({bad.data(), ends, 1, 2}, unit.data(), lengths.data(), 1) == 1, "the token that is not finite");
    std::printf("%d faults\n", faults);
    return faults;
}
