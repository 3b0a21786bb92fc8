// One sequence, one token at a time.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>

#include "bindings/cells.h"
#include "runtime/philox.h"
#include "stream.h"

namespace unspool {
namespace {

using Seen = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

struct PyStream : Stream {
  std::vector<nb::object> alive;  // the arrays and packed matrices that the layers point into

  std::vector<OwnParameters> own;

  PyStream(nb::list specs, const Panels& output, std::optional<Floats> bias, nb::list keep_alive, nb::list clusters) {
    Vt = output.shape;
    for (nb::handle item : specs) add_layer(nb::cast<nb::tuple>(item));
    require(!layers.empty(), "a stream needs at least one layer");
    require(Vt.K == layers.back().H && Vt.groups == 1 && Vt.N >= 1, "V does not fit the last layer");
    K = Vt.N - (int64_t)clusters.size();
    require(K >= 1, "the head has more clusters than rows");
    c = checked(bias, "c", {Vt.N});
    for (nb::handle item : clusters) add_tail(nb::cast<nb::tuple>(item));
    for (nb::handle item : clusters) alive.push_back(nb::borrow(item));
    for (nb::handle item : keep_alive) alive.push_back(nb::borrow(item));
    for (nb::handle item : specs) alive.push_back(nb::borrow(item));
    prepare();
  }

  void add_layer(const nb::tuple& spec) {
    require(spec.size() == 8, "a layer is (cell, activation, hidden, W, table, U, b, parameters)");
    const int64_t below = layers.empty() ? 0 : layers.back().H;
    StreamLayer layer{};
    layer.cell = find_cell(nb::cast<std::string>(spec[0]));
    layer.activation = nb::cast<int>(spec[1]);
    check_activation(layer.activation);
    const Cell& cell = products(Vt).cells[layer.cell];
    const Panels* W = spec[3].is_none() ? nullptr : &nb::cast<const Panels&>(spec[3]);
    check_W(cell, W, true);
    std::optional<Floats> table;
    if (!spec[4].is_none()) table = without_conversion(spec[4], "table");
    require((bool)table == layers.empty(), "the first layer, and no other, must read from a table");
    require(!table || table->ndim() == 2, "table must have two dimensions");
    if (W) layer.W = W->shape;
    layer.H = nb::cast<int64_t>(spec[2]);
    require(layer.H >= 1 && (!W || W->shape.K == layer.H), "W does not have " + std::to_string(layer.H) + " hidden units");
    require(!W || W->shape.packed_like(Vt), "W and V must be packed in the same precision, for the same instruction set");
    layer.P = cell.gates ? cell.gates * layer.H : table ? (int64_t)table->shape(1) : below;
    if (table) {
      inputs = (int64_t)table->shape(0);
      layer.table = checked(*table, "table", {inputs, layer.P});
    } else if (cell.gates) {
      layer.U = nb::cast<const Panels&>(spec[5]).shape;
      require(layer.U.K == below && layer.U.N == layer.P && layer.U.groups == 1 && layer.U.packed_like(Vt), "U does not fit the layer below");
      layer.b = checked(without_conversion(spec[6], "b"), "b", {layer.P});
      layer.X = below;
    }
    own.emplace_back(cell, nb::cast<nb::list>(spec[7]), layer.H, layer.P, true, Vt, layer.parameters);
    layers.push_back(std::move(layer));
  }

  void add_tail(const nb::tuple& spec) {
    require(spec.size() == 3, "a tail is (P, V, c)");
    StreamTail tail{};
    tail.Pt = nb::cast<const Panels&>(spec[0]).shape;
    tail.Vt = nb::cast<const Panels&>(spec[1]).shape;
    require(tail.Pt.K == Vt.K && tail.Pt.N == tail.Vt.K && tail.Pt.groups == 1 && tail.Vt.groups == 1 && tail.Vt.N >= 1, "P and V of a tail do not fit");
    require(tail.Pt.precision == Precision::FLOAT32 && tail.Vt.precision == Precision::FLOAT32, "tails must be in float32");
    tail.c = checked(without_conversion(spec[2], "c"), "c", {tail.Vt.N});
    K += tail.Vt.N;
    tails.push_back(std::move(tail));
  }

