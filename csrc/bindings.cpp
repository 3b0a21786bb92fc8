// The thin ring between Python and the arithmetic: types, shapes, memory, the GIL. Every check that keeps the
// arithmetic inside its arrays is here; what it refuses becomes unspool.errors.InputError.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cxxabi.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>

#include "kernels.h"
#include "memory.h"
#include "pool.h"
#include "stream.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace unspool;

using Floats = nb::ndarray<const float, nb::device::cpu>;  // read-only arrays are as good as any
using Matrix = nb::ndarray<const float, nb::ndim<2>, nb::device::cpu>;
using Written = nb::ndarray<float, nb::device::cpu>;
using WrittenMatrix = nb::ndarray<float, nb::ndim<2>, nb::device::cpu>;
using Ids = nb::ndarray<const int32_t, nb::c_contig, nb::device::cpu>;
template <class T> using ArrayOf = nb::ndarray<nb::numpy, T>;
using Array = ArrayOf<float>;

namespace {

struct Refused : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};
// The message is made only when it is needed.
#define require(holds, otherwise) \
  do {                            \
    if (!(holds)) throw Refused(otherwise); \
  } while (0)

template <class Size> std::string text_of(size_t n, Size size) {
  std::string text = "(";
  for (size_t i = 0; i < n; i++) text += (i ? ", " : "") + std::to_string(size(i));
  return text + ")";
}

// A C-contiguous float32 array of exactly this shape.
template <class A> auto checked(const A& a, const char* name, const std::vector<int64_t>& shape) -> decltype(a.data()) {
  bool same = a.ndim() == shape.size();
  for (size_t i = 0; same && i < shape.size(); i++) same = (int64_t)a.shape(i) == shape[i];
  require(same, std::string(name) + " has shape " + text_of(a.ndim(), [&](size_t i) { return a.shape(i); }) + "; expected " +
                    text_of(shape.size(), [&](size_t i) { return shape[i]; }));
  int64_t stride = 1;
  bool contiguous = true;
  for (size_t i = a.ndim(); i-- > 0; stride *= (int64_t)a.shape(i))
    if (a.shape(i) != 1 && a.size() > 0) contiguous = contiguous && a.stride(i) == stride;
  require(contiguous, std::string(name) + " is not C-contiguous; pass numpy.ascontiguousarray(" + name + ")");
  return a.data();
}
template <class A> auto checked(const std::optional<A>& a, const char* name, const std::vector<int64_t>& shape) -> decltype(a->data()) {
  return a ? checked(*a, name, shape) : nullptr;
}

// A matrix whose rows are contiguous, at any distance from each other.
template <class A> int64_t row_stride(const A& a, const char* name) {
  require(a.shape(1) <= 1 || a.size() == 0 || a.stride(1) == 1,
          std::string(name) + " has columns that are not contiguous; pass numpy.ascontiguousarray(" + name + ")");
  require(a.shape(0) <= 1 || a.size() == 0 || a.stride(0) >= (int64_t)a.shape(1),
          std::string(name) + " has rows that overlap; pass a copy of it");
  return a.shape(0) <= 1 ? (int64_t)a.shape(1) : a.stride(0);
}

template <class T = float> ArrayOf<T> array(const std::vector<size_t>& shape) {
  size_t n = 1;
  for (size_t s : shape) {
    require(s == 0 || n <= (size_t(1) << 44) / s, "the result would not fit in memory; use a shorter window or a smaller batch");
    n *= s;
  }
  struct Kept { void* at; size_t bytes; };
  auto* kept = new Kept{nullptr, n * sizeof(T)};
  try {
    kept->at = take_memory(kept->bytes);
  } catch (const std::bad_alloc&) {
    delete kept;
    throw Refused("not enough memory for an array of " + std::to_string(n * sizeof(T)) + " bytes; use a shorter window or a smaller batch");
  }
  nb::capsule owner(kept, [](void* p) noexcept {
    auto* k = (Kept*)p;
    give_memory(k->at, k->bytes);
    delete k;
  });
  return ArrayOf<T>(kept->at, shape.size(), shape.data(), owner);
}

