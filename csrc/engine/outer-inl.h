// Sums over rows, from the last row to the first: outer products, column sums and tables.
//
//   outer:  C = start + A^T B      both sides packed block by block; a tile is MR columns of A x NP panels of B
#pragma once
#include "engine/gemm-inl.h"

namespace unspool::UNSPOOL_SET {

// Load or store a tile of C; at the border only the part inside C.
template <int N> static inline void load_tile(V (&acc)[MR][N], const float* C, int64_t ldc, int rows, int64_t columns) {
  if (rows == MR && columns >= N * LANES) {
#pragma GCC unroll 8
    for (int i = 0; i < MR; i++)
#pragma GCC unroll 8
      for (int j = 0; j < N; j++) acc[i][j] = load(C + i * ldc + j * LANES);
    return;
  }
#pragma GCC unroll 8
  for (int i = 0; i < MR; i++)
#pragma GCC unroll 8
    for (int j = 0; j < N; j++) acc[i][j] = i < rows ? load_to(C + i * ldc, j * LANES, columns) : zero();
}
template <int N> static inline void store_tile(V (&acc)[MR][N], float* C, int64_t ldc, int rows, int64_t columns) {
  if (rows == MR && columns >= N * LANES) {
#pragma GCC unroll 8
    for (int i = 0; i < MR; i++)
#pragma GCC unroll 8
      for (int j = 0; j < N; j++) store(C + i * ldc + j * LANES, acc[i][j]);
    return;
  }
#pragma GCC unroll 8
  for (int i = 0; i < MR; i++)
#pragma GCC unroll 8
    for (int j = 0; j < N; j++)
      if (i < rows) store_to(C + i * ldc, j * LANES, columns, acc[i][j]);
}

// The rows of B from the last to the first, packed into panels or not.
struct RowsOfB {
  const float* at;
  int64_t down, panel;  // distance to the next row, and to the next sixteen columns
};

// The next block's rows of B, to be prefetched: each tile prefetches some cache lines, `stride` apart.
struct PrefetchQueue {
  const float* at;
  int64_t stride, rows, lines, row, line;

