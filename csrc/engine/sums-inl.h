// Sums over rows, from the last row to the first: column sums, tables, and the parts of outer products that have no products.
#pragma once
#include "engine/rows-inl.h"

namespace unspool::UNSPOOL_SET {

static inline void add_row(float* to, const float* row, int64_t n) {
  for (int64_t j = 0; j < n; j += LANES) put(to + j, n - j, get<V>(to + j, n - j) + get<V>(row + j, n - j));
}

// The part of a sum of outer products that a thread computes. Threads split the wider side.
struct OuterPart {
  OuterArgs a;
  Range columns;  // of A
};
static inline OuterPart outer_part(const OuterArgs& whole, Team team) {
  OuterPart part = {whole, {0, whole.M}};
  OuterArgs& a = part.a;
  if (a.M >= a.N) {
    part.columns = partition(a.M, LANES, team.index, team.count);
  } else {
    const Range mine = partition(a.N, LANES, team.index, team.count);
    a.N = mine.end - mine.begin;
    a.B += mine.begin;
    a.C += mine.begin;
  }
  const Range mine = part.columns;
  a.scratch += team.index * outer_scratch(whole.N, PRECISION);
  for (int64_t k = 0; a.zero_table && k < a.table_rows; k++)
    __builtin_memset(a.table + k * a.table_stride + mine.begin, 0, (size_t)(mine.end - mine.begin) * 4);
  for (int64_t m = mine.begin; a.zero_sum && m < mine.end; m++)
    if (m >= a.gap_at) a.sum[m - a.gap_at] = 0.0f;
  for (int64_t m = mine.begin; a.R == 0 && !a.accumulate && m < mine.end; m++) __builtin_memset(a.C + m * a.ldc, 0, (size_t)a.N * 4);
  return part;
}

// Columns m … m+n-1 of row r of A: where they begin, and their part of the table and of the sum.
static inline const float* outer_columns(const OuterArgs& a, int64_t r, int64_t m, int64_t n) {
  const float *plain = a.A + r * a.lda + m, *row = plain + (m < a.gap_at ? 0 : a.gap);
  if (a.table) add_row(a.table + a.ids[r] * a.table_stride + m, plain, n);
  if (a.sum && m >= a.gap_at) add_row(a.sum + m - a.gap_at, row, n);
  return row;
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

}  // namespace unspool::UNSPOOL_SET
