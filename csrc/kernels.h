// The interface of the kernels: structures of pointers and sizes, one function per kernel.
//
// Every thread of a team calls the function and computes its part. Shapes are in the names: h__tBH is (tau, B, H).
// Each instruction set fills one table of functions; dispatch.cpp chooses the table.
#pragma once
#include <cstdint>

#include "runtime/team.h"

// Always inlined: otherwise the linker could take the copy of a newer instruction set for all of them.
#define UNSPOOL_INLINE __attribute__((always_inline)) inline

namespace unspool {

enum class Precision { FLOAT32, BF16 };

// The two rows of a packed matrix in bf16 that share a word: k and k + 1, or k and k + 2, which belong to one chain of a sum (see
// engine/chains_dot-inl.h).
enum class Pairs { NEIGHBOURS, CHAINS };

static UNSPOOL_INLINE int64_t padded32(int64_t n) { return (n + 31) / 32 * 32; }

// A matrix (K, N) packed for products A B with A on its left: panels of sixteen columns, each panel K x 16, padded with
// zeros. The N columns may consist of equal groups (the gates); each group starts a new panel. In bf16, a panel holds pairs of
// rows, and the rows are padded to a multiple of 32; those from `cut` on, which are multiplied in a product by themselves, begin
// at such a multiple.
struct Packed {
  const float* at = nullptr;
  int64_t K = 0, N = 0, groups = 1;
  Precision precision = Precision::FLOAT32;
  Pairs pairs = Pairs::NEIGHBOURS;  // as the products that packed it and that can read it
  int64_t cut = 0;
  UNSPOOL_INLINE int64_t width() const { return N / groups; }
  UNSPOOL_INLINE int64_t panels_per_group() const { return (width() + 15) / 16; }
  UNSPOOL_INLINE int64_t panels() const { return panels_per_group() * groups; }
  UNSPOOL_INLINE int64_t depth() const { return padded32(cut) + padded32(K - cut); }  // the rows of a panel in bf16
  UNSPOOL_INLINE const uint32_t* pairs_at(int64_t panel, int64_t k) const {
    return (const uint32_t*)at + (panel * depth() + (k < cut ? k : padded32(cut) + k - cut)) / 2 * 16;
  }
  UNSPOOL_INLINE bool packed_like(const Packed& other) const { return precision == other.precision && pairs == other.pairs; }
  UNSPOOL_INLINE int64_t floats() const { return precision == Precision::BF16 ? panels() * depth() * 8 : panels() * K * 16; }
};

struct PackArgs {
  const float* source = nullptr;
  int64_t stride = 0;
  bool transposed = false;  // source is (N, K); else (K, N)
  float* to = nullptr;
  Packed shape;
};

// In bf16, the rows on the left are rounded first: so many at a time, `rounded_stride` apart.
static const int64_t ROWS_AT_ONCE = 64;
static UNSPOOL_INLINE int64_t rounded_stride(int64_t K) { return padded32(K) + 16; }  // no power of two: rows in different sets of the L1 cache
// Whole tiles of 16 rows: those of AMX have half as many bytes in a row, and zeros beyond the last row.
static UNSPOOL_INLINE int64_t rounded_floats(int64_t K, int64_t rows = ROWS_AT_ONCE) { return (rows + 15) / 16 * 16 * rounded_stride(K); }

struct RowsArgs {  // C__MN = start + A__MK B__KN, each element one chain of fused multiply-adds in rising k
  int64_t M = 0;
  const float* A = nullptr;
  int64_t lda = 0;
  Packed B;
  const float* start = nullptr;  // nullptr: zero; else (M, N) rows `start_stride` apart (0: one row for all); may be C itself
  int64_t start_stride = 0;
  float* C = nullptr;
  int64_t ldc = 0;
  float* rounded = nullptr;  // bf16: scratch for the rounded rows of A
  int64_t rounded_floats = 0;  // of each thread, at least rounded_floats(K)
};

struct OuterArgs {  // C__MN = start + A__RM^T B__RN, each element one chain over the rows from the last to the first
  int64_t R = 0, M = 0, N = 0;
  const float* A = nullptr;
  int64_t lda = 0;
  const float* B = nullptr;
  int64_t ldb = 0;
  float* C = nullptr;
  int64_t ldc = 0;
  bool accumulate = false;
  float* scratch = nullptr;  // outer_scratch(N, precision) floats for each thread
  // A's columns from gap_at on lie `gap` further right.
  int64_t gap_at = 0, gap = 0;
  // If M >= N, also in the same pass, while A's rows are in cache: their first M columns, without a gap, are added to rows of
  // `table`, and the columns beyond the gap to `sum`. Each may be set to zero first.
  float* table = nullptr;
  const int32_t* ids = nullptr;  // R
  int64_t table_stride = 0, table_rows = 0;
  bool zero_table = false;
  float* sum = nullptr;
  bool zero_sum = false;
};
static const int64_t OUTER_ROWS = 192, OUTER_COLUMNS = 128;  // block sizes: rows of both sides, columns of A
static const int64_t OUTER_A_SCRATCH = OUTER_ROWS * (OUTER_COLUMNS + 16);
// One cache line of padding between two panels of B, so that they use different sets of the L1 cache.
static UNSPOOL_INLINE int64_t outer_scratch_of_floats(int64_t N) { return OUTER_A_SCRATCH + (OUTER_ROWS + 1) * ((N + 15) / 16 * 16); }
// Rows of a block if the product is computed by tiles: the more rows, the fewer passes over C; B's rows take at most 768 KiB or so
// of an L2 cache of 2 MiB.
static UNSPOOL_INLINE int64_t outer_tile_rows(int64_t N) {
  const int64_t rows = 768 * 1024 / (2 * (N < 16 ? 16 : (N + 15) / 16 * 16)) / 32 * 32;
  return rows < OUTER_ROWS ? OUTER_ROWS : rows > 1024 ? 1024 : rows;
}
static UNSPOOL_INLINE int64_t outer_scratch(int64_t N, Precision precision) {
  const int64_t floats = outer_scratch_of_floats(N), tiles = outer_tile_rows(N) * (OUTER_COLUMNS + (N + 15) / 16 * 16) / 2;
  return precision == Precision::BF16 && tiles > floats ? tiles : floats;
}

struct ColumnSumArgs {  // s__N (+)= sum over rows, from the last to the first
  int64_t R = 0, N = 0;
  const float* A = nullptr;
  int64_t lda = 0;
  float* s = nullptr;
  bool accumulate = false;
};

struct GatherArgs {  // rows__RN = table[ids]
  int64_t R, N;
  const int32_t* ids;
  const float* table;
  int64_t table_stride;
  float* rows;
};
struct ScatterArgs {  // table[ids] += rows__RN, from the last row to the first
  int64_t R, N, K;
  const int32_t* ids;
  float* table;
  int64_t table_stride;
  const float* rows;
  int64_t row_stride;
  bool zero_table;  // first
};

// A width: multiples of H, the hidden units, and of P, the columns of p.
struct Width {
  int H, P;
  UNSPOOL_INLINE constexpr int64_t of(int64_t units, int64_t inputs) const { return H * units + P * inputs; }
};

// A parameter of a cell beyond U, W and b.
//
// Its gradient is a sum over all rows of da, from the last to the first. Of a vector: the sum of the columns of da that begin at
// `da`, as many as `rows`. Of a matrix: the sum of the outer products of these columns with the columns of the tape that begin at
// `tape`, as many as `columns`; forward must write finite numbers there for frozen rows too. The caller computes the sums.
struct ParameterSpec {
  const char* name;
  Width rows, columns;    // no columns: a vector
  Width da, tape;
  bool read_by_backward;  // else backward is called without its value
};
struct Parameter {
  const float* value;  // a vector
  Packed packed;       // a matrix (rows, columns), packed like W: transposed for forward, untransposed for backward
};
static const int MAX_PARAMETERS = 16;

// One window of a recurrence. Row b has lengths[b] steps; after that its state is frozen.
// hs holds h(0) where time starts: hs[t] is before step t and hs[t+1] after it, or, in reverse,
// hs[t+1] before and hs[t] after. The same holds for ss.
struct WindowArgs {
  int64_t tau, B, H;
  int64_t P;                  // the columns of p: gates H, or any number for a cell without gates
  int activation;
  bool reverse;
  const int32_t* lengths__B;  // nullptr: all rows have tau steps
  const float* recurrent_mask__BH;      // nullptr, or a dropout mask on h(t-1) inside the products
  Packed W;                   // forward: (H, G H) by gates; backward: (G H, H); of a cell without W: at is nullptr
  const Parameter* parameters;  // as the cell declares them
  float* rounded;             // bf16: rounded_floats(K) floats for each thread, K the most rows of a packed matrix
  int64_t rounded_floats;
};
struct ForwardArgs : WindowArgs {
  const float* p__tBP;        // the input's part of the pre-activations, b + U x(t), or x(t) itself for a cell without gates; or
  const float* table__KP;     // a table of them and
  const int32_t* ids__tB;     // the row of each step
  float* hs__tBH;             // out: tau + 1 steps
  float* ss__tBH;             // out: tau + 1 steps, for a cell with a cell state
  float* tape__tBT;           // out: what the cell stores of each step for backward
  float* h_masked__tBH;           // out, with a mask: h(t-1) times the mask
};
struct BackwardArgs : WindowArgs {
  const float* hs__tBH;
  const float* ss__tBH;
  const float* tape__tBT;
  const float* dh__tBH;       // gradient of every h(t) from above, or nullptr
  const float* dh_end__BH;    // gradient of the final state, or nullptr
  const float* ds_end__BH;
  const float* xi__tB;        // nullptr, or a factor on the gradient that each step passes to the step before it
  float* da__tBA;             // out: the gradient of p, then the further columns that the cell declares; zero for frozen rows
  float* dh_start__BH;        // out: gradient of h(0)
  float* ds_start__BH;
  float* scratch__BH;           // with a mask: H floats per row
  float* cell_scratch__BS;         // the floats per row that the cell declares
};

// A cell as its file in engine/cells describes it.
struct Cell {
  const char* name;
  int gates;                  // p = b + U x(t) has so many blocks of H columns; 0: the cell reads x(t) itself
  bool has_W;                 // a matrix (gates H, H) in front of h(t-1)
  bool has_cell_state;        // s beside h
  bool has_activation;        // the activation can be chosen
  Width tape, da, scratch;    // columns of the tape, of da, and of backward's scratch
  // The blocks of da whose outer product with h(t-1) is the gradient of W: the first W_gap_at, and those after the next W_gap.
  int W_gap_at, W_gap;
  enum Reuse { NONE, TAPE, DH } da_over;  // what backward may write da over: each element has been read when it is written
  int parameter_count;
  ParameterSpec parameters[MAX_PARAMETERS];
  void (*forward)(const ForwardArgs&, Team);
  void (*backward)(const BackwardArgs&, Team);
};

// o = h V^T + c; L = -log softmax(o)[y]; do = (softmax(o) - 1_y) scale, dh = do V, dV += do^T h, dc += sum do.
// Rows are processed in blocks from the last to the first: only one block of o is stored.
struct SoftmaxArgs {
  int64_t R, H, K, B, block;  // R rows in steps of B; a block holds whole steps
  const float* h__RH;
  Packed Vt;            // (H, K)
  Packed V;             // (K, H), for dh
  const float* c__K;    // or nullptr
  const int32_t* y__R;  // negative: masked, no loss and no gradient
  float scale;
  float* o__block_K;    // scratch
  float* scratch;          // outer_scratch(H, precision) floats for each thread
  float* rounded;          // bf16: scratch for rounded rows
  int64_t rounded_floats;  // of each thread: for the greater of H and K, since threads can be at different products
  double* loss__R;      // out: nats
  float* dh__RH;        // out, or nullptr: no gradients at all
  float* dV__KH;
  float* dc__K;         // or nullptr
  bool accumulate;      // add to dV and dc; else overwrite them
};

// One update of a flat parameter vector. Settings are the optimiser's numbers, in the order of its table entry.
static const int MAX_STATES = 4, MAX_SETTINGS = 12;
struct UpdateArgs {
  int64_t n;
  float* p;
  const float* g;
  float* states[MAX_STATES];  // an optional one may be nullptr
  float scale;                // of the gradient
  double settings[MAX_SETTINGS];
};
struct Optimiser {
  const char* name;
  int state_count, required_states;  // vectors of n values; the first so many must be given
  const char* states[MAX_STATES];
  int setting_count;
  const char* settings[MAX_SETTINGS];
  void (*update)(const UpdateArgs&, Team);
};

struct NormArgs {  // squares[i] = the sum of squares of chunk i, CHUNK values each
  int64_t n;
  const float* g;
  double* squares;
};
static const int64_t CHUNK = 4096;

struct DropArgs {  // out = 0 or 1/(1-rate), by Philox 4x32-10 with counter (index, stream) and key seed
  int64_t n;
  uint64_t seed, stream;
  float rate;
  float* out;
};
struct ShiftRowsArgs {  // out__RN = x__RN + b__N
  int64_t R, N;
  const float* x;
  int64_t stride;
  const float* b;
  float* out;
};
struct ScaleRowsArgs {  // out__tBH = x__tBH * mask__BH
  int64_t tau, B, H;
  const float* x;
  const float* mask;
  float* out;
};

struct ActivateArgs {  // out = act(x), or act' where x is the value of act
  int64_t n;
  int activation;
  bool slope;
  const float* x;
  float* out;
};

// `count` products of one tile each, in the order of the instruction TDPBF16PS: out = C + A B. A tile of A has 16 rows of 32 bf16,
// one of B 16 rows of 16 pairs (k, k + 1) of them, one of C and of out 16 x 16 floats.
struct TileArgs {
  int64_t count;
  const uint16_t *A, *B;
  const float* C;
  float* out;
  bool by_instruction;  // of AMX or AVX512_BF16; else by multiply-adds that flush denormal numbers, as the instruction does
};
using TileProducts = void(const TileArgs&);

// The kernels that multiply matrices, in one precision.
struct Products {
  const char* name;   // of the instructions
  Pairs pairs;        // of the matrices that `pack` packs
  bool by_tiles;      // by the tiles of AMX
  TileProducts* tile_products;  // to check an instruction for bf16; nullptr: only multiply-adds are used
  const Cell* cells;  // all instruction sets and precisions have the same cells in the same order
  int cell_count;
  void (*pack)(const PackArgs&, Team);
  void (*rows)(const RowsArgs&, Team);
  void (*outer)(const OuterArgs&, Team);
  void (*softmax)(const SoftmaxArgs&, Team);
};

struct Kernels {
  const char* name;
  const Optimiser* optimisers;  // all instruction sets have the same ones in the same order
  int optimiser_count;
  void (*column_sum)(const ColumnSumArgs&, Team);
  void (*gather)(const GatherArgs&, Team);
  void (*scatter_add)(const ScatterArgs&, Team);
  void (*norm)(const NormArgs&, Team);
  void (*drop)(const DropArgs&, Team);
  void (*scale_rows)(const ScaleRowsArgs&, Team);
  void (*shift_rows)(const ShiftRowsArgs&, Team);
  void (*activate)(const ActivateArgs&, Team);
  double (*exp_weights)(const float* o, int64_t K, float sharpness, float* out);  // out = exp(sharpness (o - max o)); their sum
  void (*log_softmax)(float* o, int64_t K, float start);  // o = start + log softmax(o), in place
  double (*fma_peak)(double seconds);  // this thread's rate in GF/s, for the benchmarks
};

const Kernels& kernels();                 // the chosen table
const Products& products(Precision);      // the products that go with it; for BF16, at the first call, tests the instruction for bf16
const Products& products(const Packed&);  // the same, or others of this machine if those do not read a matrix with such pairs
const char* bf16_name();                  // the name of products(BF16), as far as is known without that test
const char* choose_kernels(const char*);  // nullptr on success, else the reason
const char* available_kernels();          // names, best first, separated by spaces

}  // namespace unspool