  Prefetch next(int64_t n, int N) {  // for a tile that prefetches n lines
    if (line >= lines) return {nullptr, 0, 0};
    const Prefetch prefetch = {at + row * stride + line * LANES, N * stride, stride};
    row += n;
    if (row >= rows) row = 0, line++;
    return prefetch;
  }
};

template <int N> static inline void outer_panels(const OuterArgs& a, int64_t m, int64_t n, const float* Ap, const RowsOfB& B,
                                                 int64_t R, int64_t j, bool from_zero, PrefetchQueue& queue) {
  for (; j + (N - 1) * LANES < a.N; j += N * LANES) {
    for (int64_t i = 0; i < n; i += MR) {
      V acc[MR][N];
      float* C = a.C + (m + i) * a.ldc + j;
      const int live = (int)(n - i < MR ? n - i : MR);
      if (from_zero) {
#pragma GCC unroll 8
        for (int r = 0; r < MR; r++)
#pragma GCC unroll 8
          for (int q = 0; q < N; q++) acc[r][q] = zero();
      } else {
        load_tile<N>(acc, C, a.ldc, live, a.N - j);
      }
      tile<MR, N, true>(Ap + i * R, 0, B.at + j / LANES * B.panel, B.down, B.panel, R, acc, queue.next(R / 4 * N, N));
      store_tile<N>(acc, C, a.ldc, live, a.N - j);
    }
  }
  if constexpr (N > 1) outer_panels<N / 2>(a, m, n, Ap, B, R, j, from_zero, queue);
}

static inline void add_row(float* to, const float* row, int64_t n) {
  for (int64_t j = 0; j < n; j += LANES) put(to + j, n - j, get<V>(to + j, n - j) + get<V>(row + j, n - j));
}

static inline void pack_columns(const float* row, int64_t n, float* to, int64_t panel) {
  int64_t i = 0;
  for (; i + MR <= n; i += MR, to += panel) __builtin_memcpy(to, row + i, MR * 4);
  for (int q = 0; i < n && q < MR; q++) to[q] = i + q < n ? row[i + q] : 0.0f;
}

// Threads split the wider side; each packs the part of both sides that it needs.
static void outer(const OuterArgs& whole, Team team) {
  OuterArgs a = whole;
  Range mine = {0, a.M};
  if (a.M >= a.N) {
    mine = partition(a.M, LANES, team.index, team.count);
  } else {
    const Range columns = partition(a.N, LANES, team.index, team.count);
    a.N = columns.end - columns.begin;
    a.B += columns.begin;
    a.C += columns.begin;
  }
  for (int64_t k = 0; a.zero_table && k < a.table_rows; k++)
    __builtin_memset(a.table + k * a.table_stride + mine.begin, 0, (size_t)(mine.end - mine.begin) * 4);
  for (int64_t m = mine.begin; a.zero_sum && m < mine.end; m++)
    if (m >= a.gap_at) a.sum[m - a.gap_at] = 0.0f;
  if (a.R == 0) {
    for (int64_t m = mine.begin; !a.accumulate && m < mine.end; m++) __builtin_memset(a.C + m * a.ldc, 0, (size_t)a.N * 4);
    return;
  }
  float* Ap = a.scratch + team.index * outer_scratch(whole.N);
  float* Bp = Ap + OUTER_A_SCRATCH;
  // Packing does not pay for narrow rows of B and few columns of A: a block of them stays in the L1 cache.
  const bool unpacked = a.N % LANES == 0 && a.ldb <= 64 && mine.end - mine.begin <= 128;
  const int64_t most = unpacked ? OUTER_ROWS / 2 : OUTER_ROWS;
  for (int64_t top = a.R; top > 0; top -= most) {
    const int64_t R = top < most ? top : most;
    const bool from_zero = top == a.R && !a.accumulate;
    const RowsOfB B = unpacked ? RowsOfB{a.B + (top - 1) * a.ldb, -a.ldb, LANES} : RowsOfB{Bp, LANES, (R + 1) * LANES};
    for (int64_t r = 0; r < R && !unpacked; r++) {
      const float* row = a.B + (top - 1 - r) * a.ldb;
      for (int64_t j = 0; j < a.N; j += LANES) store(Bp + j * (R + 1) + r * LANES, load_to(row, j, a.N));
    }
    for (int64_t m = mine.begin, n; m < mine.end; m += n) {
      const int64_t end = m < a.gap_at && a.gap_at < mine.end ? a.gap_at : mine.end;
      n = end - m < OUTER_COLUMNS ? end - m : OUTER_COLUMNS;
      for (int64_t r = 0; r < R; r++) {
        const float *plain = a.A + (top - 1 - r) * a.lda + m, *row = plain + (m < a.gap_at ? 0 : a.gap);
        pack_columns(row, n, Ap + r * MR, R * MR);
        if (a.table) add_row(a.table + a.ids[top - 1 - r] * a.table_stride + m, plain, n);
        if (a.sum && m >= a.gap_at) add_row(a.sum + m - a.gap_at, row, n);
      }
      // Prefetch the next block's rows of B while the first columns are multiplied.
      const int64_t next = top - R < most ? 0 : top - R - most, rows = top - R - next;
      PrefetchQueue queue = {a.B + next * a.ldb, a.ldb, rows, a.N / LANES, 0, 0};
      if (a.ldb == a.N) queue.stride = LANES, queue.rows = rows * a.N / LANES, queue.lines = 1;  // contiguous rows: in the order of the memory
      if (m > mine.begin || rows == 0) queue.lines = 0;
      outer_panels<NP>(a, m, n, Ap, B, R, 0, from_zero, queue);
    }
  }
}

// N panels of columns at a time, with their sums in registers; the rest in smaller groups.
template <int N> static inline void sum_columns(const ColumnSumArgs& a, int64_t j, int64_t end) {
  for (; j + (N - 1) * LANES < end; j += N * LANES) {
    V acc[N];
    for (int q = 0; q < N; q++) acc[q] = a.accumulate ? load_to(a.s, j + q * LANES, a.N) : zero();
    if (j + N * LANES <= a.N) {
      for (int64_t r = a.R - 1; r >= 0; r--)
#pragma GCC unroll 8
        for (int q = 0; q < N; q++) acc[q] = acc[q] + load(a.A + r * a.lda + j + q * LANES);
    } else {
      for (int64_t r = a.R - 1; r >= 0; r--)
        for (int q = 0; q < N; q++) acc[q] = acc[q] + load_to(a.A + r * a.lda, j + q * LANES, a.N);
    }
    for (int q = 0; q < N; q++) store_to(a.s, j + q * LANES, a.N, acc[q]);
  }
  if constexpr (N > 1) sum_columns<N / 2>(a, j, end);
}

static void column_sum(const ColumnSumArgs& a, Team team) {
  const Range mine = partition(a.N, LANES, team.index, team.count);
  sum_columns<8>(a, mine.begin, mine.end);
}

static void gather(const GatherArgs& a, Team team) {
  const Range mine = partition(a.R, 1, team.index, team.count);
  for (int64_t r = mine.begin; r < mine.end; r++)
    __builtin_memcpy(a.rows + r * a.N, a.table + (int64_t)a.ids[r] * a.table_stride, (size_t)a.N * 4);
}

// Threads split the columns: no two threads add to the same element.
static void scatter_add(const ScatterArgs& a, Team team) {
  const Range mine = partition(a.N, LANES, team.index, team.count);
  if (a.zero_table)
    for (int64_t k = 0; k < a.K; k++) __builtin_memset(a.table + k * a.table_stride + mine.begin, 0, (size_t)(mine.end - mine.begin) * 4);
  for (int64_t r = a.R - 1; r >= 0; r--) {
    float* to = a.table + (int64_t)a.ids[r] * a.table_stride;
    const float* from = a.rows + r * a.row_stride;
    add_row(to + mine.begin, from + mine.begin, mine.end - mine.begin);
  }
}

}  // namespace unspool::UNSPOOL_SET
