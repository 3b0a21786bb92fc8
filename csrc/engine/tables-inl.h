// Rows of tables: gathered, and added to.
#pragma once
#include "engine/sums-inl.h"

namespace unspool::UNSPOOL_SET {

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