// Releases the GIL until the end of the scope. When the interpreter has begun to shut down, PyEval_RestoreThread ends a daemon
// thread with pthread_exit (CPython before 3.14). glibc unwinds the stack for that, and the unwinding would meet destructors
// that may not throw: the process would be terminated. The thread sleeps here instead until the process ends, as from
// CPython 3.14 on.
class GilReleased {
 public:
  GilReleased() : state(PyEval_SaveThread()) {}
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;
  ~GilReleased() {
#if defined(__GLIBCXX__)
    try {
      PyEval_RestoreThread(state);
    } catch (abi::__forced_unwind&) {
      for (;;) pause();
    }
#else
    PyEval_RestoreThread(state);
#endif
  }

 private:
  PyThreadState* state;
};

Block room(int64_t floats) {
  try {
    return Block(floats);
  } catch (const std::bad_alloc&) {
    throw Refused("not enough memory for " + std::to_string(floats * 4) + " bytes of working room; use smaller sizes");
  }
}

// A copy of an array of int32. Other threads may write to the array while a kernel runs, also while the GIL is held here (NumPy
// releases it for long copies): what was checked and what is used as an index must be the same memory.
class CopiedIds {
 public:
  explicit CopiedIds(const Ids& source) : block(room(std::max<int64_t>(1, (int64_t)source.size()))) {
    if (source.size()) std::memcpy(block.at, source.data(), source.size() * 4);
  }
  const int32_t* data() const { return (const int32_t*)block.at; }

 private:
  Block block;
};

void check_ids(const int32_t* ids, int64_t n, int64_t K, const char* name) {
  for (int64_t i = 0; i < n; i++)
    if (ids[i] < 0 || ids[i] >= K)
      throw Refused(std::string(name) + " holds " + std::to_string(ids[i]) + " at position " +
                                           std::to_string(i) + "; expected 0 to " + std::to_string(K - 1));
}

// ── packed matrices ──────────────────────────────────────────────────────────────────────────────────────────

struct Panels {
  Block block;
  Packed shape;
  Panels(Matrix source, bool transposed, int64_t groups) {
    const int64_t stride = row_stride(source, "W");
    shape.N = (int64_t)source.shape(transposed ? 0 : 1);
    shape.K = (int64_t)source.shape(transposed ? 1 : 0);
    shape.groups = groups;
    require(groups >= 1 && shape.N % groups == 0, "the " + std::to_string(shape.N) + " columns of W cannot be cut into " + std::to_string(groups) + " equal groups");
    block = room(shape.floats());
    shape.at = block.at;
    PackArgs args{source.data(), stride, transposed, block.at, shape};
    GilReleased free;
    parallel([&, body = kernels().pack](Team team) { body(args, team); }, shape.floats() < 16384 ? 1 : 256);
  }
};

// ── products ─────────────────────────────────────────────────────────────────────────────────────────────────

int at_most_threads(double work) { return work < 2e5 ? 1 : 256; }

Array rows_product(Matrix A, const Panels& B, std::optional<Floats> start) {
  const int64_t M = (int64_t)A.shape(0), K = (int64_t)A.shape(1), N = B.shape.N;
  require(K == B.shape.K, "the product's sides do not meet: " + std::to_string(K) + " columns against " +
                              std::to_string(B.shape.K) + " rows");
  const int64_t lda = row_stride(A, "A");
  const bool one_row = start && start->ndim() == 1;
  const float* from = !start ? nullptr : one_row ? checked(*start, "start", {N}) : checked(*start, "start", {M, N});
  Array C = array({(size_t)M, (size_t)N});
  RowsArgs args{M, A.data(), lda, B.shape, from, one_row ? 0 : N, C.data(), N};
  GilReleased free;
  parallel([&, body = kernels().rows](Team team) { body(args, team); }, at_most_threads((double)M * N * K));
  return C;
}

