#include "encoder.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <numeric>

#include "parallel.hpp"
#include "rcmd.hpp"

namespace likewise {
namespace {

// Tokens that a thread carries through all layers at a time, if it can: at most so many that their numbers stay in the
// second-level cache, where those that are converted need more.
constexpr int64_t kFewest = 32, kMost = 256, kMostConverted = 128;

constexpr int kTeam = 4;              // threads at most that share the layers of a single task; measured with two
constexpr int64_t kWorthATeam = 2e6;  // bytes of weights from which on starting threads takes less than it saves

const EncoderKernels& active_kernels() {
    const std::string name = active().name;
    if (name == "amx") return *amx_encoder();
    if (name == "avx512") return *avx512_encoder();
    if (name == "avx2") return *avx2_encoder();
    return portable_encoder();
}

uint16_t bfloat16_of(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float float_of(uint16_t x) {
    const uint32_t bits = uint32_t(x) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

int64_t up_to(int64_t n, int64_t whole) { return (n + whole - 1) / whole * whole; }

Norm norm_of(const float* weight, const float* bias, int64_t n) { return {{weight, weight + n}, {bias, bias + n}}; }

}  // namespace

void Encoder::Free::operator()(char* p) const { ::operator delete(p, std::align_val_t(64)); }

// Memory of one task. A buffer's row is as wide as its name says: hidden, 3 hidden, or the feed-forward width.
struct Encoder::Work {
    const EncoderKernels& kernels;
    std::vector<float> x, qkv, context, feed, scratch, scales, lows;
    std::vector<char> converted;
    Team* team = nullptr;     // threads that share the layers, if there is but one task
    float* ranges = nullptr;  // where the ranges of the next layer's input are kept, while they are looked for

    Work(const EncoderKernels& own, const Shape& shape, int64_t rows, int64_t longest, int64_t word_dim) : kernels(own) {
        const int64_t widest = std::max({shape.feed, shape.hidden, word_dim});
        x.resize(size_t(rows * shape.hidden));
        qkv.resize(size_t(rows * 3 * shape.hidden));
        context.resize(size_t(rows * std::max(shape.hidden, word_dim)));
        feed.resize(size_t(rows * shape.feed));
        scratch.resize(size_t(attention_scratch(longest, shape.hidden / shape.heads)));
        scales.resize(size_t(rows));
        lows.resize(size_t(rows));
        converted.resize(size_t(up_to(rows, kRowsATile) * up_to(widest, 64) * (kernels.splits ? 6 : 2)));
    }

    void apply(const Linear& layer, const float* from, int64_t rows, float* to, Finish finish) {
        if (ranges) observe(from, rows, layer.inputs);
        Activations given{from, nullptr, nullptr};
        if (layer.converts()) {
            kernels.convert(layer, from, rows, converted.data(), scales.data(), lows.data());
            given = {converted.data(), scales.data(), lows.data()};
        }
        const int64_t panels = layer.n / kGroup, blocks = (panels + kBlock - 1) / kBlock;
        const auto part = [&](int thread, int threads) {
            const Panels own{blocks * thread / threads * kBlock, std::min(blocks * (thread + 1) / threads * kBlock, panels)};
            if (own.from < own.to) kernels.linear(layer, given, rows, to, finish, own);
        };
        if (team) team->together(part);
        else part(0, 1);
    }

    void observe(const float* from, int64_t rows, int64_t k) {
        float *low = ranges, *high = ranges + k;
        for (int64_t row = 0; row < rows; ++row)
            for (int64_t c = 0; c < k; ++c) {
                low[c] = std::min(low[c], from[row * k + c]);
                high[c] = std::max(high[c], from[row * k + c]);
            }
        ranges += 2 * k;
    }
};

Encoder::Encoder(const Shape& shape, const float* words, int64_t word_dim)
    : kernels_(active_kernels()), instruction_set_(active().name), shape_(shape), words_(words), word_dim_(word_dim) {}

const float* Encoder::keep(const float* values, int64_t n) {
    kept_.emplace_back(new float[size_t(n)]);
    std::copy(values, values + n, kept_.back().get());
    n_bytes_ += n * 4;
    return kept_.back().get();
}

void Encoder::positions(const float* table) { positions_ = keep(table, shape_.positions * word_dim_); }
void Encoder::embedding_norm(const float* weight, const float* bias) { embedding_norm_ = norm_of(weight, bias, word_dim_); }
void Encoder::projection(const float* weight, const float* bias) {
    projection_ = pack(weight, bias, shape_.hidden, word_dim_, Precision::float32, nullptr, nullptr);
}
void Encoder::distances(const float* table, int64_t reach) {
    distances_ = keep(table, shape_.heads * (2 * reach - 1));
    reach_ = reach;
}

// weights: query, key, value, output, up, down, each [n][k] as stored; norms: weight and bias after either half.
// precisions, shifts, smooths: of the four layers qkv, output, up, down.
void Encoder::add_layer(const float* const (&weights)[6], const float* const (&biases)[6], const float* const (&norms)[4],
                        const Precision (&precisions)[4], const float* const (&shifts)[4], const float* const (&smooths)[4]) {
    const int64_t h = shape_.hidden, f = shape_.feed;
    std::vector<float> qkv(size_t(3 * h * h)), bias(size_t(3 * h));
    for (int part = 0; part < 3; ++part) {
        std::copy(weights[part], weights[part] + h * h, qkv.begin() + part * h * h);
        std::copy(biases[part], biases[part] + h, bias.begin() + part * h);
    }
    Layer layer;
    layer.qkv = pack(qkv.data(), bias.data(), 3 * h, h, precisions[0], shifts[0], smooths[0]);
    layer.out = pack(weights[3], biases[3], h, h, precisions[1], shifts[1], smooths[1]);
    layer.up = pack(weights[4], biases[4], f, h, precisions[2], shifts[2], smooths[2]);
    layer.down = pack(weights[5], biases[5], h, f, precisions[3], shifts[3], smooths[3]);
    layer.after_attention = norm_of(norms[0], norms[1], h);
    layer.after_feed = norm_of(norms[2], norms[3], h);
    layers_.push_back(std::move(layer));
}

Linear Encoder::pack(const float* weight, const float* bias, int64_t n, int64_t inputs, Precision precision, const float* shift,
                     const float* smooth) {
    if (precision != Precision::int8) shift = smooth = nullptr;  // other formats need neither
    Linear layer;
    layer.n = n;
    layer.inputs = inputs;
    layer.precision = precision;
    layer.split = precision == Precision::float32 && kernels_.splits;
    const int64_t k = layer.k = layer.split                        ? up_to(inputs, kSplit)
                                : precision == Precision::float32 ? inputs
                                                                  : up_to(inputs, 64 / bytes_of(precision));
    const int64_t bytes = n * layer.row_bytes(), pack = precision == Precision::float32 ? 1 : precision == Precision::bfloat16 ? 2 : 4;
    panels_.emplace_back(static_cast<char*>(::operator new(size_t(bytes), std::align_val_t(64))));
    char* panel = panels_.back().get();
    n_bytes_ += bytes;
    std::vector<float> row(static_cast<size_t>(k)), moved(bias, bias + n), scales(static_cast<size_t>(n)), sums(scales);
    for (int64_t c = 0; c < n; ++c) {
        for (int64_t e = 0; e < inputs; ++e) {
            row[size_t(e)] = weight[c * inputs + e];
            if (shift) moved[size_t(c)] += weight[c * inputs + e] * shift[e];
            if (smooth) row[size_t(e)] /= smooth[e];
        }
        float most = 0;
        for (const float w : row) most = std::max(most, std::fabs(w));
        scales[size_t(c)] = most / 127;
        const float inverse = most > 0 ? 127 / most : 0;
        for (int64_t e = 0; e < k; ++e) {
            const int64_t at = (c / kGroup * k + e / pack * pack) * kGroup + c % kGroup * pack + e % pack;
            if (layer.split) {
                const int64_t tile = (c / kGroup * k + e / kSplit * kSplit) * kGroup * 3 + e % kSplit / 2 * 2 * kGroup;
                float rest = row[size_t(e)];
                for (int64_t part = 0; part < 3; ++part) {
                    const uint16_t own = bfloat16_of(rest);
                    reinterpret_cast<uint16_t*>(panel)[tile + part * kSplit * kGroup + c % kGroup * 2 + e % 2] = own;
                    rest -= float_of(own);
                }
            } else if (precision == Precision::float32) {
                reinterpret_cast<float*>(panel)[at] = row[size_t(e)];
            } else if (precision == Precision::bfloat16) {
                reinterpret_cast<uint16_t*>(panel)[at] = bfloat16_of(row[size_t(e)]);
            } else {
                const int code = int(std::nearbyint(row[size_t(e)] * inverse));
                reinterpret_cast<int8_t*>(panel)[at] = int8_t(code);
                sums[size_t(c)] += float(code);
            }
        }
    }
    layer.panel = panel;
    layer.bias = keep(moved.data(), n);
    if (precision == Precision::int8) {
        layer.scales = keep(scales.data(), n);
        layer.sums = keep(sums.data(), n);
        if (smooth) {
            layer.shift = keep(shift, inputs);
            layer.smooth = keep(smooth, inputs);
        }
    }
    return layer;
}

void Encoder::embed(Work& work, const int32_t* ids, const int64_t* offsets, const std::vector<int64_t>& order, size_t first,
                    size_t last) const {
    float* to = projection_.panel ? work.context.data() : work.x.data();
    int64_t rows = 0;
    for (size_t at = first; at < last; ++at) {
        int64_t place = shape_.first_position;
        for (int64_t t = offsets[order[at]]; t < offsets[order[at] + 1]; ++t, ++rows) {
            const float* word = words_ + int64_t(ids[t]) * word_dim_;
            // Where positions begin behind the padding index, a padding token stands there and is not counted.
            const float* position = positions_ + (ids[t] == shape_.first_position - 1 ? ids[t] : place++) * word_dim_;
            for (int64_t k = 0; k < word_dim_; ++k) to[rows * word_dim_ + k] = word[k] + position[k];
        }
    }
    kernels_.normalise(to, rows, word_dim_, embedding_norm_.weight.data(), embedding_norm_.bias.data(), shape_.epsilon);
    if (projection_.panel) work.apply(projection_, to, rows, work.x.data(), Finish::bias);
}

void Encoder::texts(Work& work, const int32_t* ids, const int64_t* offsets, const std::vector<int64_t>& order, size_t first,
                    size_t last, float* tokens, float* pooled, bool cls) const {
    const int64_t h = shape_.hidden;
    float* const ranges = work.ranges;
    work.ranges = nullptr;
    embed(work, ids, offsets, order, first, last);
    work.ranges = ranges;
    int64_t rows = 0;
    for (size_t at = first; at < last; ++at) rows += offsets[order[at] + 1] - offsets[order[at]];
    const Finish activation = shape_.activation == Activation::gelu        ? Finish::gelu
                              : shape_.activation == Activation::gelu_tanh ? Finish::gelu_tanh
                                                                           : Finish::relu;
    for (const Layer& layer : layers_) {
        work.apply(layer.qkv, work.x.data(), rows, work.qkv.data(), Finish::bias);
        int64_t row = 0;
        for (size_t at = first; at < last; ++at) {
            const int64_t length = offsets[order[at] + 1] - offsets[order[at]];
            kernels_.attend(work.qkv.data() + row * 3 * h, length, h, shape_.heads, distances_, reach_, work.scratch.data(),
                             work.context.data() + row * h);
            row += length;
        }
        work.apply(layer.out, work.context.data(), rows, work.x.data(), Finish::residual);
        kernels_.normalise(work.x.data(), rows, h, layer.after_attention.weight.data(), layer.after_attention.bias.data(),
                            shape_.epsilon);
        work.apply(layer.up, work.x.data(), rows, work.feed.data(), activation);
        work.apply(layer.down, work.feed.data(), rows, work.x.data(), Finish::residual);
        kernels_.normalise(work.x.data(), rows, h, layer.after_feed.weight.data(), layer.after_feed.bias.data(), shape_.epsilon);
    }
    int64_t row = 0;
    for (size_t at = first; at < last; ++at) {
        const int64_t text = order[at], length = offsets[text + 1] - offsets[text];
        const float* states = work.x.data() + row * h;
        if (tokens) std::copy(states, states + length * h, tokens + offsets[text] * h);
        if (pooled) {
            float* sum = pooled + text * h;
            std::copy(states, states + h, sum);
            if (!cls) {
                for (int64_t t = 1; t < length; ++t)
                    for (int64_t k = 0; k < h; ++k) sum[k] += states[t * h + k];
                for (int64_t k = 0; k < h; ++k) sum[k] /= float(length);
            }
        }
        row += length;
    }
}

void Encoder::run(const int32_t* ids, const int64_t* offsets, int64_t n, float* tokens, float* pooled, bool cls,
                  int n_threads) const {
    std::vector<int64_t> order;
    for (int64_t text = 0; text < n; ++text)
        if (offsets[text + 1] > offsets[text]) order.push_back(text);
        else if (pooled) std::fill(pooled + text * shape_.hidden, pooled + (text + 1) * shape_.hidden, 0.0f);
    const auto length = [&](int64_t text) { return offsets[text + 1] - offsets[text]; };
    // Longest first, so that no thread is left with a long text at the end.
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return length(a) > length(b); });
    const int64_t limit = kernels_.splits ? kMostConverted : kMost;
    // As many tasks for each thread, each with its share of what is left, as near as whole texts come.
    const int64_t total = offsets[n], threads = std::max(n_threads, 1), rounds = (total + threads * limit - 1) / (threads * limit);
    const int64_t tasks = std::max<int64_t>(1, std::min(threads * rounds, total / kFewest));
    std::vector<size_t> starts{0};
    int64_t rows = 0, before = 0, share = total / tasks, most = 1;
    for (size_t at = 0; at < order.size(); ++at) {
        const int64_t own = length(order[at]);
        if (rows && (rows + own > limit || rows + own / 2 >= share)) {
            before += rows;
            share = (total - before) / std::max<int64_t>(1, tasks - int64_t(starts.size()));
            starts.push_back(at);
            rows = 0;
        }
        rows += own;
        most = std::max(most, rows);
    }
    if (order.empty()) return;
    starts.push_back(order.size());
    const int64_t longest = length(order[0]);
    if (starts.size() == 2 && n_threads > 1 && n_bytes_ >= kWorthATeam) {
        Team team(std::min(n_threads, kTeam));
        Work mine(kernels_, shape_, most, longest, word_dim_);
        mine.team = &team;
        return texts(mine, ids, offsets, order, 0, order.size(), tokens, pooled, cls);
    }
    std::vector<std::unique_ptr<Work>> work(static_cast<size_t>(std::max(n_threads, 1)));
    parallel(int64_t(starts.size()) - 1, n_threads, [&](int64_t task, int thread) {
        auto& mine = work[size_t(thread)];
        if (!mine) mine = std::make_unique<Work>(kernels_, shape_, most, longest, word_dim_);
        texts(*mine, ids, offsets, order, starts[size_t(task)], starts[size_t(task) + 1], tokens, pooled, cls);
    });
}

std::vector<float> Encoder::ranges(const int32_t* ids, const int64_t* offsets, int64_t n) const {
    std::vector<float> found(layers_.size() * size_t(2 * (3 * shape_.hidden + shape_.feed)));
    for (int64_t text = 0; text < n; ++text) {
        const int64_t length = offsets[text + 1] - offsets[text];
        if (!length) continue;
        Work work(kernels_, shape_, length, length, word_dim_);
        work.ranges = found.data();
        texts(work, ids, offsets, {text}, 0, 1, nullptr, nullptr, false);
    }
    return found;
}

int64_t Encoder::n_bytes() const { return n_bytes_; }

}  // namespace likewise
