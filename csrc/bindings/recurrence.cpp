// Windows of a recurrence, forward and backward.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <tuple>
#include <utility>

#include "bindings/cells.h"

namespace unspool {
namespace {

// One of a cell's matrices, all of which are packed like it: W, or the first packed one.
Packed first_packed(const Panels* W, const nb::list& parameters) {
  if (W) return W->shape;
  for (nb::handle each : parameters)
    if (nb::isinstance<Panels>(each)) return nb::cast<const Panels&>(each).shape;
  return {};
}

template <class Args> void run_window(const Cell& cell, void (*body)(const Args&, Team), Precision precision, Args& args) {
  if (args.B == 0) return;
  const int64_t work = args.W.at ? args.H * args.H : args.P * 8;  // of one row and step
  int64_t K = args.W.K;
  for (int i = 0; i < cell.parameter_count; i++) K = std::max(K, args.parameters[i].packed.K);
  args.rounded_floats = rounded_floats(K, std::min(args.B, ROWS_AT_ONCE));
  const int most = threads();
  Block rounded = rounded_block(precision, args.rounded_floats, most);
  args.rounded = rounded.at;
  GilReleased released;
  parallel([&](Team team) { body(args, team); }, std::min(most, at_most_threads((double)args.B * (double)work * (double)args.tau)));
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

// The input rows of every step: p, or rows of a table. Ids of frozen steps may be anything.
class InputRows {
 public:
  InputRows(const Cell& cell, const std::optional<Floats>& p, const std::optional<Floats>& table, const std::optional<Ids>& ids, ForwardArgs& a) {
    require((bool)p != (bool)(table && ids), "pass either p, or table and ids");
    if (p) {
      require(p->ndim() == 3, "p must have three dimensions (tau, B, G H)");
      a.tau = (int64_t)p->shape(0);
      a.P = cell.gates ? cell.gates * a.H : (int64_t)p->shape(2);
      a.p__tBP = checked(*p, "p", {a.tau, a.B, a.P});
      return;
    }
    require(ids->ndim() == 2 && (int64_t)ids->shape(1) == a.B, "ids must have shape (tau, " + std::to_string(a.B) + ")");
    require(table->ndim() == 2, "table must have two dimensions (K, G H)");
    K = (int64_t)table->shape(0);
    a.tau = (int64_t)ids->shape(0);
    a.P = cell.gates ? cell.gates * a.H : (int64_t)table->shape(1);
    a.table__KP = checked(*table, "table", {K, a.P});
    copied.emplace(*ids);
    a.ids__tB = copied->data();
  }
  void check_ids(const ForwardArgs& a) const {
    if (!a.ids__tB) return;
    for (int64_t t = 0; a.B > 0 && t < a.tau; t++)
      for (int64_t b = 0; b < a.B; b++) {
        const int32_t id = a.ids__tB[t * a.B + b];
        if (id < 0 || id >= K)
          require(a.lengths__B && t >= a.lengths__B[b], "ids holds " + std::to_string(id) + " at step " + std::to_string(t) + ", row " +
                                                            std::to_string(b) + "; expected 0 to " + std::to_string(K - 1));
      }
    require(K > 0 || a.tau * a.B == 0, "table is empty");
  }

 private:
  int64_t K = 0;
  std::optional<CopiedIds> copied;
};

// An array of this shape, for Python, and where its values are.
std::pair<nb::object, float*> output(const std::vector<size_t>& shape) {
  Array values = array(shape);
  float* at = values.data();
  return {nb::cast(std::move(values)), at};
}

nb::tuple window_forward(const std::string& name, int activation, std::optional<Floats> p, std::optional<Floats> table,
                         std::optional<Ids> ids, const Panels* W, Floats h0, std::optional<Floats> s0, nb::list parameters,
                         std::optional<Ids> lengths, bool reverse, std::optional<Floats> recurrent_mask) {
  const Packed packed = first_packed(W, parameters);
  const Cell& cell = products(packed).cells[find_cell(name)];
  check_activation(activation);
  check_W(cell, W, true);
  require(h0.ndim() == 2, "h0 must have two dimensions (B, H)");
  ForwardArgs a{};
  a.B = (int64_t)h0.shape(0);
  a.H = W ? W->shape.K : (int64_t)h0.shape(1);
  a.activation = activation;
  a.reverse = reverse;
  if (W) a.W = W->shape;
  const float* h_start = checked(h0, "h0", {a.B, a.H});
  const InputRows rows(cell, p, table, ids, a);
  const auto own_lengths = checked_lengths(lengths, a.B, a.tau);
  a.lengths__B = own_lengths ? own_lengths->data() : nullptr;
  rows.check_ids(a);
  Parameter own_values[MAX_PARAMETERS] = {};
  const OwnParameters own(cell, parameters, a.H, a.P, true, packed, own_values);
  a.parameters = own_values;
  require(!recurrent_mask || W, std::string(cell.name) + " has no W for a recurrent dropout mask");
  a.recurrent_mask__BH = checked(recurrent_mask, "recurrent_mask", {a.B, a.H});
  const float* s_start = checked(s0, "s0", {a.B, a.H});
  require(!cell.has_cell_state || s_start, std::string(cell.name) + " needs s0");

  const size_t tau = (size_t)a.tau, B = (size_t)a.B, H = (size_t)a.H;
  const size_t start = reverse ? tau * B * H : 0;
  nb::object hs = nb::none(), ss = nb::none(), tape = nb::none(), h_masked = nb::none();
  std::tie(hs, a.hs__tBH) = output({tau + 1, B, H});
  std::memcpy(a.hs__tBH + start, h_start, B * H * 4);
  if (cell.has_cell_state) {
    std::tie(ss, a.ss__tBH) = output({tau + 1, B, H});
    std::memcpy(a.ss__tBH + start, s_start, B * H * 4);
  }
  if (const int64_t columns = cell.tape.of(a.H, a.P)) std::tie(tape, a.tape__tBT) = output({tau, B, (size_t)columns});
  if (recurrent_mask) std::tie(h_masked, a.h_masked__tBH) = output({tau, B, H});
  run_window(cell, cell.forward, packed.precision, a);
  return nb::make_tuple(hs, ss, tape, h_masked);
}

// The array for da may be the tape, or dh, of a cell that reads each element before it writes there, and no other argument.
void require_may_overwrite(const Cell& cell, const BackwardArgs& a) {
  const float* da = a.da__tBA;
  const int64_t rows = a.tau * a.B, end = rows * cell.da.of(a.H, a.P), columns = cell.tape.of(a.H, a.P);
  const auto overlaps = [&](const float* other, int64_t floats) { return other && other < da + end && da < other + floats; };
  const bool over_tape = cell.da_over == Cell::TAPE && da == a.tape__tBT, over_dh = cell.da_over == Cell::DH && da == a.dh__tBH;
  require((over_tape || !overlaps(a.tape__tBT, rows * columns)) && (over_dh || !overlaps(a.dh__tBH, rows * a.H)) &&
              !overlaps(a.hs__tBH, (rows + a.B) * a.H) && !overlaps(a.ss__tBH, (rows + a.B) * a.H),
          std::string("da overlaps an array that ") + cell.name + " reads; pass None, or a new array");
}

nb::tuple window_backward(const std::string& name, int activation, const Panels* W, Floats hs, std::optional<Floats> ss,
                          std::optional<Floats> tape, nb::list parameters, int64_t inputs, std::optional<Ids> lengths, bool reverse,
                          std::optional<Floats> recurrent_mask, std::optional<Floats> dh, std::optional<Floats> dh_end, std::optional<Floats> ds_end,
                          std::optional<Floats> xi, std::optional<Written> over) {
  const Packed packed = first_packed(W, parameters);
  const Cell& cell = products(packed).cells[find_cell(name)];
  check_activation(activation);
  check_W(cell, W, false);
  require(hs.ndim() == 3 && hs.shape(0) >= 1, "hs must have shape (tau + 1, B, H)");
  BackwardArgs a{};
  a.tau = (int64_t)hs.shape(0) - 1;
  a.B = (int64_t)hs.shape(1);
  a.H = W ? W->shape.N : (int64_t)hs.shape(2);
  a.P = cell.gates ? cell.gates * a.H : inputs;
  require(a.P >= 0 && a.P < (int64_t(1) << 32), "inputs must be the columns of p");
  a.activation = activation;
  a.reverse = reverse;
  if (W) a.W = W->shape;
  Parameter own_values[MAX_PARAMETERS] = {};
  const OwnParameters own(cell, parameters, a.H, a.P, false, packed, own_values);
  a.parameters = own_values;
  const int64_t tape_columns = cell.tape.of(a.H, a.P), da_columns = cell.da.of(a.H, a.P);
  a.hs__tBH = checked(hs, "hs", {a.tau + 1, a.B, a.H});
  a.ss__tBH = checked(ss, "ss", {a.tau + 1, a.B, a.H});
  a.tape__tBT = checked(tape, "gates", {a.tau, a.B, tape_columns});
  require(!cell.has_cell_state || a.ss__tBH, std::string(cell.name) + " needs ss");
  require(!tape_columns || a.tape__tBT, std::string(cell.name) + " needs gates");
  const auto own_lengths = checked_lengths(lengths, a.B, a.tau);
  a.lengths__B = own_lengths ? own_lengths->data() : nullptr;
  require(!recurrent_mask || W, std::string(cell.name) + " has no W for a recurrent dropout mask");
  a.recurrent_mask__BH = checked(recurrent_mask, "recurrent_mask", {a.B, a.H});
  a.dh__tBH = checked(dh, "dh", {a.tau, a.B, a.H});
  a.dh_end__BH = checked(dh_end, "dh_end", {a.B, a.H});
  a.ds_end__BH = checked(ds_end, "ds_end", {a.B, a.H});
  a.xi__tB = checked(xi, "xi", {a.tau, a.B});
  const size_t tau = (size_t)a.tau, B = (size_t)a.B, H = (size_t)a.H;
  nb::object da = nb::none(), dh0 = nb::none(), ds0 = nb::none();
  a.da__tBA = checked(over, "da", {a.tau, a.B, da_columns});
  if (over) require_may_overwrite(cell, a);
  else std::tie(da, a.da__tBA) = output({tau, B, (size_t)da_columns});
  std::tie(dh0, a.dh_start__BH) = output({B, H});
  if (cell.has_cell_state) std::tie(ds0, a.ds_start__BH) = output({B, H});
  Block scratch = scratch_block(a.recurrent_mask__BH ? a.B * a.H : 1);
  Block cell_scratch = scratch_block(std::max<int64_t>(1, a.B * cell.scratch.of(a.H, a.P)));
  a.scratch__BH = scratch.at;
  a.cell_scratch__BS = cell_scratch.at;
  run_window(cell, cell.backward, packed.precision, a);
  return nb::make_tuple(da, dh0, ds0);
}

nb::tuple pair_of(Width width) { return nb::make_tuple(width.H, width.P); }

nb::list cells() {
  nb::list table;
  const Products& k = products(Precision::FLOAT32);
  for (const Cell* cell = k.cells; cell < k.cells + k.cell_count; cell++) {
    nb::list parameters;
    for (const ParameterSpec* spec = cell->parameters; spec < cell->parameters + cell->parameter_count; spec++) {
      nb::dict of;
      of["name"] = spec->name;
      of["rows"] = pair_of(spec->rows);
      of["columns"] = pair_of(spec->columns);
      of["da"] = pair_of(spec->da);
      of["tape"] = pair_of(spec->tape);
      of["read_by_backward"] = spec->read_by_backward;
      parameters.append(of);
    }
    nb::dict of;
    of["name"] = cell->name;
    of["gates"] = cell->gates;
    of["has_W"] = cell->has_W;
    of["has_cell_state"] = cell->has_cell_state;
    of["has_activation"] = cell->has_activation;
    of["tape"] = pair_of(cell->tape);
    of["da"] = pair_of(cell->da);
    of["W_gap"] = nb::make_tuple(cell->W_gap_at, cell->W_gap);
    of["da_over"] = cell->da_over == Cell::TAPE ? nb::object(nb::str("tape")) : cell->da_over == Cell::DH ? nb::object(nb::str("dh")) : nb::none();
    of["parameters"] = parameters;
    table.append(of);
  }
  return table;
}

}  // namespace

void bind_recurrence(nb::module_& m) {
  m.def("cells", &cells);
  m.def("window_forward", &window_forward, "cell"_a, "activation"_a, "p"_a.noconvert().none(), "table"_a.noconvert().none(),
        "ids"_a.noconvert().none(), "W"_a.none(), "h0"_a.noconvert(), "s0"_a.noconvert().none(), "parameters"_a,
        "lengths"_a.noconvert().none(), "reverse"_a, "recurrent_mask"_a.noconvert().none());
  m.def("window_backward", &window_backward, "cell"_a, "activation"_a, "W"_a.none(), "hs"_a.noconvert(), "ss"_a.noconvert().none(),
        "tape"_a.noconvert().none(), "parameters"_a, "inputs"_a, "lengths"_a.noconvert().none(), "reverse"_a, "recurrent_mask"_a.noconvert().none(),
        "dh"_a.noconvert().none(), "dh_end"_a.noconvert().none(), "ds_end"_a.noconvert().none(),
        "xi"_a.noconvert().none(), "da"_a.noconvert().none());
}

}  // namespace unspool
