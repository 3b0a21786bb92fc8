// The output layer with its loss.
#include "bindings/arrays.h"

#include <nanobind/stl/optional.h>

#include <numeric>

#include "runtime/caches.h"

namespace unspool {
namespace {

nb::tuple softmax_cross_entropy(Floats h, const Panels& Vt, const Panels* V, std::optional<Floats> c, Ids y, int64_t B, double scale,
                                std::optional<Written> dV, std::optional<Written> dc, bool accumulate) {
  require(h.ndim() == 2, "h must have two dimensions (rows, H)");
  SoftmaxArgs a{};
  a.R = (int64_t)h.shape(0);
  a.H = Vt.shape.K;
  a.K = Vt.shape.N;
  require(a.K >= 1 && a.H >= 1 && Vt.shape.groups == 1 && Vt.shape.cut == 0, "V must have at least one row and one column");
  a.h__RH = checked(h, "h", {a.R, a.H});
  a.Vt = Vt.shape;
  a.c__K = checked(c, "c", {a.K});
  require(y.ndim() == 1 && (int64_t)y.shape(0) == a.R, "y must hold one target for each of the " + std::to_string(a.R) + " rows");
  const CopiedIds targets(y);
  a.y__R = targets.data();
  int64_t count = 0;
  for (int64_t r = 0; r < a.R; r++) {
    if (a.y__R[r] >= a.K)
      throw Refused("y holds " + std::to_string(a.y__R[r]) + " at position " + std::to_string(r) +
                                 "; expected at most " + std::to_string(a.K - 1) + ", or a negative number for a masked target");
    count += a.y__R[r] >= 0;
  }
  a.scale = (float)scale;
  a.dV__KH = checked(dV, "dV", {a.K, a.H});
  a.dc__K = checked(dc, "dc", {a.K});
  a.accumulate = accumulate;
  nb::object dh = nb::none();
  if (V) {
    require(V->shape.K == a.K && V->shape.N == a.H && V->shape.groups == 1 && V->shape.cut == 0, "V must be packed as it is");
    require(V->shape.packed_like(Vt.shape), "V must be packed like its transpose: in the same precision, for the same instruction set");
    require(a.dV__KH, "a gradient of h comes with one of V: pass dV");
    a.V = V->shape;
    Array values = array({(size_t)a.R, (size_t)a.H});
    a.dh__RH = values.data();
    dh = nb::cast(std::move(values));
  }
  // Large blocks for a small vocabulary, little memory for a large one.
  a.block = std::max<int64_t>(64, std::min<int64_t>(1024, (int64_t(1) << 21) / a.K / 32 * 32));
  const int64_t grain = Vt.shape.precision == Precision::BF16 ? std::lcm<int64_t>(B, 32) : B;  // whole steps, and whole blocks of 32 rows
  // Tiles wait for V if it exceeds the L2 cache: the more rows a thread multiplies at a time, the less often it reads V.
  const bool many_rows = products(Vt.shape).by_tiles && Vt.shape.floats() * 4 > L2_bytes();
  const bool shared = B >= threads() && grain <= a.block && !many_rows;  // else threads split each block evenly
  a.block = shared ? a.block / grain * grain : a.block;
  a.B = shared ? B : a.block;
  Block o = scratch_block(std::min(a.block, std::max<int64_t>(a.R, 1)) * a.K);
  const int most = threads();
  Block work = scratch_block(a.dh__RH ? outer_scratch(a.H, Vt.shape.precision) * most : 1);
  a.rounded_floats = rounded_floats(std::max(a.H, a.K));
  Block rounded = rounded_block(Vt.shape.precision, a.rounded_floats, most);
  auto nats = array<double>({(size_t)a.R});
  a.o__block_K = o.at;
  a.scratch = work.at;
  a.rounded = rounded.at;
  a.loss__R = nats.data();
  {
    GilReleased released;
    parallel([&, body = products(Vt.shape).softmax](Team team) { body(a, team); }, std::min(most, at_most_threads((double)a.R * a.H * a.K)));
  }
  double sum = 0.0;  // t rising
  for (int64_t r = 0; r < a.R; r++) sum += a.loss__R[r];
  return nb::make_tuple(sum, count, nb::cast(std::move(nats)), dh);
}

// start + log softmax(o) of each row.
Array log_softmax_rows(Matrix o, Floats start) {
  const int64_t R = (int64_t)o.shape(0), K = (int64_t)o.shape(1), stride = row_stride(o, "o");
  const float* from = o.data();
  const float* begin = checked(start, "start", {R});
  Array out = array({(size_t)R, (size_t)K});
  float* to = out.data();
  if (R * K == 0) return out;
  GilReleased released;
  parallel(
      [&, body = kernels().log_softmax](Team team) {
        const Range mine = partition(R, 1, team.index, team.count);
        for (int64_t r = mine.begin; r < mine.end; r++) {
          std::memcpy(to + r * K, from + r * stride, (size_t)K * 4);
          body(to + r * K, K, begin[r]);
        }
      },
      at_most_threads(16.0 * (double)R * (double)K));
  return out;
}

}  // namespace

void bind_losses(nb::module_& m) {
  m.def("softmax_cross_entropy", &softmax_cross_entropy, "h"_a.noconvert(), "Vt"_a, "V"_a.none(), "c"_a.noconvert().none(),
        "y"_a.noconvert(), "B"_a, "scale"_a, "dV"_a.noconvert().none(), "dc"_a.noconvert().none(), "accumulate"_a);
  m.def("log_softmax_rows", &log_softmax_rows, "o"_a.noconvert(), "start"_a.noconvert());
}

}  // namespace unspool