// With d, A holds the GRU's r z n q: r z q meet B, r z n belong to the table, and q adds up to d.
Array outer_product(Matrix A, Matrix B, std::optional<Written> onto, bool accumulate, std::optional<WrittenMatrix> table,
                    std::optional<Ids> ids, bool accumulate_table, std::optional<Written> d, bool accumulate_d) {
  const int64_t R = (int64_t)A.shape(0), N = (int64_t)B.shape(1), columns = (int64_t)A.shape(1);
  const int64_t H = d ? columns / 4 : 0, M = columns - H;
  require((int64_t)B.shape(0) == R, "the product's sides do not meet: " + std::to_string(R) + " rows against " +
                                        std::to_string(B.shape(0)) + " rows");
  require(!d || columns == 4 * N, "with d, A must have four times the columns of B");
  const int64_t lda = row_stride(A, "A"), ldb = row_stride(B, "B");
  float* to = checked(onto, "out", {M, N});
  Array C = onto ? Array() : array({(size_t)M, (size_t)N});
  const int most = threads();  // another Python thread may change it: the room is for this many
  Block work = room(outer_room(N) * most);
  OuterArgs args{};
  args.R = R, args.M = M, args.N = N;
  args.A = A.data(), args.lda = lda;
  args.B = B.data(), args.ldb = ldb;
  args.C = onto ? to : C.data(), args.ldc = N;
  args.accumulate = (bool)onto && accumulate;
  args.room = work.at;
  args.gap_at = d ? 2 * H : M, args.gap = H;
  args.sum = checked(d, "d", {H}), args.sum_fresh = d && !accumulate_d;
  std::optional<CopiedIds> copied;
  if (table) {
    require(ids && (int64_t)ids->size() == R, "ids must hold one token for each of the " + std::to_string(R) + " rows");
    require((int64_t)table->shape(1) == M && M >= N && N >= 1, "table must have " + std::to_string(M) + " columns, no fewer than B");
    copied.emplace(*ids);
    check_ids(copied->data(), R, (int64_t)table->shape(0), "ids");
    args.table = table->data(), args.table_stride = row_stride(*table, "table");
    args.table_rows = (int64_t)table->shape(0);
    args.table_fresh = !accumulate_table;
    args.ids = copied->data();
  }
  GilReleased free;
  parallel([&, body = kernels().outer](Team team) { body(args, team); }, std::min(most, at_most_threads((double)M * N * R)));
  return C;
}

Array column_sum(Matrix A, std::optional<Written> onto, bool accumulate) {
  const int64_t R = (int64_t)A.shape(0), N = (int64_t)A.shape(1);
  float* to = checked(onto, "out", {N});
  Array s = onto ? Array() : array({(size_t)N});
  ColumnSumArgs args{R, N, A.data(), row_stride(A, "A"), onto ? to : s.data(), (bool)onto && accumulate};
  GilReleased free;
  parallel([&, body = kernels().column_sum](Team team) { body(args, team); }, at_most_threads((double)R * N));
  return s;
}

Array shift_rows(Matrix x, Floats b) {
  const int64_t R = (int64_t)x.shape(0), N = (int64_t)x.shape(1);
  const float* by = checked(b, "b", {N});
  Array out = array({(size_t)R, (size_t)N});
  ShiftRowsArgs args{R, N, x.data(), row_stride(x, "x"), by, out.data()};
  GilReleased free;
  parallel([&, body = kernels().shift_rows](Team team) { body(args, team); }, at_most_threads((double)R * N * 8));
  return out;
}

Array gather(Matrix table, Ids ids) {
  const int64_t K = (int64_t)table.shape(0), N = (int64_t)table.shape(1), R = (int64_t)ids.size();
  const CopiedIds copied(ids);
  check_ids(copied.data(), R, K, "ids");
  Array out = array({(size_t)R, (size_t)N});
  TableArgs args{R, N, K, false, copied.data(), const_cast<float*>(table.data()), row_stride(table, "table"), out.data(), N};  // the table is only read
  GilReleased free;
  parallel([&, body = kernels().gather](Team team) { body(args, team); }, at_most_threads((double)R * N));
  return out;
}

void scatter_add(WrittenMatrix table, Ids ids, Matrix rows, bool accumulate) {
  const int64_t K = (int64_t)table.shape(0), N = (int64_t)table.shape(1), R = (int64_t)ids.size();
  require((int64_t)rows.shape(0) == R && (int64_t)rows.shape(1) == N,
          "rows has shape (" + std::to_string(rows.shape(0)) + ", " + std::to_string(rows.shape(1)) + "); expected (" +
              std::to_string(R) + ", " + std::to_string(N) + ")");
  const CopiedIds copied(ids);
  check_ids(copied.data(), R, K, "ids");
  float* only_read = const_cast<float*>(rows.data());
  TableArgs args{R, N, K, !accumulate, copied.data(), table.data(), row_stride(table, "table"), only_read, row_stride(rows, "rows")};
  GilReleased free;
  parallel([&, body = kernels().scatter_add](Team team) { body(args, team); }, at_most_threads((double)R * N));
}

