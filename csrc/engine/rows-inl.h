// Products of all rows of a matrix, in the precision that is being compiled.
#pragma once
#if defined(UNSPOOL_BF16)
#include "engine/gemm_bf16-inl.h"
#else
#include "engine/gemm-inl.h"
#endif

namespace unspool::UNSPOOL_SET {

// Some rows of a product, times some panels; a block of rows stays in cache for all panels.
static inline void rows_between(const RowsArgs& a, Range which, int64_t first_panel, int64_t last_panel, Team team) {
  const float* start[ROWS_AT_ONCE];
  for (int64_t m = which.begin; m < which.end; m += ROWS_AT_ONCE) {
    const int64_t n = which.end - m < ROWS_AT_ONCE ? which.end - m : ROWS_AT_ONCE;
    for (int64_t i = 0; i < n && a.start; i++) start[i] = a.start + (m + i) * a.start_stride;
    Product p;
    p.M = n, p.K = a.B.K;
    p.A = a.A + m * a.lda, p.lda = a.lda;
    p.B = a.B, p.first_panel = first_panel, p.last_panel = last_panel;
    p.start = a.start ? start : nullptr;
    p.C = a.C + m * a.ldc, p.ldc = a.ldc;
    p.rounded = a.rounded ? a.rounded + team.index * a.rounded_floats : nullptr;
    product(p);
  }
}

// Threads split the rows, or the panels if the rows are few.
static void rows(const RowsArgs& a, Team team) {
  const int64_t panels = a.B.panels();
  if (a.M <= 64 && panels >= 2 * team.count) {
    const Range mine = partition(panels, 1, team.index, team.count);
    return rows_between(a, {0, a.M}, mine.begin, mine.end, team);
  }
  rows_between(a, partition(a.M, MR, team.index, team.count), 0, panels, team);
}

}  // namespace unspool::UNSPOOL_SET
