// Sums of outer products of numbers that are rounded to bf16, over the rows from the last to the first: blocks of 32 rows counted
// from the last one, zeros beyond the first; in a block, E over the rows at even distance from the last one, O over the others, and
// s = s + (E + O). Here s is C itself: a sum over several segments of rows has the same bits if every segment but the earliest has
// a multiple of 32 rows.
//
//   outer:  C = start + A^T B      both sides rounded and packed block by block; a tile is BF16_ROWS columns of A x BF16_PANELS panels of B
#pragma once
#include "engine/sums-inl.h"
#if defined(UNSPOOL_AMX)
#include "engine/outer_amx-inl.h"
#endif

namespace unspool::UNSPOOL_SET {

// A's columns, packed BF16_ROWS at a time, and panels of B: rounded floats, the last row first.
struct ColumnsOfA {
  const float* a;
  inline __attribute__((always_inline)) const float* at(int i, int k) const { return a + k * BF16_ROWS + i; }
  inline __attribute__((always_inline)) void next_block() { a += 32 * BF16_ROWS; }
};
struct FloatsOfB {
  const float* b;
  int64_t panel;
  inline __attribute__((always_inline)) V row(int k, int j) const { return load(b + k * LANES + j * panel); }
  inline __attribute__((always_inline)) void next_block() { b += 32 * LANES; }
};

// Columns m … m+n-1 of the R rows before `top`; zeros to whole blocks of rows. A few rows are rounded before they are copied, which
// was faster than row by row.
static inline void pack_columns(const OuterArgs& a, int64_t top, int64_t R, int64_t m, int64_t n, float* to) {
  const int64_t depth = padded32(R), FEW = 8;
  for (int64_t first = 0; first < depth; first += FEW) {
    float rounded[FEW][OUTER_COLUMNS + LANES];
    for (int64_t r = 0; r < FEW; r++) {
      const float* row = first + r < R ? outer_columns(a, top - 1 - first - r, m, n) : nullptr;
      for (int64_t i = 0; i < n; i += LANES) store(rounded[r] + i, row ? round_bf16(load_to(row, i, n)) : zero());
    }
    for (int64_t i = 0; i < n; i += BF16_ROWS)
      for (int64_t r = 0; r < FEW; r++) __builtin_memcpy(to + i * depth + (first + r) * BF16_ROWS, rounded[r] + i, BF16_ROWS * 4);
  }
}

static inline void pack_panels(const OuterArgs& a, int64_t top, int64_t R, float* to) {
  const int64_t depth = padded32(R), AHEAD = 4;  // rows to be prefetched
  for (int64_t r = 0; r < depth; r++)
    for (int64_t j = 0; j < a.N; j += LANES) {
      const float* row = a.B + (top - 1 - r) * a.ldb;
      if (r + AHEAD < R) __builtin_prefetch(row - AHEAD * a.ldb + j);
      store(to + j * (depth + 1) + r * LANES, r < R ? round_bf16(load_to(row, j, a.N)) : zero());
    }
}

template <int N> static inline void bf16_outer_panels(const OuterArgs& a, int64_t m, int64_t n, const float* Ap, const float* Bp, int64_t depth, int64_t j,
                                                      bool from_zero) {
  const int64_t panel = (depth + 1) * LANES;
  for (; j + (N - 1) * LANES < a.N; j += N * LANES)
    for (int64_t i = 0; i < n; i += BF16_ROWS) {
      const int rows = (int)(n - i < BF16_ROWS ? n - i : BF16_ROWS);
      const bool inside = j + N * LANES <= a.N;
      float* C = a.C + (m + i) * a.ldc + j;
      alignas(64) float part[BF16_ROWS * N * LANES];  // at the border
      float* s = inside ? C : part;
      const int64_t lds = inside ? a.ldc : N * LANES;
      for (int r = 0; r < rows && !inside && !from_zero; r++)
        for (int q = 0; q < N * LANES; q += LANES) store(s + r * lds + q, load_to(C + r * a.ldc, q, a.N - j));
      bf16_rows<BF16_ROWS, N>(rows, ColumnsOfA{Ap + i * depth}, FloatsOfB{Bp + j / LANES * panel, panel}, depth / 32, s, lds, from_zero);
      for (int r = 0; r < rows && !inside; r++)
        for (int q = 0; q < N * LANES; q += LANES) store_to(C + r * a.ldc, q, a.N - j, load(s + r * lds + q));
    }
  if constexpr (N > 1) bf16_outer_panels<N / 2>(a, m, n, Ap, Bp, depth, j, from_zero);
}

static void outer(const OuterArgs& whole, Team team) {
#if defined(UNSPOOL_AMX)
  if (tile_outer(whole, team)) return;
#endif
  const OuterPart part = outer_part(whole, team);
  const OuterArgs& a = part.a;
  const Range mine = part.columns;
  float *Ap = a.scratch, *Bp = Ap + OUTER_A_SCRATCH;
  for (int64_t top = a.R; top > 0; top -= OUTER_ROWS) {
    const int64_t R = top < OUTER_ROWS ? top : OUTER_ROWS;
    pack_panels(a, top, R, Bp);
    for (int64_t m = mine.begin, n; m < mine.end; m += n) {
      const int64_t end = m < a.gap_at && a.gap_at < mine.end ? a.gap_at : mine.end;
      n = end - m < OUTER_COLUMNS ? end - m : OUTER_COLUMNS;
      pack_columns(a, top, R, m, n, Ap);
      bf16_outer_panels<BF16_PANELS>(a, m, n, Ap, Bp, padded32(R), 0, top == a.R && !a.accumulate);
    }
  }
}

}  // namespace unspool::UNSPOOL_SET