// ── recurrences ──────────────────────────────────────────────────────────────────────────────────────────────

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

void check_cell(int cell, int activation) {
  require(cell >= ELMAN && cell <= GRU, "cell must be 0 (elman), 1 (lstm) or 2 (gru)");
  require(activation >= 0 && activation <= 3, "activation must be 0 (tanh), 1 (relu), 2 (sigmoid) or 3 (identity)");
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

// ── softmax ──────────────────────────────────────────────────────────────────────────────────────────────────

nb::tuple softmax_cross_entropy(Floats h, const Panels& Vt, const Panels* V, std::optional<Floats> c, Ids y, int64_t B, double scale,
                                std::optional<Written> dV, std::optional<Written> dc, bool accumulate) {
  require(h.ndim() == 2, "h must have two dimensions (rows, H)");
  SoftmaxArgs a{};
  a.R = (int64_t)h.shape(0);
  a.H = Vt.shape.K;
  a.K = Vt.shape.N;
  require(a.K >= 1 && a.H >= 1 && Vt.shape.groups == 1, "V must have at least one row and one column");
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
    require(V->shape.K == a.K && V->shape.N == a.H && V->shape.groups == 1, "V must be packed as it is");
    require(a.dV__KH, "a gradient of h comes with one of V: pass dV");
    a.V = V->shape;
    Array values = array({(size_t)a.R, (size_t)a.H});
    a.dh__RH = values.data();
    dh = nb::cast(std::move(values));
  }
  // Few blocks for a small vocabulary, little room for a large one.
  a.block = std::max<int64_t>(64, std::min<int64_t>(1024, (int64_t(1) << 21) / a.K / 16 * 16));
  const bool shared = B >= threads() && B <= a.block;  // else a block is divided as it comes
  a.block = shared ? a.block / B * B : a.block;
  a.B = shared ? B : a.block;
  Block o = room(std::min(a.block, std::max<int64_t>(a.R, 1)) * a.K);
  const int most = threads();
  Block work = room(a.dh__RH ? outer_room(a.H) * most : 1);
  auto nats = array<double>({(size_t)a.R});
  a.o__block_K = o.at;
  a.room = work.at;
  a.loss__R = nats.data();
  {
    GilReleased free;
    parallel([&, body = kernels().softmax](Team team) { body(a, team); }, std::min(most, at_most_threads((double)a.R * a.H * a.K)));
  }
  double sum = 0.0;  // t rising
  for (int64_t r = 0; r < a.R; r++) sum += a.loss__R[r];
  return nb::make_tuple(sum, count, nb::cast(std::move(nats)), dh);
}

// ── updates ──────────────────────────────────────────────────────────────────────────────────────────────────

using Vector = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using WrittenVector = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

double global_norm(Vector g) {
  const int64_t n = (int64_t)g.shape(0), chunks = (n + CHUNK - 1) / CHUNK;
  Block room_for_squares = room(std::max<int64_t>(1, 2 * chunks));
  NormArgs a{n, g.data(), (double*)room_for_squares.at};
  {
    GilReleased free;
    parallel([&, body = kernels().norm](Team team) { body(a, team); }, at_most_threads((double)n));
  }
  double sum = 0.0;
  for (int64_t i = 0; i < chunks; i++) sum += a.squares[i];
  return std::sqrt(sum);
}

Array zeros(size_t n) {
  Array out = array({n});
  if (n) std::memset(out.data(), 0, n * 4);
  return out;
}

template <class A> void same_length(const WrittenVector& p, const A& other, const char* name) {
  require(p.shape(0) == other.shape(0), std::string(name) + " has " + std::to_string(other.shape(0)) + " values; the parameters have " +
                                            std::to_string(p.shape(0)));
}

