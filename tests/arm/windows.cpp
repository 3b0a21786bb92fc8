// Windows of every cell, forward and backward, with all options.
#include "hashes.h"
#include "runtime/caches.h"

namespace unspool {

struct Window {
  int64_t tau, B, H;
  int activation;
  bool lengths, reverse, mask, xi, lookup, gradients_of_end, overwrite;
};

// The arrays of a window that forward and backward share.
struct Arrays {
  std::vector<int32_t> lengths, ids;
  std::vector<float> p, table, W, mask, xi, dh, dh_end, ds_end;
  std::vector<std::vector<float>> parameters;
  std::vector<float> hs, ss, tape, h_masked;
  Arrays(const Cell& cell, const Window& w, int64_t P) {
    Numbers numbers((uint32_t)(w.tau * 100 + w.B));
    const int64_t rows = w.tau * w.B, K = 9;
    for (int64_t b = 0; b < w.B; b++) lengths.push_back(numbers.below((int32_t)w.tau + 1));
    ids = numbers.ids(rows, (int32_t)K);
    p = numbers.floats(rows * P, 1), table = numbers.floats(K * P, 1);
    if (cell.has_W) W = numbers.floats(cell.gates * w.H * w.H, -1);
    mask = numbers.floats(w.B * w.H), xi = numbers.floats(rows);
    dh = numbers.floats(rows * w.H, -2), dh_end = numbers.floats(w.B * w.H), ds_end = numbers.floats(w.B * w.H);
    for (int i = 0; i < cell.parameter_count; i++) {
      const int64_t columns = cell.parameters[i].columns.of(w.H, P);
      parameters.push_back(numbers.floats(cell.parameters[i].rows.of(w.H, P) * (columns ? columns : 1)));
    }
    hs = numbers.floats((rows + w.B) * w.H), ss = numbers.floats((rows + w.B) * w.H);
    tape.resize((size_t)(rows * cell.tape.of(w.H, P))), h_masked.resize((size_t)(rows * w.H));
  }
};

// The matrices of a cell in one direction, packed, and memory for rounded rows.
struct Weights {
  std::vector<Matrix> matrices;
  Parameter parameters[MAX_PARAMETERS] = {};
  Packed W;
  int64_t floats = 0;
  Block rounded;
  Weights(const Cell& cell, const Window& w, int64_t P, const Arrays& arrays, Precision precision, bool forward) {
    const int64_t GH = cell.gates * w.H;
    const auto add = [&](const std::vector<float>& values, int64_t rows, int64_t columns, int64_t groups, int64_t cut) {
      matrices.emplace_back(values, forward ? columns : rows, forward ? rows : columns, forward, forward ? groups : 1, precision, forward ? 0 : cut);
      const int64_t each = rounded_floats(matrices.back().packed.K, w.B < ROWS_AT_ONCE ? w.B : ROWS_AT_ONCE);
      floats = each > floats ? each : floats;
      return matrices.back().packed;
    };
    if (cell.has_W) W = add(arrays.W, GH, w.H, cell.gates, cell.W_gap ? cell.W_gap_at * w.H : 0);
    for (int i = 0; i < cell.parameter_count; i++) {
      const int64_t rows = cell.parameters[i].rows.of(w.H, P), columns = cell.parameters[i].columns.of(w.H, P);
      if (columns) parameters[i].packed = add(arrays.parameters[(size_t)i], rows, columns, 1, 0);
      else parameters[i].value = arrays.parameters[(size_t)i].data();
    }
    rounded = unwritten(floats * threads() + 1);
  }
};

static void fill(WindowArgs& a, const Window& w, int64_t P, const Arrays& arrays, const Weights& weights) {
  a.tau = w.tau, a.B = w.B, a.H = w.H, a.P = P;
  a.activation = w.activation, a.reverse = w.reverse;
  a.lengths__B = w.lengths ? arrays.lengths.data() : nullptr;
  a.recurrent_mask__BH = w.mask ? arrays.mask.data() : nullptr;
  a.W = weights.W, a.parameters = weights.parameters;
  a.rounded = weights.rounded.at, a.rounded_floats = weights.floats;
}

static void hash_forward(const Cell& cell, const Window& w, int64_t P, Arrays& arrays, Precision precision) {
  const Weights weights(cell, w, P, arrays, precision, true);
  ForwardArgs a{};
  fill(a, w, P, arrays, weights);
  if (w.lookup) a.table__KP = arrays.table.data(), a.ids__tB = arrays.ids.data();
  else a.p__tBP = arrays.p.data();
  a.hs__tBH = arrays.hs.data(), a.ss__tBH = arrays.ss.data();
  a.tape__tBT = arrays.tape.data(), a.h_masked__tBH = w.mask ? arrays.h_masked.data() : nullptr;
  run(cell.forward, a);
  Hash& hash = hash_of(std::string("forward ") + cell.name + " " + name_of(precision));
  hash.add(arrays.hs), hash.add(arrays.ss), hash.add(arrays.tape), hash.add(arrays.h_masked);
}

static void hash_backward(const Cell& cell, const Window& w, int64_t P, Arrays& arrays, Precision precision) {
  const Weights weights(cell, w, P, arrays, precision, false);
  const int64_t rows = w.tau * w.B;
  std::vector<float> da((size_t)(rows * cell.da.of(w.H, P))), dh_start((size_t)(w.B * w.H)), ds_start((size_t)(w.B * w.H));
  Block scratch = unwritten(w.B * w.H), cell_scratch = unwritten(w.B * cell.scratch.of(w.H, P) + 1);
  BackwardArgs a{};
  fill(a, w, P, arrays, weights);
  a.hs__tBH = arrays.hs.data(), a.ss__tBH = arrays.ss.data(), a.tape__tBT = arrays.tape.data();
  a.dh__tBH = arrays.dh.data();
  if (w.gradients_of_end) a.dh_end__BH = arrays.dh_end.data(), a.ds_end__BH = arrays.ds_end.data();
  a.xi__tB = w.xi ? arrays.xi.data() : nullptr;
  a.dh_start__BH = dh_start.data(), a.ds_start__BH = ds_start.data();
  a.scratch__BH = scratch.at, a.cell_scratch__BS = cell_scratch.at;
  a.da__tBA = da.data();
  if (w.overwrite && cell.da_over == Cell::TAPE) a.da__tBA = arrays.tape.data();
  if (w.overwrite && cell.da_over == Cell::DH) a.da__tBA = arrays.dh.data();
  run(cell.backward, a);
  Hash& hash = hash_of(std::string("backward ") + cell.name + " " + name_of(precision));
  hash.add(a.da__tBA, (int64_t)da.size()), hash.add(dh_start), hash.add(ds_start);
}

static void hash_window(const Cell& cell, const Window& w, Precision precision) {
  const int64_t P = cell.gates ? cell.gates * w.H : 21;
  Arrays arrays(cell, w, P);
  hash_forward(cell, w, P, arrays, precision);
  hash_backward(cell, w, P, arrays, precision);
}

// Every shape with many choices of options; in every second one W exceeds the cache, so that threads split the units.
void hash_windows(Precision precision) {
  static const int64_t SHAPES[][3] = {{5, 3, 17}, {3, 13, 37}, {4, 1, 70}, {2, 67, 33}, {1, 2, 1}};
  const Products& p = products(precision);
  for (const Cell* cell = p.cells; cell < p.cells + p.cell_count; cell++)
    for (const auto& [tau, B, H] : SHAPES)
      for (int way = 0; way < 32; way++) {
        set_L2_bytes(way % 2 ? 1 : 1 << 20);
        const bool mask = cell->has_W && (way & 4);
        const Window w = {tau, B, H, cell->has_activation ? way / 2 % 4 : 0, bool(way & 8), bool(way & 2), mask, bool(way & 16), way % 7 < 3, way % 3 == 0, way % 5 < 2};
        hash_window(*cell, w, precision);
      }
}

}  // namespace unspool
