// All-pairs RCMD on packed texts: scoring in three precisions, and the training form with its gradient.
#pragma once

#include <memory>
#include <string>

#include "layout.hpp"

namespace likewise {

// The kernels for this processor, or those named by `use`.
const Kernels& active();
// Chooses "portable", "avx2", "avx512", "amx" or "" (the best). False if this processor or build has no such set.
bool use(const std::string& name);
std::vector<std::string> available();

// Token vectors as given: any length, packed.
struct Texts {
    const float* tokens;     // [total, dim]
    const int64_t* offsets;  // [n + 1]
    int64_t n;
    int64_t dim;

    int64_t total() const { return offsets[n]; }
    int64_t length(int64_t text) const { return offsets[text + 1] - offsets[text]; }
};

// Writes tokens at length 1 with `padded(dim)` floats each, and their lengths before that.
// Returns the first token that is not finite, or -1.
int64_t normalise(const Texts& texts, float* out, float* lengths, int n_threads);

// Texts on the left, in one precision, with their own memory.
class Left {
public:
    // `unit` are tokens from `normalise`; they must outlive this where the precision is float32.
    Left(const float* unit, const int64_t* offsets, int64_t n, int64_t stride, Precision precision);
    Rows rows() const;

private:
    std::vector<uint16_t> halves_;
    std::vector<uint8_t> codes_;
    std::vector<float> scales_;
    const float* unit_;
    const int64_t* offsets_;
    int64_t n_, stride_;
    Precision precision_;
};

// Candidates sorted by length and laid out in groups, with their own memory: total * dim * bytes plus the fill.
class Candidates {
public:
    Candidates(const float* unit, const int64_t* offsets, int64_t n, int64_t stride, Precision precision, int n_threads);
    const std::vector<Group>& groups() const { return groups_; }
    int64_t n() const { return n_; }
    int64_t stride() const { return stride_; }
    int64_t longest() const { return longest_; }
    Precision precision() const { return precision_; }
    int64_t n_bytes() const;

private:
    void fill(Group& group, int64_t base, const float* unit, const int64_t* offsets);

    struct Free {
        void operator()(void* p) const { ::operator delete(p, std::align_val_t(64)); }
    };
    std::unique_ptr<char, Free> panels_;
    std::vector<float> scales_;
    std::vector<int32_t> sums_;
    std::vector<Group> groups_;
    int64_t n_, stride_, longest_ = 0, panel_bytes_ = 0;
    Precision precision_;
};

// scores[left][candidates]. Texts without tokens score 0.
void score(const Rows& left, const Candidates& right, float* scores, int n_threads);

// The k best candidates of each text on the left, best first, lower index first among equals.
// values[left][k], indices[left][k]; -1 behind the last where there are fewer.
void top_k(const Rows& left, const Candidates& right, int64_t k, float* values, int64_t* indices, int n_threads);

// The k best pairs of the texts of one set, each pair once: left[k] < right[k], -1 behind the last.
void top_pairs(const Rows& texts, const Candidates& same, int64_t k, float* values, int64_t* left, int64_t* right, int n_threads);

// Row by row: scores[i] of text i with text i, with both directions and the first nearest tokens, where not null.
// row_places[total of a], column_places[total of b].
void score_pairs(const float* a, const int64_t* a_offsets, const float* b, const int64_t* b_offsets, int64_t n, int64_t stride,
                 float* forward, float* backward, int32_t* row_places, int32_t* column_places, int n_threads);

// Scores and, for each, where the maxima were; Place is the smallest integer that holds the longest text.
//   row_places[right text][token of left]     position in the right text
//   column_places[left text][token of right]  position in the left text
template <class Place>
void score_places(const Rows& left, const Candidates& right, const int64_t* right_offsets, float* scores, Place* row_places,
                  Place* column_places, int n_threads);

// One side of the gradient with respect to unit tokens: out[total of x][stride] += ...
//   own[text of y][token of x]    where that token's maximum over the text was
//   other[text of x][token of y]  where that token's maximum over the text of x was
//   weights: gradient of the score of (x, y) at weights[x * x_step + y * y_step]
template <class Place>
void gradient(const int64_t* x_offsets, int64_t n_x, const float* y, const int64_t* y_offsets, int64_t n_y, int64_t stride,
              const Place* own, const Place* other, const float* weights, int64_t x_step, int64_t y_step, float* out,
              int n_threads);

// Gradient through the normalisation: out[total][dim] = (g - (g . u) u) / length; 0 for a zero vector.
void through_normalise(const float* unit, const float* lengths, const float* g, int64_t total, int64_t dim, float* out,
                       int n_threads);

}  // namespace likewise