void adam(WrittenVector p, Vector g, WrittenVector m, WrittenVector v, double scale, double learning_rate, double beta1, double beta2, double epsilon,
          double decay, double correction1, double correction2) {
  same_length(p, g, "g");
  same_length(p, m, "m");
  same_length(p, v, "v");
  AdamArgs a{(int64_t)p.shape(0), p.data(), m.data(), v.data(), g.data(), (float)scale, (float)learning_rate, (float)(1.0 - beta1),
             (float)beta2, (float)(1.0 - beta2), (float)epsilon, (float)decay, (float)correction1, (float)correction2};
  GilReleased free;
  parallel([&, body = kernels().adam](Team team) { body(a, team); }, at_most_threads((double)a.n * 8));
}

void sgd(WrittenVector p, Vector g, std::optional<WrittenVector> m, double scale, double learning_rate, double momentum, double decay) {
  same_length(p, g, "g");
  if (m) same_length(p, *m, "m");
  SgdArgs a{(int64_t)p.shape(0), p.data(), m ? m->data() : nullptr, g.data(), (float)scale, (float)learning_rate, (float)momentum,
            (float)decay};
  GilReleased free;
  parallel([&, body = kernels().sgd](Team team) { body(a, team); }, at_most_threads((double)a.n * 4));
}

Array dropout_mask(size_t n, uint64_t seed, uint64_t stream, double rate) {
  require(rate >= 0.0 && rate < 1.0, "rate must be at least 0 and below 1; got " + std::to_string(rate));
  Array out = array({n});
  DropArgs a{(int64_t)n, seed, stream, (float)rate, out.data()};
  GilReleased free;
  parallel([&, body = kernels().drop](Team team) { body(a, team); }, at_most_threads((double)n * 8));
  return out;
}

Array scale_rows(Floats x, Floats mask) {
  require(x.ndim() == 3, "x must have three dimensions (tau, B, H)");
  const int64_t tau = (int64_t)x.shape(0), B = (int64_t)x.shape(1), H = (int64_t)x.shape(2);
  const float* from = checked(x, "x", {tau, B, H});
  const float* by = checked(mask, "mask", {B, H});
  Array out = array({(size_t)tau, (size_t)B, (size_t)H});
  if (B * H == 0) return out;
  ScaleRowsArgs a{tau, B, H, from, by, out.data()};
  GilReleased free;
  parallel([&, body = kernels().scale_rows](Team team) { body(a, team); }, at_most_threads((double)(tau * B * H)));
  return out;
}

Array activate(Floats x, int activation, bool slope) {
  check_cell(ELMAN, activation);
  std::vector<size_t> shape(x.ndim());
  for (size_t i = 0; i < x.ndim(); i++) shape[i] = x.shape(i);
  const float* from = checked(x, "x", std::vector<int64_t>(shape.begin(), shape.end()));
  Array out = array(shape);
  ActivateArgs a{(int64_t)x.size(), activation, slope, from, out.data()};
  if (a.n == 0) return out;
  GilReleased free;
  parallel([&, body = kernels().activate](Team team) { body(a, team); }, at_most_threads(8.0 * (double)a.n));
  return out;
}

// An array as it is: a conversion would be a copy that nobody keeps.
Floats as_it_is(nb::handle value, const char* name) {
  Floats array;
  require(nb::try_cast(value, array, false), std::string(name) + " must be an array of float32");
  return array;
}

// ── streaming ────────────────────────────────────────────────────────────────────────────────────────────────

struct PyStream : Stream {
  std::vector<nb::object> alive;  // the arrays and packed matrices that the layers point into

