// The Python module likewise._native. Shapes are checked by the Python side, which is the only caller.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <nanobind/stl/optional.h>

#include "encoder.hpp"
#include "rcmd.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace likewise;

namespace {

template <class T>
using In = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::c_contig, nb::device::cpu>;
using Offsets = In<int64_t>;

int64_t texts_in(const Offsets& offsets) { return int64_t(offsets.shape(0)) - 1; }

template <class Place>
void bind_places(nb::module_& m) {
    m.def(
        "score_places",
        [](In<float> unit, Offsets offsets, const Candidates& right, Offsets right_offsets, Out<float> scores,
           Out<Place> row_places, Out<Place> column_places, int n_threads) {
            nb::gil_scoped_release release;
            const Left left(unit.data(), offsets.data(), texts_in(offsets), right.stride(), right.precision());
            score_places<Place>(left.rows(), right, right_offsets.data(), scores.data(), row_places.data(),
                                column_places.data(), n_threads);
        });
    m.def("gradient", [](Offsets x_offsets, In<float> y, Offsets y_offsets, In<Place> own, In<Place> other, In<float> weights,
                         int64_t x_step, int64_t y_step, Out<float> out, int n_threads) {
        nb::gil_scoped_release release;
        gradient<Place>(x_offsets.data(), texts_in(x_offsets), y.data(), y_offsets.data(), texts_in(y_offsets),
                        int64_t(y.shape(1)), own.data(), other.data(), weights.data(), x_step, y_step, out.data(), n_threads);
    });
}

// The arrays of one layer by role, as nested lists: see likewise/backbone/native.py.
const float* at(const nb::list& arrays, size_t i) {
    const nb::object array = arrays[i];
    return array.is_none() ? nullptr : nb::cast<In<float>>(array).data();
}

void bind_encoder(nb::module_& m) {
    nb::class_<Encoder>(m, "Encoder")
        .def(
            "__init__",
            [](Encoder* self, std::vector<int64_t> sizes, float epsilon, int activation, In<float> words) {
                const Shape shape{sizes.at(0), sizes.at(1), sizes.at(2), int64_t(words.shape(0)), sizes.at(3), sizes.at(4),
                                  epsilon,     Activation(activation)};
                new (self) Encoder(shape, words.data(), int64_t(words.shape(1)));
            },
            nb::keep_alive<1, 5>())
        .def("positions", [](Encoder& self, In<float> table) { self.positions(table.data()); })
        .def("embedding_norm", [](Encoder& self, In<float> w, In<float> b) { self.embedding_norm(w.data(), b.data()); })
        .def("projection", [](Encoder& self, In<float> w, In<float> b) { self.projection(w.data(), b.data()); })
        .def("distances", [](Encoder& self, In<float> table, int64_t reach) { self.distances(table.data(), reach); })
        .def("add_layer",
             [](Encoder& self, nb::list weights, nb::list biases, nb::list norms, std::vector<int> precisions, nb::list shifts,
                nb::list smooths) {
                 const float *w[6], *b[6], *n[4], *shift[4], *smooth[4];
                 Precision p[4];
                 for (size_t i = 0; i < 6; ++i) w[i] = at(weights, i), b[i] = at(biases, i);
                 for (size_t i = 0; i < 4; ++i) {
                     n[i] = at(norms, i), shift[i] = at(shifts, i), smooth[i] = at(smooths, i);
                     p[i] = Precision(precisions.at(i));
                 }
                 nb::gil_scoped_release release;
                 self.add_layer(w, b, n, p, shift, smooth);
             })
        .def("run",
             [](const Encoder& self, In<int32_t> ids, Offsets offsets, std::optional<Out<float>> tokens,
                std::optional<Out<float>> pooled, bool cls, int n_threads) {
                 nb::gil_scoped_release release;
                 self.run(ids.data(), offsets.data(), texts_in(offsets), tokens ? tokens->data() : nullptr,
                          pooled ? pooled->data() : nullptr, cls, n_threads);
             },
             "ids"_a, "offsets"_a, "tokens"_a.none(), "pooled"_a.none(), "cls"_a, "n_threads"_a)
        .def("ranges",
             [](const Encoder& self, In<int32_t> ids, Offsets offsets) {
                 nb::gil_scoped_release release;
                 return self.ranges(ids.data(), offsets.data(), texts_in(offsets));
             })
        .def_prop_ro("n_bytes", &Encoder::n_bytes)
        .def_prop_ro("instruction_set", &Encoder::instruction_set);
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "Compiled kernels; likewise.kernels and likewise.backbone are their public face.";
    nb::set_leak_warnings(false);  // an object that lives until the interpreter ends is no leak
    m.def("available", &available, "Instruction sets that this build and this processor have, the last the best.");
    m.def("use", &use, "name"_a, "Choose an instruction set; \"\" for the best. False if it is not available.");
    m.def("active", [] { return std::string(active().name); });
    m.def("padded", &padded, "dim"_a, "Floats a token takes.");
    m.def(
        "peak", [](int precision, double seconds, bool tiles) { return active().peak(Precision(precision), seconds, tiles); },
        "precision"_a, "seconds"_a, "tiles"_a = true, nb::call_guard<nb::gil_scoped_release>(),
        "Operations a second of one core in a loop that stays in registers; `tiles`: in those of AMX where it has them, "
        "as the encoder does and scoring does not.");

    m.def("normalise", [](In<float> tokens, Offsets offsets, Out<float> unit, Out<float> lengths, int n_threads) {
        nb::gil_scoped_release release;
        const Texts texts{tokens.data(), offsets.data(), texts_in(offsets), int64_t(tokens.shape(1))};
        return normalise(texts, unit.data(), lengths.data(), n_threads);
    });
    m.def("through_normalise", [](In<float> unit, In<float> lengths, In<float> g, Out<float> out, int n_threads) {
        nb::gil_scoped_release release;
        through_normalise(unit.data(), lengths.data(), g.data(), int64_t(out.shape(0)), int64_t(out.shape(1)), out.data(),
                          n_threads);
    });

    nb::class_<Candidates>(m, "Candidates")
        .def("__init__",
             [](Candidates* self, In<float> unit, Offsets offsets, int precision, int n_threads) {
                 nb::gil_scoped_release release;
                 new (self) Candidates(unit.data(), offsets.data(), texts_in(offsets), int64_t(unit.shape(1)),
                                       Precision(precision), n_threads);
             })
        .def_prop_ro("n_bytes", &Candidates::n_bytes);

    m.def("score", [](In<float> unit, Offsets offsets, const Candidates& right, Out<float> scores, int n_threads) {
        nb::gil_scoped_release release;
        const Left left(unit.data(), offsets.data(), texts_in(offsets), right.stride(), right.precision());
        score(left.rows(), right, scores.data(), n_threads);
    });
    m.def("top_k", [](In<float> unit, Offsets offsets, const Candidates& right, Out<float> values, Out<int64_t> indices,
                      int n_threads) {
        nb::gil_scoped_release release;
        const Left left(unit.data(), offsets.data(), texts_in(offsets), right.stride(), right.precision());
        top_k(left.rows(), right, int64_t(values.shape(1)), values.data(), indices.data(), n_threads);
    });
    m.def("top_pairs", [](In<float> unit, Offsets offsets, const Candidates& same, Out<float> values, Out<int64_t> left,
                          Out<int64_t> right, int n_threads) {
        nb::gil_scoped_release release;
        const Left texts(unit.data(), offsets.data(), texts_in(offsets), same.stride(), same.precision());
        top_pairs(texts.rows(), same, int64_t(values.shape(0)), values.data(), left.data(), right.data(), n_threads);
    });
    m.def("score_pairs", [](In<float> a, Offsets a_offsets, In<float> b, Offsets b_offsets, Out<float> forward,
                            Out<float> backward, Out<int32_t> row_places, Out<int32_t> column_places, int n_threads) {
        nb::gil_scoped_release release;
        score_pairs(a.data(), a_offsets.data(), b.data(), b_offsets.data(), texts_in(a_offsets), int64_t(a.shape(1)),
                    forward.data(), backward.data(), row_places.size() ? row_places.data() : nullptr,
                    column_places.size() ? column_places.data() : nullptr, n_threads);
    });
    m.def("cosines", [](In<float> x, In<float> y, Out<float> out) {
        active().cosines(x.data(), int64_t(x.shape(0)), y.data(), int64_t(y.shape(0)), int64_t(x.shape(1)), out.data());
    });
    bind_encoder(m);
    bind_places<uint8_t>(m);
    bind_places<uint16_t>(m);

}
