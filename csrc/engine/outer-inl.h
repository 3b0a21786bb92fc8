// Sums over rows, from the last row to the first: outer products, column sums and tables.
//
//   outer:  C = start + A^T B      both sides packed block by block; a tile is MR columns of A x NP panels of B
#pragma once
#include "engine/gemm-inl.h"

namespace unspool::UNSPOOL_SET {

// A tile's corner of C: whole, or as far as it goes.
template <int N> static inline void take_up(V (&acc)[MR][N], const float* C, int64_t ldc, int rows, int64_t columns) {
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
template <int N> static inline void put_down(V (&acc)[MR][N], float* C, int64_t ldc, int rows, int64_t columns) {
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

// The rows of B from the last to the first: packed into panels, or as they lie.
struct Right {
  const float* at;
  int64_t down, panel;  // how far to the next row, and to the next sixteen columns
};

// The next block's rows of B, to be called for on the way: each tile takes some lines, `stride` apart.
struct Coming {
  const float* at;
  int64_t stride, rows, lines, row, line;

  Ahead next(int64_t n, int N) {  // for a tile that calls for n
    if (line >= lines) return {nullptr, 0, 0};
    const Ahead ahead = {at + row * stride + line * LANES, N * stride, stride};
    row += n;
    if (row >= rows) row = 0, line++;
    return ahead;
  }
};

template <int N> static inline void outer_panels(const OuterArgs& a, int64_t m, int64_t n, const float* Ap, const Right& B,
                                                 int64_t R, int64_t j, bool fresh, Coming& coming) {
  for (; j + (N - 1) * LANES < a.N; j += N * LANES) {
    for (int64_t i = 0; i < n; i += MR) {
      V acc[MR][N];
      float* C = a.C + (m + i) * a.ldc + j;
      const int live = (int)(n - i < MR ? n - i : MR);
      if (fresh) {
#pragma GCC unroll 8
        for (int r = 0; r < MR; r++)
#pragma GCC unroll 8
          for (int q = 0; q < N; q++) acc[r][q] = zero();
      } else {
        take_up<N>(acc, C, a.ldc, live, a.N - j);
      }
      tile<MR, N, true>(Ap + i * R, 0, B.at + j / LANES * B.panel, B.down, B.panel, R, acc, coming.next(R / 4 * N, N));
      put_down<N>(acc, C, a.ldc, live, a.N - j);
    }
  }
  if constexpr (N > 1) outer_panels<N / 2>(a, m, n, Ap, B, R, j, fresh, coming);
}

static inline void add_row(float* to, const float* row, int64_t n) {
  for (int64_t j = 0; j < n; j += LANES) put(to + j, n - j, get<V>(to + j, n - j) + get<V>(row + j, n - j));
}

static inline void pack_columns(const float* row, int64_t n, float* to, int64_t panel) {
  int64_t i = 0;
  for (; i + MR <= n; i += MR, to += panel) __builtin_memcpy(to, row + i, MR * 4);
  for (int q = 0; i < n && q < MR; q++) to[q] = i + q < n ? row[i + q] : 0.0f;
}

// The wider side is shared among the threads; each packs what it needs of both.
static void outer(const OuterArgs& whole, Team team) {
  OuterArgs a = whole;
  Range mine = {0, a.M};
  if (a.M >= a.N) {
    mine = share(a.M, LANES, team.index, team.count);
  } else {
    const Range columns = share(a.N, LANES, team.index, team.count);
    a.N = columns.end - columns.begin;
    a.B += columns.begin;
    a.C += columns.begin;
  }
  for (int64_t k = 0; a.table_fresh && k < a.table_rows; k++)
    __builtin_memset(a.table + k * a.table_stride + mine.begin, 0, (size_t)(mine.end - mine.begin) * 4);
  for (int64_t m = mine.begin; a.sum_fresh && m < mine.end; m++)
    if (m >= a.gap_at) a.sum[m - a.gap_at] = 0.0f;
  if (a.R == 0) {
    for (int64_t m = mine.begin; !a.accumulate && m < mine.end; m++) __builtin_memset(a.C + m * a.ldc, 0, (size_t)a.N * 4);
    return;
  }
  float* Ap = a.room + team.index * outer_room(whole.N);
  float* Bp = Ap + OUTER_A_ROOM;
  // Narrow rows of B that few columns of A meet are not worth packing: a block of them stays in the first cache.
  const bool as_it_lies = a.N % LANES == 0 && a.ldb <= 64 && mine.end - mine.begin <= 128;
  const int64_t most = as_it_lies ? OUTER_ROWS / 2 : OUTER_ROWS;
  for (int64_t top = a.R; top > 0; top -= most) {
    const int64_t R = top < most ? top : most;
    const bool fresh = top == a.R && !a.accumulate;
    const Right B = as_it_lies ? Right{a.B + (top - 1) * a.ldb, -a.ldb, LANES} : Right{Bp, LANES, (R + 1) * LANES};
    for (int64_t r = 0; r < R && !as_it_lies; r++) {
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
      // While the first columns are multiplied, the next block's rows of B are on their way.
      const int64_t next = top - R < most ? 0 : top - R - most, rows = top - R - next;
      Coming coming = {a.B + next * a.ldb, a.ldb, rows, a.N / LANES, 0, 0};
      if (a.ldb == a.N) coming.stride = LANES, coming.rows = rows * a.N / LANES, coming.lines = 1;  // side by side: in the order of the memory
      if (m > mine.begin || rows == 0) coming.lines = 0;
      outer_panels<NP>(a, m, n, Ap, B, R, 0, fresh, coming);
    }
  }
}

// N panels of columns at a time, their sums in registers; what is left in smaller groups.
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
  const Range mine = share(a.N, LANES, team.index, team.count);
  sum_columns<8>(a, mine.begin, mine.end);
}

static void gather(const GatherArgs& a, Team team) {
  const Range mine = share(a.R, 1, team.index, team.count);
  for (int64_t r = mine.begin; r < mine.end; r++)
    __builtin_memcpy(a.rows + r * a.N, a.table + (int64_t)a.ids[r] * a.table_stride, (size_t)a.N * 4);
}

// Columns are shared among the threads: two rows with the same id never meet.
static void scatter_add(const ScatterArgs& a, Team team) {
  const Range mine = share(a.N, LANES, team.index, team.count);
  if (a.fresh)
    for (int64_t k = 0; k < a.K; k++) __builtin_memset(a.table + k * a.table_stride + mine.begin, 0, (size_t)(mine.end - mine.begin) * 4);
  for (int64_t r = a.R - 1; r >= 0; r--) {
    float* to = a.table + (int64_t)a.ids[r] * a.table_stride;
    const float* from = a.rows + r * a.row_stride;
    add_row(to + mine.begin, from + mine.begin, mine.end - mine.begin);
  }
}

}  // namespace unspool::UNSPOOL_SET