  PyStream(nb::list specs, const Panels& output, std::optional<Floats> bias, nb::list keep_alive) {
    int64_t below = 0;
    for (nb::handle item : specs) {
      auto spec = nb::cast<nb::tuple>(item);
      require(spec.size() == 7, "a layer is (cell, activation, W, table, U, b, d)");
      StreamLayer layer{};
      layer.cell = nb::cast<int>(spec[0]);
      layer.activation = nb::cast<int>(spec[1]);
      check_cell(layer.cell, layer.activation);
      layer.W = nb::cast<Panels&>(spec[2]).shape;
      layer.H = layer.W.K;
      const int64_t G = gates_of(layer.cell) * layer.H;
      require(layer.H >= 1 && layer.W.N == G && layer.W.groups == gates_of(layer.cell), "W is not packed for this cell");
      if (!spec[3].is_none()) {
        require(layers.empty(), "only the first layer reads from a table");
        auto table = as_it_is(spec[3], "table");
        require(table.ndim() == 2, "table must have two dimensions");
        inputs = (int64_t)table.shape(0);
        layer.table = checked(table, "table", {inputs, G});
      } else {
        require(!layers.empty(), "the first layer must read from a table");
        layer.U = nb::cast<Panels&>(spec[4]).shape;
        require(layer.U.K == below && layer.U.N == G && layer.U.groups == 1, "U does not fit the layer below");
        layer.b = checked(as_it_is(spec[5], "b"), "b", {G});
        layer.X = below;
      }
      if (layer.cell == GRU) layer.d = checked(as_it_is(spec[6], "d"), "d", {layer.H});
      below = layer.H;
      layers.push_back(std::move(layer));
    }
    require(!layers.empty(), "a stream needs at least one layer");
    Vt = output.shape;
    require(Vt.K == below && Vt.groups == 1 && Vt.N >= 1, "V does not fit the last layer");
    K = Vt.N;
    c = checked(bias, "c", {K});
    for (nb::handle item : keep_alive) alive.push_back(nb::borrow(item));
    for (nb::handle item : specs) alive.push_back(nb::borrow(item));
    prepare();
  }

