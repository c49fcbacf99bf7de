// Scoring without gradient: whole matrices, the best k of each text, the best k pairs of a set, and row by row.
#include <algorithm>
#include <limits>

#include "parallel.hpp"
#include "rcmd.hpp"

namespace likewise {
namespace {

constexpr int64_t kRowsATask = 128;  // texts on the left that one task takes past one group

int64_t scratch_floats(const Candidates& right) { return kGroup * (right.longest() + 8); }

double multiplications(const Rows& left, const Candidates& right) {
    double positions = 0;
    for (const Group& g : right.groups()) positions += double(g.length);
    return double(left.offsets[left.n]) * positions * kGroup * double(left.stride);
}

struct Hit {
    float value;
    int64_t a, b;

    // Better hits come first: larger, then lower indices.
    bool before(const Hit& other) const {
        return value != other.value ? value > other.value : a != other.a ? a < other.a : b < other.b;
    }
};

// The best k hits seen, in order.
class Best {
public:
    explicit Best(int64_t k) : k_(size_t(k)) {}

    void meet(const Hit& hit) {
        if (hits_.size() == k_ && (k_ == 0 || !hit.before(hits_.back()))) return;
        if (hits_.size() == k_) hits_.pop_back();
        hits_.insert(std::upper_bound(hits_.begin(), hits_.end(), hit, [](const Hit& x, const Hit& y) { return x.before(y); }),
                     hit);
    }
    void meet(const Best& other) {
        for (const Hit& hit : other.hits_) meet(hit);
    }
    // A value that is larger than this may still enter.
    float bar() const { return hits_.size() < k_ ? -std::numeric_limits<float>::infinity() : hits_.back().value; }
    const std::vector<Hit>& hits() const { return hits_; }

private:
    size_t k_;
    std::vector<Hit> hits_;
};

// Calls found(row, group, scores of 16, thread) for all texts on the left from `first` to `last` and all groups.
template <class Found>
void over_groups(const Rows& left, int64_t first, int64_t last, const Candidates& right, int threads, Found&& found) {
    const Kernels& kernels = active();
    const int64_t chunks = (last - first + kRowsATask - 1) / kRowsATask;
    std::vector<std::vector<float>> scratch(static_cast<size_t>(threads));
    parallel(int64_t(right.groups().size()) * chunks, threads, [&](int64_t task, int thread) {
        auto& floats = scratch[size_t(thread)];
        if (floats.empty()) floats.resize(size_t(scratch_floats(right)));
        const Group& g = right.groups()[size_t(task / chunks)];
        const int64_t start = first + task % chunks * kRowsATask;
        alignas(64) float out[kGroup];
        for (int64_t row = start; row < std::min(last, start + kRowsATask); ++row) {
            if (left.offsets[row] == left.offsets[row + 1]) continue;
            kernels.score(right.precision(), left, row, g, floats.data(), out);
            found(row, g, out, thread);
        }
    });
}

}  // namespace

void score(const Rows& left, const Candidates& right, float* scores, int n_threads) {
    std::fill(scores, scores + left.n * right.n(), 0.0f);
    over_groups(left, 0, left.n, right, threads_for(multiplications(left, right), n_threads),
                [&](int64_t row, const Group& g, const float* out, int) {
                    for (int lane = 0; lane < g.n; ++lane) scores[row * right.n() + g.text[lane]] = out[lane];
                });
}

void top_k(const Rows& left, const Candidates& right, int64_t k, float* values, int64_t* indices, int n_threads) {
    std::fill(values, values + left.n * k, -std::numeric_limits<float>::infinity());
    std::fill(indices, indices + left.n * k, int64_t(-1));
    const int threads = threads_for(multiplications(left, right), n_threads);
    constexpr int64_t kBlock = 4096;  // bounds the memory of the threads' lists
    for (int64_t first = 0; first < left.n; first += kBlock) {
        const int64_t last = std::min(left.n, first + kBlock);
        std::vector<std::vector<Best>> best(size_t(threads), std::vector<Best>(size_t(last - first), Best(k)));
        over_groups(left, first, last, right, threads, [&](int64_t row, const Group& g, const float* out, int thread) {
            Best& mine = best[size_t(thread)][size_t(row - first)];
            for (int lane = 0; lane < g.n; ++lane)
                if (out[lane] >= mine.bar()) mine.meet({out[lane], row, g.text[lane]});
        });
        for (int64_t row = first; row < last; ++row) {
            Best& all = best[0][size_t(row - first)];
            for (int thread = 1; thread < threads; ++thread) all.meet(best[size_t(thread)][size_t(row - first)]);
            for (size_t place = 0; place < all.hits().size(); ++place) {
                values[row * k + int64_t(place)] = all.hits()[place].value;
                indices[row * k + int64_t(place)] = all.hits()[place].b;
            }
        }
    }
}

void top_pairs(const Rows& texts, const Candidates& same, int64_t k, float* values, int64_t* left, int64_t* right,
               int n_threads) {
    std::fill(values, values + k, -std::numeric_limits<float>::infinity());
    std::fill(left, left + k, int64_t(-1));
    std::fill(right, right + k, int64_t(-1));
    // In the order of the groups, a text is compared with the texts behind it only: half of the square.
    std::vector<int64_t> order;
    for (const Group& g : same.groups()) order.insert(order.end(), g.text, g.text + g.n);
    const Kernels& kernels = active();
    const int threads = threads_for(multiplications(texts, same) / 2, n_threads);
    std::vector<Best> best(static_cast<size_t>(threads), Best(k));
    const int64_t n_groups = int64_t(same.groups().size());
    parallel(n_groups, threads, [&](int64_t task, int thread) {
        const int64_t number = n_groups - 1 - task;  // the longest work first
        const Group& g = same.groups()[size_t(number)];
        std::vector<float> scratch(size_t(scratch_floats(same)));
        Best& mine = best[size_t(thread)];
        alignas(64) float out[kGroup];
        for (int64_t rank = 0; rank < number * kGroup + g.n; ++rank) {
            const int64_t text = order[size_t(rank)];
            kernels.score(same.precision(), texts, text, g, scratch.data(), out);
            for (int lane = int(std::max<int64_t>(0, rank - number * kGroup + 1)); lane < g.n; ++lane)
                if (out[lane] >= mine.bar())
                    mine.meet({out[lane], std::min(text, g.text[lane]), std::max(text, g.text[lane])});
        }
    });
    for (int thread = 1; thread < threads; ++thread) best[0].meet(best[size_t(thread)]);
    for (size_t place = 0; place < best[0].hits().size(); ++place) {
        values[place] = best[0].hits()[place].value;
        left[place] = best[0].hits()[place].a;
        right[place] = best[0].hits()[place].b;
    }
}

void score_pairs(const float* a, const int64_t* a_offsets, const float* b, const int64_t* b_offsets, int64_t n, int64_t stride,
                 float* forward, float* backward, int32_t* row_places, int32_t* column_places, int n_threads) {
    const Kernels& kernels = active();
    constexpr int64_t kRows = 64;  // tokens of a whose cosines exist at once
    double work = 0;
    for (int64_t i = 0; i < n; ++i)
        work += double(a_offsets[i + 1] - a_offsets[i]) * double(b_offsets[i + 1] - b_offsets[i]) * double(stride);
    constexpr int64_t kPairs = 16;
    parallel((n + kPairs - 1) / kPairs, threads_for(work, n_threads), [&](int64_t task, int) {
        std::vector<float> cosine, best;
        for (int64_t i = task * kPairs; i < std::min(n, (task + 1) * kPairs); ++i) {
            const int64_t rows = a_offsets[i + 1] - a_offsets[i], columns = b_offsets[i + 1] - b_offsets[i];
            forward[i] = backward[i] = 0;
            if (!rows || !columns) continue;
            cosine.resize(size_t(std::min(rows, kRows) * columns));
            best.assign(size_t(columns), -std::numeric_limits<float>::infinity());
            const float* right = b + b_offsets[i] * stride;
            double sum = 0;
            for (int64_t first = 0; first < rows; first += kRows) {
                const int64_t count = std::min(kRows, rows - first);
                kernels.cosines(a + (a_offsets[i] + first) * stride, count, right, columns, stride, cosine.data());
                for (int64_t t = 0; t < count; ++t) {
                    const float* line = cosine.data() + t * columns;
                    int64_t place = 0;
                    for (int64_t s = 0; s < columns; ++s) {
                        if (line[s] > line[place]) place = s;
                        if (line[s] > best[size_t(s)]) {
                            best[size_t(s)] = line[s];
                            if (column_places) column_places[b_offsets[i] + s] = int32_t(first + t);
                        }
                    }
                    sum += line[place];
                    if (row_places) row_places[a_offsets[i] + first + t] = int32_t(place);
                }
            }
            forward[i] = float(sum / double(rows));
            double back = 0;
            for (const float value : best) back += value;
            backward[i] = float(back / double(columns));
        }
    });
}

}  // namespace likewise
