// Sums of outer products of numbers that are rounded to bf16, over the rows from the last to the first: blocks of 32 rows counted
// from the last one, zeros beyond the first; in a block, E over the rows at even distance from the last one, O over the others, and
// s = s + (E + O). Here s is C itself: a sum over several segments of rows has the same bits if every segment but the earliest has
// a multiple of 32 rows.
//
//   outer:  C = start + A^T B      both sides rounded and packed block by block into lines: a row, or pairs
//                                of two rows of one chain; a tile is BF16_ROWS columns of A x BF16_PANELS panels of B
#pragma once
#include "engine/sums-inl.h"
#if defined(UNSPOOL_AMX)
#include "engine/outer_amx-inl.h"
#endif

namespace unspool::UNSPOOL_SET {

// A's columns, packed BF16_ROWS at a time, the last row first: how a tile reads float k of column i in a block of 32 rows.
struct ColumnsOfA {
  const float* a;
  inline __attribute__((always_inline)) const float* at(int i, int k) const { return a + k * BF16_ROWS + i; }
  inline __attribute__((always_inline)) void next_block() { a += 32 / NUMBERS * BF16_ROWS; }
};

static const int64_t FEW = 8, FEW_LINES = FEW / NUMBERS;  // rows that are rounded together

// Columns m … m+n-1 of the R rows before `top`; zeros to whole blocks of rows. A few rows are rounded before they are copied, which
// was faster than row by row.
static inline void pack_columns(const OuterArgs& a, int64_t top, int64_t R, int64_t m, int64_t n, float* to) {
  const int64_t lines = padded32(R) / NUMBERS;
  for (int64_t first = 0; first < padded32(R); first += FEW) {
    const float* row[FEW];
    for (int64_t r = 0; r < FEW; r++) row[r] = first + r < R ? outer_columns(a, top - 1 - first - r, m, n) : nullptr;
    float rounded[FEW_LINES][OUTER_COLUMNS + LANES];
    for (int64_t l = 0; l < FEW_LINES; l++)
      for (int64_t i = 0; i < n; i += LANES) store(rounded[l] + i, rounded_line(row, l, i, n));
    for (int64_t i = 0; i < n; i += BF16_ROWS)
      for (int64_t l = 0; l < FEW_LINES; l++) __builtin_memcpy(to + i * lines + (first / NUMBERS + l) * BF16_ROWS, rounded[l] + i, BF16_ROWS * 4);
  }
}

// The R rows of B before `top`, as panels of lines.
static inline void pack_panels(const OuterArgs& a, int64_t top, int64_t R, float* to) {
  const int64_t lines = padded32(R) / NUMBERS, AHEAD = 4;  // rows to be prefetched
  for (int64_t first = 0; first < padded32(R); first += FEW) {
    const float* row[FEW];
    for (int64_t r = 0; r < FEW; r++) row[r] = first + r < R ? a.B + (top - 1 - first - r) * a.ldb : nullptr;
    for (int64_t l = 0; l < FEW_LINES; l++)
      for (int64_t j = 0; j < a.N; j += LANES) {
        for (int64_t r = l * NUMBERS; r < (l + 1) * NUMBERS; r++)
          if (first + r + AHEAD < R) __builtin_prefetch(row[r] - AHEAD * a.ldb + j);
        store(to + j * (lines + 1) + (first / NUMBERS + l) * LANES, rounded_line(row, l, j, a.N));
      }
  }
}

// Not inlined: the compiler would have too few registers for the sums.
template <int N> static __attribute__((noinline)) void bf16_columns(int columns, ColumnsOfA a, LinesOfB b, int64_t blocks, float* s, int64_t lds, bool from_zero) {
  bf16_rows<BF16_ROWS, N>(columns, a, b, blocks, s, lds, from_zero);
}

template <int N> static inline void bf16_outer_panels(const OuterArgs& a, int64_t m, int64_t n, const float* Ap, const float* Bp, int64_t lines, int64_t j,
                                                      bool from_zero) {
  const int64_t panel = (lines + 1) * LANES;
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
      for (int64_t r = i + BF16_ROWS; r < n && r < i + 2 * BF16_ROWS && !from_zero; r++)  // the next tile of C
        for (int q = 0; q < N; q++) __builtin_prefetch(a.C + (m + r) * a.ldc + j + q * LANES, 1);
      bf16_columns<N>(rows, ColumnsOfA{Ap + i * lines}, LinesOfB{Bp + j / LANES * panel, panel}, lines * NUMBERS / 32, s, lds, from_zero);
      for (int r = 0; r < rows && !inside; r++)
        for (int q = 0; q < N * LANES; q += LANES) store_to(C + r * a.ldc, q, a.N - j, load(s + r * lds + q));
    }
  if constexpr (N > 1) bf16_outer_panels<N / 2>(a, m, n, Ap, Bp, lines, j, from_zero);
}

static void outer(const OuterArgs& whole, Team team) {
#if defined(UNSPOOL_AMX)
  if (tile_outer(whole, team)) return;
#endif
  const OuterPart part = outer_part(whole, team);
  const OuterArgs& a = part.a;
  const Range mine = part.columns;
  float *Ap = a.scratch, *Bp = Ap + OUTER_A_SCRATCH;
  const int64_t most = OUTER_ROWS * NUMBERS;
  for (int64_t top = a.R; top > 0; top -= most) {
    const int64_t R = top < most ? top : most;
    pack_panels(a, top, R, Bp);
    for (int64_t m = mine.begin, n; m < mine.end; m += n) {
      const int64_t end = m < a.gap_at && a.gap_at < mine.end ? a.gap_at : mine.end;
      n = end - m < OUTER_COLUMNS ? end - m : OUTER_COLUMNS;
      pack_columns(a, top, R, m, n, Ap);
      bf16_outer_panels<BF16_PANELS>(a, m, n, Ap, Bp, padded32(R) / NUMBERS, 0, top == a.R && !a.accumulate);
    }
  }
}

}  // namespace unspool::UNSPOOL_SET
