// A transformer encoder of the BERT family on packed texts.
//
// Every thread carries a few whole texts (32 to 256 tokens) through all layers: no padding, no mask, no barrier.
// A token's numbers depend on its own text only, so a text gives the same bytes whatever it is batched with.
#pragma once

#include <memory>
#include <string>

#include "layout.hpp"

namespace likewise {

enum class Activation : int { gelu = 0, gelu_tanh = 1, relu = 2 };

// A linear layer, packed like a group of candidates: panel[n / 16][k / pack][16][pack].
struct Linear {
    const void* panel = nullptr;
    const float* bias = nullptr;    // [n]
    const float* scales = nullptr;  // [n] int8 only: of each output channel
    const float* sums = nullptr;    // [n] int8 only: sum of the codes of each channel
    const float* shift = nullptr;   // [k] int8 only: subtracted from the input, or null
    const float* smooth = nullptr;  // [k] int8 only: multiplied with the shifted input, or null
    int64_t inputs = 0, n = 0;      // both multiples of 16
    int64_t k = 0;                  // inputs, and zeros behind them up to whole 64 bytes where not float32
    Precision precision = Precision::float32;
    bool split = false;  // float32 only: of each 32 inputs the three bfloat16 parts one behind the other, see amx.hpp

    bool converts() const { return split || precision != Precision::float32; }
    int64_t row_bytes() const { return k * (split ? 6 : bytes_of(precision)); }
};

// Rows of activations in the number format of a layer, `k` each; int8: x is about scale * code + low.
// Up to a multiple of kRowsATile there is memory behind the last row, of any content, where they are converted.
struct Activations {
    const void* values;
    const float* scales;
    const float* lows;
};

// What happens to a row of a layer's output while it is in registers.
enum class Finish : int { bias = 0, residual = 1, gelu = 2, gelu_tanh = 3, relu = 4 };

// Panels of a layer, 16 output channels each.
struct Panels {
    int64_t from, to;
};
constexpr int64_t kBlock = 4;

// Inference kernels of one instruction set.
struct EncoderKernels {
    bool splits;  // float32 layers are computed from the bfloat16 parts of their numbers
    // out[row][n] = finish(x . w + bias); `residual` is out's own earlier content where the finish says so. Only the
    // channels of the panels named are computed: whole blocks of kBlock, but for the last of the layer.
    void (*linear)(const Linear& layer, const Activations& x, int64_t rows, float* out, Finish finish, Panels panels);
    // Rows of `inputs` floats into the layer's number format.
    void (*convert)(const Linear& layer, const float* x, int64_t rows, void* values, float* scales, float* lows);
    // Every row to mean 0 and variance 1, then times weight plus bias.
    void (*normalise)(float* x, int64_t rows, int64_t n, const float* weight, const float* bias, float epsilon);
    // Attention of one text: qkv[length][3][hidden] -> out[length][hidden]. `distance`: bias by head and relative
    // position, [heads][2 * reach - 1], or null. scratch: floats, at least attention_scratch(length, head_dim).
    void (*attend)(const float* qkv, int64_t length, int64_t hidden, int64_t heads, const float* distance, int64_t reach,
                   float* scratch, float* out);
};

constexpr int64_t kRowsATile = 16;
constexpr int64_t kSplit = 32;  // inputs of a tile of bfloat16

inline int64_t attention_scratch(int64_t length, int64_t head_dim) {
    const int64_t keys = (length + kAlign - 1) / kAlign * kAlign;
    return keys * head_dim + 8 * keys;
}

const EncoderKernels& portable_encoder();
const EncoderKernels* avx2_encoder();
const EncoderKernels* avx512_encoder();
const EncoderKernels* amx_encoder();

struct Norm {
    std::vector<float> weight, bias;
};

struct Layer {
    Linear qkv, out, up, down;
    Norm after_attention, after_feed;
};

struct Shape {
    int64_t hidden, heads, feed, vocabulary, positions, first_position;
    float epsilon;
    Activation activation;
};

// The whole model. Word vectors are read in place from the weight file's memory; all else is packed here, once.
class Encoder {
public:
    Encoder(const Shape& shape, const float* words, int64_t word_dim);
    Encoder(const Encoder&) = delete;

    void positions(const float* table);                         // [positions][word_dim], or null; token type added in
    void embedding_norm(const float* weight, const float* bias);
    void projection(const float* weight, const float* bias);    // word_dim to hidden (ELECTRA)
    void distances(const float* table, int64_t reach);          // [heads][2 * reach - 1] (MPNet)
    void add_layer(const float* const (&weights)[6], const float* const (&biases)[6], const float* const (&norms)[4],
                   const Precision (&precisions)[4], const float* const (&shifts)[4], const float* const (&smooths)[4]);

    // tokens[total][hidden], or pooled[n][hidden] (mean where `cls` is false), or both; null where not wanted.
    void run(const int32_t* ids, const int64_t* offsets, int64_t n, float* tokens, float* pooled, bool cls, int n_threads) const;

    // Smallest and largest value of each input channel of the four layers of every block, over these texts:
    // for each block low and high of qkv [hidden], output [hidden], up [hidden], down [feed], one behind the other.
    std::vector<float> ranges(const int32_t* ids, const int64_t* offsets, int64_t n) const;

    int64_t n_bytes() const;
    const std::string& instruction_set() const { return instruction_set_; }

private:
    struct Work;
    void texts(Work& work, const int32_t* ids, const int64_t* offsets, const std::vector<int64_t>& order, size_t first,
               size_t last, float* tokens, float* pooled, bool cls) const;
    void embed(Work& work, const int32_t* ids, const int64_t* offsets, const std::vector<int64_t>& order, size_t first,
               size_t last) const;
    Linear pack(const float* weight, const float* bias, int64_t n, int64_t k, Precision precision, const float* shift,
                const float* smooth);
    const float* keep(const float* values, int64_t n);

    const EncoderKernels& kernels_;  // those that were active when this was made: its weights are laid out for them
    const std::string instruction_set_;
    Shape shape_;
    const float* words_;
    int64_t word_dim_;
    const float *positions_ = nullptr, *distances_ = nullptr;
    int64_t reach_ = 0;
    Norm embedding_norm_;
    Linear projection_;
    std::vector<Layer> layers_;
    std::vector<std::unique_ptr<float[]>> kept_;
    struct Free {
        void operator()(char* p) const;
    };
    std::vector<std::unique_ptr<char, Free>> panels_;
    int64_t n_bytes_ = 0;
};

}  // namespace likewise
