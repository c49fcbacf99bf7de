// The training form of all-pairs RCMD: scores with the places of the maxima, and the gradient from those places.
//
// Nothing of size L x L is kept. For each pair of texts one integer a token says which token of the other text was
// nearest; the gradient adds, for each such pair of tokens, a weight times the partner's vector: a sparse matrix
// times a dense one, done in registers. Each side is written by one thread at a time, so there are no atomics and
// the order of the sums is fixed.
#include <algorithm>

#include "parallel.hpp"
#include "rcmd.hpp"

namespace likewise {

template <class Place>
void score_places(const Rows& left, const Candidates& right, const int64_t* right_offsets, float* scores, Place* row_places,
                  Place* column_places, int n_threads) {
    const Kernels& kernels = active();
    const int64_t left_total = left.offsets[left.n], right_total = right_offsets[right.n()];
    int64_t longest = 0;
    for (int64_t i = 0; i < left.n; ++i) longest = std::max(longest, left.offsets[i + 1] - left.offsets[i]);
    std::fill(scores, scores + left.n * right.n(), 0.0f);
    constexpr int64_t kRows = 16;
    const int64_t chunks = (left.n + kRows - 1) / kRows;
    const double work = double(left_total) * double(right_total) * double(left.stride);
    parallel(int64_t(right.groups().size()) * chunks, threads_for(work, n_threads), [&](int64_t task, int) {
        const Group& g = right.groups()[size_t(task / chunks)];
        std::vector<float> scratch(size_t(kGroup * (g.length + 8)));
        std::vector<int32_t> of_rows(size_t(kGroup * longest)), of_columns(size_t(kGroup * g.length));
        alignas(64) float out[kGroup];
        const int64_t start = task % chunks * kRows;
        for (int64_t i = start; i < std::min(left.n, start + kRows); ++i) {
            const int64_t first = left.offsets[i], length = left.offsets[i + 1] - first;
            if (!length) continue;
            kernels.score_places(right.precision(), left, i, g, scratch.data(), {of_rows.data(), of_columns.data()}, out);
            for (int lane = 0; lane < g.n; ++lane) {
                const int64_t j = g.text[lane], columns = right_offsets[j + 1] - right_offsets[j];
                scores[i * right.n() + j] = out[lane];
                Place* row = row_places + j * left_total + first;
                for (int64_t t = 0; t < length; ++t) row[t] = Place(of_rows[size_t(t * kGroup + lane)]);
                Place* column = column_places + i * right_total + right_offsets[j];
                for (int64_t s = 0; s < columns; ++s) column[s] = Place(of_columns[size_t(s * kGroup + lane)]);
            }
        }
    });
}

template <class Place>
void gradient(const int64_t* x_offsets, int64_t n_x, const float* y, const int64_t* y_offsets, int64_t n_y, int64_t stride,
              const Place* own, const Place* other, const float* weights, int64_t x_step, int64_t y_step, float* out,
              int n_threads) {
    const Kernels& kernels = active();
    const int64_t x_total = x_offsets[n_x], y_total = y_offsets[n_y];
    constexpr int64_t kTexts = 8;                // texts of x that pass over one block of y
    constexpr int64_t kBlockBytes = 384 * 1024;  // a block of y stays in the second-level cache
    const int64_t block_tokens = std::max<int64_t>(1, kBlockBytes / (stride * 4));
    const double work = (double(x_total) * double(n_y) + double(n_x) * double(y_total)) * double(stride);
    parallel((n_x + kTexts - 1) / kTexts, threads_for(work, n_threads), [&](int64_t task, int) {
        std::vector<int64_t> ends, entry;
        std::vector<float> weight;
        const int64_t last = std::min(n_x, (task + 1) * kTexts);
        for (int64_t begin = 0; begin < n_y;) {
            int64_t end = begin + 1;
            while (end < n_y && y_offsets[end + 1] - y_offsets[begin] <= block_tokens) ++end;
            for (int64_t i = task * kTexts; i < last; ++i) {
                const int64_t first = x_offsets[i], length = x_offsets[i + 1] - first;
                if (!length) continue;
                // Entries of each token t of x: one for each text of y, and one for each token of y that chose t.
                const Place* chosen = other + i * y_total;
                int64_t filled = 0;
                for (int64_t j = begin; j < end; ++j) filled += y_offsets[j + 1] > y_offsets[j];
                ends.assign(size_t(length + 1), filled);
                ends[0] = 0;
                for (int64_t s = y_offsets[begin]; s < y_offsets[end]; ++s) ++ends[size_t(chosen[s]) + 1];
                for (int64_t t = 0; t < length; ++t) ends[size_t(t + 1)] += ends[size_t(t)];
                entry.resize(size_t(ends[size_t(length)]));
                weight.resize(entry.size());
                std::vector<int64_t>& at = ends;  // each token's cursor; afterwards the end of its entries
                for (int64_t j = begin; j < end; ++j) {
                    const int64_t columns = y_offsets[j + 1] - y_offsets[j];
                    if (!columns) continue;
                    const float g = weights[i * x_step + j * y_step] * 0.5f;
                    const Place* nearest = own + j * x_total + first;
                    for (int64_t t = 0; t < length; ++t) {
                        const size_t e = size_t(at[size_t(t)]++);
                        entry[e] = y_offsets[j] + int64_t(nearest[t]);
                        weight[e] = g / float(length);
                    }
                    for (int64_t s = y_offsets[j]; s < y_offsets[j + 1]; ++s) {
                        const size_t e = size_t(at[size_t(chosen[s])]++);
                        entry[e] = s;
                        weight[e] = g / float(columns);
                    }
                }
                for (int64_t t = 0; t < length; ++t) {
                    const int64_t from = t ? at[size_t(t - 1)] : 0;
                    kernels.gather(y, stride, entry.data() + from, weight.data() + from, at[size_t(t)] - from,
                                   out + (first + t) * stride);
                }
            }
            begin = end;
        }
    });
}

void through_normalise(const float* unit, const float* lengths, const float* g, int64_t total, int64_t dim, float* out,
                       int n_threads) {
    const int64_t stride = padded(dim);
    constexpr int64_t kChunk = 1024;
    parallel((total + kChunk - 1) / kChunk, threads_for(4.0 * double(total) * double(dim), n_threads),
             [&](int64_t chunk, int) {
                 for (int64_t t = chunk * kChunk; t < std::min(total, (chunk + 1) * kChunk); ++t) {
                     const float *u = unit + t * stride, *from = g + t * stride;
                     float along = 0;
                     for (int64_t k = 0; k < dim; ++k) along += from[k] * u[k];
                     const float inverse = lengths[t] > 0 ? 1 / lengths[t] : 0;
                     for (int64_t k = 0; k < dim; ++k) out[t * dim + k] = (from[k] - along * u[k]) * inverse;
                 }
             });
}

#define LIKEWISE_PLACES(Place)                                                                                              \
    template void score_places(const Rows&, const Candidates&, const int64_t*, float*, Place*, Place*, int);                \
    template void gradient(const int64_t*, int64_t, const float*, const int64_t*, int64_t, int64_t, const Place*,           \
                           const Place*, const float*, int64_t, int64_t, float*, int);
LIKEWISE_PLACES(uint8_t)
LIKEWISE_PLACES(uint16_t)


}  // namespace likewise
