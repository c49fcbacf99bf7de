// How texts lie in memory for the kernels. The same on every instruction set.
//
// Rows (the texts on the left) stay packed, token after token, `stride` elements a token.
//
// Columns (the candidates) are sorted by length and cut into groups of 16. A group is laid position-major:
// position p of all 16 texts side by side, element after element, so that one vector holds the same element of
// 16 texts and both maxima of RCMD are plain vertical maxima:
//
//     panel[p][k][16 texts][pack]      pack = 1 float, 2 bfloat16 or 4 int8 elements of k
//
// A text that is shorter than its group repeats its first token. A repeated token can win no maximum that the
// first did not win, so neither mask nor minus infinity is needed; the sum over its columns leaves the copies out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace likewise {

enum class Precision : int { float32 = 0, bfloat16 = 1, int8 = 2 };

constexpr int kGroup = 16;

// Elements of one token behind the last one are zero, up to a multiple of this.
constexpr int64_t kAlign = 16;

inline int64_t padded(int64_t dim) { return (dim + kAlign - 1) / kAlign * kAlign; }
inline int64_t bytes_of(Precision p) { return p == Precision::float32 ? 4 : p == Precision::bfloat16 ? 2 : 1; }

// Token vectors of the texts on the left, at length 1, in one precision.
struct Rows {
    const void* tokens;      // [total, stride] float, bfloat16, or int8 codes plus 128
    const float* scales;     // [total] int8 only: cosine = code product * both scales
    const int64_t* offsets;  // [n + 1]
    int64_t n;
    int64_t stride;  // padded dim
};

// One group of up to 16 candidates.
struct Group {
    const void* panel;     // [length][stride / pack][16][pack]
    const float* scales;   // [length][16] int8 only
    const int32_t* sums;   // [length][16] int8 only: 128 times the sum of the codes
    int64_t length;        // positions: that of its longest text
    int32_t tokens[kGroup];  // length of each lane; the positions behind repeat its first token
    float inverse[kGroup];   // one over that length
    int64_t text[kGroup];    // which candidate a lane holds
    int n;                   // lanes in use; the others repeat lane 0
};

// Scores of one text against one group, and optionally where each maximum was: the first such place.
struct Places {
    int32_t* of_rows;     // [length of the text][16] position in the candidate
    int32_t* of_columns;  // [length of the group][16] position in the text
};

// What one instruction set offers. Every function is pure and works on memory that the caller owns.
struct Kernels {
    const char* name;
    // Best cosine of each token of text `row` with group `g` and back; out[16] = RCMD.
    // scratch: floats, at least 16 * (g.length + 8).
    void (*score)(Precision, const Rows&, int64_t row, const Group& g, float* scratch, float* out);
    void (*score_places)(Precision, const Rows&, int64_t row, const Group& g, float* scratch, Places, float* out);
    // Cosines of n by m token vectors at length 1, float32: out[n][m].
    void (*cosines)(const float* x, int64_t n, const float* y, int64_t m, int64_t stride, float* out);
    // out[stride] += sum of weight[e] * x[entry[e]] over e < n.
    void (*gather)(const float* x, int64_t stride, const int64_t* entry, const float* weight, int64_t n, float* out);
    // Multiplications and additions a second of a loop that never leaves the registers; `tiles`: those of AMX, which
    // the encoder uses for bfloat16 and int8 and scoring does not.
    double (*peak)(Precision, double seconds, bool tiles);
};

const Kernels& portable();
const Kernels* avx2();    // null where this build has none
const Kernels* avx512();
const Kernels* amx();

}  // namespace likewise
