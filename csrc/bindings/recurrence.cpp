// Windows of a recurrence, forward and backward.
#include "bindings/arrays.h"

#include <nanobind/stl/optional.h>

namespace unspool {
namespace {

using Body = void (*)(const WindowArgs&, Team);
Body forward_of(int cell) {
  const Kernels& k = kernels();
  return cell == ELMAN ? k.elman_forward : cell == LSTM ? k.lstm_forward : k.gru_forward;
}
Body backward_of(int cell) {
  const Kernels& k = kernels();
  return cell == ELMAN ? k.elman_backward : cell == LSTM ? k.lstm_backward : k.gru_backward;
}

void run_window(Body body, const WindowArgs& args) {
  if (args.B == 0) return;
  GilReleased free;
  parallel([&](Team team) { body(args, team); }, at_most_threads((double)args.B * args.H * args.H * (double)args.tau));
}

std::optional<CopiedIds> checked_lengths(const std::optional<Ids>& lengths, int64_t B, int64_t tau) {
  if (!lengths) return std::nullopt;
  require(lengths->ndim() == 1 && (int64_t)lengths->shape(0) == B,
          "lengths must hold one number for each of the " + std::to_string(B) + " rows");
  CopiedIds copied(*lengths);
  for (int64_t b = 0; b < B; b++)
    if (copied.data()[b] < 0 || copied.data()[b] > tau)
      throw Refused("lengths holds " + std::to_string(copied.data()[b]) + " for row " + std::to_string(b) + "; expected 0 to " +
                std::to_string(tau));
  return copied;
}

nb::tuple window_forward(int cell, int activation, std::optional<Floats> p, std::optional<Floats> table, std::optional<Ids> ids,
                         const Panels& W, Floats h0, std::optional<Floats> s0, std::optional<Floats> d,
                         std::optional<Ids> lengths, bool reverse, std::optional<Floats> keep) {
  check_cell(cell, activation);
  const int64_t G = gates_of(cell), H = W.shape.K;
  require(H >= 1 && W.shape.N == G * H && W.shape.groups == G,
          "W must be packed from shape (" + std::to_string(G * H) + ", " + std::to_string(H) + ") in " + std::to_string(G) + " groups");
  require(h0.ndim() == 2, "h0 must have two dimensions (B, H)");
  require((bool)p != (bool)(table && ids), "pass either p, or table and ids");
  WindowArgs a{};
  a.B = (int64_t)h0.shape(0);
  a.H = H;
  a.activation = activation;
  a.reverse = reverse;
  a.W = W.shape;
  const float* h_start = checked(h0, "h0", {a.B, H});
  std::optional<CopiedIds> own_ids;
  if (p) {
    require(p->ndim() == 3, "p must have three dimensions (tau, B, G H)");
    a.tau = (int64_t)p->shape(0);
    a.p__tBG = checked(*p, "p", {a.tau, a.B, G * H});
  } else {
    require(ids->ndim() == 2 && (int64_t)ids->shape(1) == a.B, "ids must have shape (tau, " + std::to_string(a.B) + ")");
    require(table->ndim() == 2, "table must have two dimensions (K, G H)");
    a.tau = (int64_t)ids->shape(0);
    a.table__KG = checked(*table, "table", {(int64_t)table->shape(0), G * H});
    own_ids.emplace(*ids);
    a.ids__tB = own_ids->data();
  }
  const auto own_lengths = checked_lengths(lengths, a.B, a.tau);
  a.lengths__B = own_lengths ? own_lengths->data() : nullptr;
  if (a.ids__tB) {
    const int64_t K = (int64_t)table->shape(0);
    for (int64_t t = 0; a.B > 0 && t < a.tau; t++)
      for (int64_t b = 0; b < a.B; b++) {
        const int32_t id = a.ids__tB[t * a.B + b];
        if (id < 0 || id >= K)
          require(a.lengths__B && t >= a.lengths__B[b], "ids holds " + std::to_string(id) + " at step " + std::to_string(t) + ", row " +
                                                            std::to_string(b) + "; expected 0 to " + std::to_string(K - 1));
      }
    require(K > 0 || a.tau * a.B == 0, "table is empty");
  }
  a.d__H = checked(d, "d", {H});
  require(cell != GRU || a.d__H, "a GRU needs d");
  a.keep__BH = checked(keep, "keep", {a.B, H});
  const float* s_start = checked(s0, "s0", {a.B, H});
  require(cell != LSTM || s_start, "an LSTM needs s0");

  const size_t tau = (size_t)a.tau, B = (size_t)a.B, h = (size_t)H;
  const size_t start = reverse ? tau * B * h : 0;
  Array hs = array({tau + 1, B, h});
  a.hs__tBH = hs.data();
  std::memcpy(a.hs__tBH + start, h_start, B * h * 4);
  nb::object ss = nb::none(), gates = nb::none(), kept = nb::none();
  if (cell == LSTM) {
    Array values = array({tau + 1, B, h});
    a.ss__tBH = values.data();
    std::memcpy(a.ss__tBH + start, s_start, B * h * 4);
    ss = nb::cast(std::move(values));
  }
  if (cell != ELMAN) {
    Array values = array({tau, B, (size_t)taped_gates_of(cell) * h});
    a.gates__tBG = values.data();
    gates = nb::cast(std::move(values));
  }
  if (keep) {
    Array values = array({tau, B, h});
    a.kept__tBH = values.data();
    kept = nb::cast(std::move(values));
  }
  run_window(forward_of(cell), a);
  return nb::make_tuple(nb::cast(std::move(hs)), ss, gates, kept);
}

nb::tuple window_backward(int cell, int activation, const Panels& W, Floats hs, std::optional<Floats> ss,
                          std::optional<Floats> gates, std::optional<Ids> lengths, bool reverse, std::optional<Floats> keep,
                          std::optional<Floats> dh, std::optional<Floats> dh_end, std::optional<Floats> ds_end, std::optional<Floats> xi, bool consume) {
  check_cell(cell, activation);
  const int64_t G = gates_of(cell), H = W.shape.N;
  require(H >= 1 && W.shape.K == G * H && W.shape.groups == 1,
          "W must be packed from shape (" + std::to_string(G * H) + ", " + std::to_string(H) + ") as it is");
  require(hs.ndim() == 3 && hs.shape(0) >= 1, "hs must have shape (tau + 1, B, H)");
  WindowArgs a{};
  a.tau = (int64_t)hs.shape(0) - 1;
  a.B = (int64_t)hs.shape(1);
  a.H = H;
  a.activation = activation;
  a.reverse = reverse;
  a.W = W.shape;
  // Backwards the tape is only read.
  a.hs__tBH = const_cast<float*>(checked(hs, "hs", {a.tau + 1, a.B, H}));
  a.ss__tBH = const_cast<float*>(checked(ss, "ss", {a.tau + 1, a.B, H}));
  a.gates__tBG = const_cast<float*>(checked(gates, "gates", {a.tau, a.B, taped_gates_of(cell) * H}));
  require(cell != LSTM || a.ss__tBH, "an LSTM needs ss");
  require(cell == ELMAN || a.gates__tBG, "this cell needs gates");
  const auto own_lengths = checked_lengths(lengths, a.B, a.tau);
  a.lengths__B = own_lengths ? own_lengths->data() : nullptr;
  a.keep__BH = checked(keep, "keep", {a.B, H});
  a.dh__tBH = checked(dh, "dh", {a.tau, a.B, H});
  a.dh_end__BH = checked(dh_end, "dh_end", {a.B, H});
  a.ds_end__BH = checked(ds_end, "ds_end", {a.B, H});
  a.xi__tB = checked(xi, "xi", {a.tau, a.B});
  const size_t tau = (size_t)a.tau, B = (size_t)a.B, h = (size_t)H;
  // da may take the place of what is read for the last time here, the gates or dh: then there is no array of its own.
  nb::object da = nb::none();
  if (consume) a.da__tBG = cell == ELMAN ? const_cast<float*>(a.dh__tBH) : a.gates__tBG;
  if (!a.da__tBG) {
    Array values = array({tau, B, (cell == ELMAN ? 1 : 4) * h});
    a.da__tBG = values.data();
    da = nb::cast(std::move(values));
  }
  Array dh0 = array({B, h});
  a.dh_start__BH = dh0.data();
  nb::object ds0 = nb::none();
  if (cell == LSTM) {
    Array values = array({B, h});
    a.ds_start__BH = values.data();
    ds0 = nb::cast(std::move(values));
  }
  Block spare = room(a.keep__BH ? a.B * H : 1);
  a.spare__BH = spare.at;
  run_window(backward_of(cell), a);
  return nb::make_tuple(da, nb::cast(std::move(dh0)), ds0);
}

}  // namespace

void bind_recurrence(nb::module_& m) {
  m.def("window_forward", &window_forward, "cell"_a, "activation"_a, "p"_a.noconvert().none(), "table"_a.noconvert().none(),
        "ids"_a.noconvert().none(), "W"_a, "h0"_a.noconvert(), "s0"_a.noconvert().none(), "d"_a.noconvert().none(),
        "lengths"_a.noconvert().none(), "reverse"_a, "keep"_a.noconvert().none());
  m.def("window_backward", &window_backward, "cell"_a, "activation"_a, "W"_a, "hs"_a.noconvert(), "ss"_a.noconvert().none(),
        "gates"_a.noconvert().none(), "lengths"_a.noconvert().none(), "reverse"_a, "keep"_a.noconvert().none(),
        "dh"_a.noconvert().none(), "dh_end"_a.noconvert().none(), "ds_end"_a.noconvert().none(),
        "xi"_a.noconvert().none(), "consume"_a);
}

}  // namespace unspool