  void read(int32_t id) {
    require(id >= 0 && id < inputs, "token " + std::to_string(id) + " is outside 0 to " + std::to_string(inputs - 1));
    step(id);
  }
  int32_t choose(double u, double temperature, int64_t top_k, double top_p, double min_p, double penalty, std::optional<Seen> seen) {
    require(std::isfinite(temperature) && temperature >= 0.0, "temperature must be 0 or more");
    require(top_p > 0.0 && top_p <= 1.0, "top_p must be above 0 and at most 1");
    require(min_p >= 0.0 && min_p <= 1.0, "min_p must be at least 0 and at most 1");
    require(std::isfinite(penalty) && penalty > 0.0, "repetition_penalty must be above 0");
    require(!seen || (int64_t)seen->shape(0) == K, "seen must have one value for each token");
    require(top_k >= 0, "top_k must be 0 (all) or more");
    require(u >= 0.0 && u < 1.0, "u must be at least 0 and below 1");
    const int32_t id = draw({seen ? seen->data() : nullptr, (float)penalty, (float)temperature, top_k, (float)top_p, (float)min_p}, u);
    require(id >= 0, "the logits are not finite numbers: nothing can be drawn from them");
    return id;
  }
  // One call a token: reads `id`, draws the next with the `index`-th number of the seed's stream.
  int32_t advance(int32_t id, uint64_t seed, uint64_t index, double temperature, int64_t top_k, double top_p, double min_p,
                  double penalty, std::optional<Seen> seen) {
    read(id);
    return choose(uniform(seed, index), temperature, top_k, top_p, min_p, penalty, seen);
  }
  Array logits() const {
    Array out = array({(size_t)K});
    std::memcpy(out.data(), o.at, (size_t)K * 4);
    return out;
  }
  // The next draws are from these logits.
  void set_logits(Floats logits) { std::memcpy(o.at, checked(logits, "logits", {K}), (size_t)K * 4); }
  std::vector<std::pair<Array, Array>> state() const {
    std::vector<std::pair<Array, Array>> parts;
    for (const auto& layer : layers) {
      Array h = array({(size_t)layer.H}), s = array({(size_t)layer.H});
      std::memcpy(h.data(), layer.h.at, (size_t)layer.H * 4);
      std::memcpy(s.data(), layer.s.at, (size_t)layer.H * 4);
      parts.emplace_back(std::move(h), std::move(s));
    }
    return parts;
  }
  void set_state(nb::list parts) {
    require(parts.size() == layers.size(), "one (h, s) for each layer is needed");
    std::vector<Floats> arrays;
    for (size_t i = 0; i < layers.size(); i++) {
      auto pair = nb::cast<nb::tuple>(parts[i]);
      require(pair.size() == 2, "a state is (h, s)");
      const int64_t H = layers[i].H;
      arrays.push_back(without_conversion(pair[0], "h"));
      arrays.push_back(without_conversion(pair[1], "s"));
      checked(arrays[2 * i], "h", {H});
      checked(arrays[2 * i + 1], "s", {H});
    }
    for (size_t i = 0; i < layers.size(); i++) {  // all is well: now, and not in part
      std::memcpy(layers[i].h.at, arrays[2 * i].data(), (size_t)layers[i].H * 4);
      std::memcpy(layers[i].s.at, arrays[2 * i + 1].data(), (size_t)layers[i].H * 4);
    }
  }
};

}  // namespace

void bind_stream(nb::module_& m) {
  nb::class_<PyStream>(m, "Stream")
      .def(nb::init<nb::list, const Panels&, std::optional<Floats>, nb::list, nb::list>(), "layers"_a, "output"_a,
           "bias"_a.noconvert().none(), "alive"_a, "tails"_a = nb::list(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>())
      .def("read", &PyStream::read, "id"_a)
      .def("choose", &PyStream::choose, "u"_a, "temperature"_a, "top_k"_a, "top_p"_a, "min_p"_a, "repetition_penalty"_a,
           "seen"_a.noconvert().none())
      .def("advance", &PyStream::advance, "id"_a, "seed"_a, "index"_a, "temperature"_a, "top_k"_a, "top_p"_a, "min_p"_a,
           "repetition_penalty"_a, "seen"_a.noconvert().none())
      .def("logits", &PyStream::logits)
      .def("set_logits", &PyStream::set_logits, "logits"_a.noconvert())
      .def("state", [](const PyStream& s) {
        nb::list parts;
        for (auto& [h, c] : s.state()) parts.append(nb::make_tuple(nb::cast(h), nb::cast(c)));
        return parts;
      })
      .def("set_state", &PyStream::set_state, "parts"_a);
}

}  // namespace unspool