  void read(int32_t id) {
    require(id >= 0 && id < inputs, "token " + std::to_string(id) + " is outside 0 to " + std::to_string(inputs - 1));
    step(id);
  }
  int32_t choose(double temperature, int64_t top_k, double top_p, double u) {
    require(std::isfinite(temperature) && temperature >= 0.0, "temperature must be 0 or more");
    require(top_p > 0.0 && top_p <= 1.0, "top_p must be above 0 and at most 1");
    require(top_k >= 0, "top_k must be 0 (all) or more");
    require(u >= 0.0 && u < 1.0, "u must be at least 0 and below 1");
    const int32_t id = draw((float)temperature, top_k, (float)top_p, u);
    require(id >= 0, "the logits are not finite numbers: nothing can be drawn from them");
    return id;
  }
  // One call a token: reads `id`, draws the next with the `index`-th number of the seed's stream.
  int32_t advance(int32_t id, double temperature, int64_t top_k, double top_p, uint64_t seed, uint64_t index) {
    read(id);
    return choose(temperature, top_k, top_p, uniform(seed, index));
  }
  Array logits() const {
    Array out = array({(size_t)K});
    std::memcpy(out.data(), o.at, (size_t)K * 4);
    return out;
  }
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
      arrays.push_back(as_it_is(pair[0], "h"));
      arrays.push_back(as_it_is(pair[1], "s"));
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

NB_MODULE(_native, m) {
  nb::set_leak_warnings(false);  // a daemon thread that sleeps at exit keeps what it uses: no leak
  m.doc() = "unspool's native kernels. Use unspool.kernel.ops.";
  nb::object input_error = nb::module_::import_("unspool.errors").attr("InputError");
  nb::register_exception_translator(
      [](const std::exception_ptr& p, void* type) {
        try {
          std::rethrow_exception(p);
        } catch (const Refused& e) {
          PyErr_SetString((PyObject*)type, e.what());
        }
      },
      input_error.inc_ref().ptr());

  nb::class_<Panels>(m, "Panels")
      .def(nb::init<Matrix, bool, int64_t>(), "source"_a.noconvert(), "transposed"_a, "groups"_a = 1)
      .def_prop_ro("shape", [](const Panels& p) { return std::make_tuple(p.shape.K, p.shape.N); });
  m.def("rows_product", &rows_product, "A"_a.noconvert(), "B"_a, "start"_a.noconvert().none());
  m.def("outer_product", &outer_product, "A"_a.noconvert(), "B"_a.noconvert(), "onto"_a.noconvert().none(),
        "accumulate"_a, "table"_a.noconvert().none(), "ids"_a.noconvert().none(), "accumulate_table"_a,
        "d"_a.noconvert().none(), "accumulate_d"_a);
  m.def("column_sum", &column_sum, "A"_a.noconvert(), "onto"_a.noconvert().none(), "accumulate"_a);
  m.def("shift_rows", &shift_rows, "x"_a.noconvert(), "b"_a.noconvert());
  m.def("gather", &gather, "table"_a.noconvert(), "ids"_a.noconvert());
  m.def("scatter_add", &scatter_add, "table"_a.noconvert(), "ids"_a.noconvert(), "rows"_a.noconvert(), "accumulate"_a);
  m.def("window_forward", &window_forward, "cell"_a, "activation"_a, "p"_a.noconvert().none(), "table"_a.noconvert().none(),
        "ids"_a.noconvert().none(), "W"_a, "h0"_a.noconvert(), "s0"_a.noconvert().none(), "d"_a.noconvert().none(),
        "lengths"_a.noconvert().none(), "reverse"_a, "keep"_a.noconvert().none());
  m.def("window_backward", &window_backward, "cell"_a, "activation"_a, "W"_a, "hs"_a.noconvert(), "ss"_a.noconvert().none(),
        "gates"_a.noconvert().none(), "lengths"_a.noconvert().none(), "reverse"_a, "keep"_a.noconvert().none(),
        "dh"_a.noconvert().none(), "dh_end"_a.noconvert().none(), "ds_end"_a.noconvert().none(),
        "xi"_a.noconvert().none(), "consume"_a);
  m.def("softmax_cross_entropy", &softmax_cross_entropy, "h"_a.noconvert(), "Vt"_a, "V"_a.none(), "c"_a.noconvert().none(),
        "y"_a.noconvert(), "B"_a, "scale"_a, "dV"_a.noconvert().none(), "dc"_a.noconvert().none(), "accumulate"_a);
  m.def("global_norm", &global_norm, "g"_a.noconvert());
  m.def("adam", &adam, "p"_a.noconvert(), "g"_a.noconvert(), "m"_a.noconvert(), "v"_a.noconvert(), "scale"_a, "learning_rate"_a,
        "beta1"_a, "beta2"_a, "epsilon"_a, "decay"_a, "correction1"_a, "correction2"_a);
  m.def("sgd", &sgd, "p"_a.noconvert(), "g"_a.noconvert(), "m"_a.noconvert().none(), "scale"_a, "learning_rate"_a, "momentum"_a,
        "decay"_a);
  m.def("dropout_mask", &dropout_mask, "n"_a, "seed"_a, "stream"_a, "rate"_a);
  m.def("scale_rows", &scale_rows, "x"_a.noconvert(), "mask"_a.noconvert());
  m.def("activate", &activate, "x"_a.noconvert(), "activation"_a, "slope"_a);
  m.def("zeros", &zeros, "n"_a);
  m.def("uniform", &uniform, "seed"_a, "index"_a);

  nb::class_<PyStream>(m, "Stream")
      .def(nb::init<nb::list, const Panels&, std::optional<Floats>, nb::list>(), "layers"_a, "output"_a,
           "bias"_a.noconvert().none(), "alive"_a, nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>())
      .def("read", &PyStream::read, "id"_a)
      .def("choose", &PyStream::choose, "temperature"_a, "top_k"_a, "top_p"_a, "u"_a)
      .def("advance", &PyStream::advance, "id"_a, "temperature"_a, "top_k"_a, "top_p"_a, "seed"_a, "index"_a)
      .def("logits", &PyStream::logits)
      .def("state", [](const PyStream& s) {
        nb::list parts;
        for (auto& [h, c] : s.state()) parts.append(nb::make_tuple(nb::cast(h), nb::cast(c)));
        return parts;
      })
      .def("set_state", &PyStream::set_state, "parts"_a);

  m.def("threads", [] { return threads(); });
  m.def("set_threads", [](int64_t n) {
    require(n >= 1 && n <= 256, "threads must be from 1 to 256; got " + std::to_string(n));
    set_threads((int)n);
  });
  m.def("isa", [] { return std::string(kernels().name); });
  m.def("available", [] { return std::string(available_kernels()); });
  m.def("choose_isa", [](const std::string& name) {
    const char* refusal = choose_kernels(name.c_str());
    require(!refusal, "'" + name + "': " + (refusal ? refusal : "") + "; this machine has " + available_kernels());
  });
  m.def("fma_peak", [](double seconds) {
    double rate[256] = {};
    GilReleased free;
    parallel([&](Team team) {
      team.barrier->wait();
      rate[team.index] = kernels().fma_peak(seconds);
    });
    double sum = 0.0;
    for (double r : rate) sum += r;
    return sum;
  });
}
