// Sums of outer products of numbers that are rounded to bf16, over the rows from the last to the first: blocks of 32 rows counted
// from the last one, zeros beyond the first; in a block, E over the rows at even distance from the last one, O over the others, and
// s = s + (E + O). Here s is C itself: a sum over several segments of rows has the same bits if every segment but the earliest has
// a multiple of 32 rows.
//
//   outer:  C = start + A^T B      A is transposed and rounded, B packed into panels of pairs of rows, block by block
#pragma once
#include "engine/sums-inl.h"
#if defined(UNSPOOL_AMX)
#include "engine/outer_amx-inl.h"
#endif

namespace unspool::UNSPOOL_SET {

// Columns m … m+n-1 of the R rows before `top`, the last row first: n rows of rounded numbers, `stride` apart.
static inline void transpose_rounded(const OuterArgs& a, int64_t top, int64_t R, int64_t m, int64_t n, float* to, int64_t stride) {
  const float* row[LANES] = {};
  for (int64_t r = 0; r < padded32(R); r += LANES) {
    for (int64_t q = 0; q < LANES && r + q < R; q++) row[q] = outer_columns(a, top - 1 - r - q, m, n);
    for (int64_t i = 0; i < n; i += LANES) {
      float block[LANES * LANES];
      if (r + LANES <= R && i + LANES <= n) {
        transpose_block(row[0] + i, -a.lda, block);
      } else {
        for (int64_t c = 0; c < LANES; c++)
          for (int64_t q = 0; q < LANES; q++) block[c * LANES + q] = i + c < n && r + q < R ? row[q][i + c] : 0.0f;
      }
      for (int64_t c = 0; c < LANES && i + c < n; c++) store(to + (i + c) * stride + r, round_bf16(load(block + c * LANES)));
    }
  }
}

// The R rows of B before `top`, the last row first, as panels of pairs.
static inline void pack_pairs(const OuterArgs& a, int64_t top, int64_t R, uint32_t* to) {
  const int64_t panel = padded32(R) / 2 * LANES;
  for (int64_t r = 0; r < padded32(R); r += 2)
    for (int64_t j = 0; j < a.N; j += LANES) {
      const float* row = a.B + (top - 1 - r) * a.ldb;
      const V even = r < R ? round_bf16(load_to(row, j, a.N)) : zero(), odd = r + 1 < R ? round_bf16(load_to(row - a.ldb, j, a.N)) : zero();
      store_bits(to + j / LANES * panel + r / 2 * LANES, pairs_of(even, odd));
    }
}

template <int N> static inline void bf16_outer_panels(const OuterArgs& a, int64_t m, int64_t n, const float* At, int64_t stride, const uint32_t* Bp, int64_t R,
                                                      int64_t j, bool from_zero) {
  const int64_t panel = padded32(R) / 2 * LANES;
  for (; j + (N - 1) * LANES < a.N; j += N * LANES)
    for (int64_t i = 0; i < n; i += BF16_ROWS) {
      const int rows = (int)(n - i < BF16_ROWS ? n - i : BF16_ROWS);
      float* C = a.C + (m + i) * a.ldc;
      V s[BF16_ROWS * N];
      for (int r = 0; r < rows; r++)
        for (int q = 0; q < N; q++) s[r * N + q] = from_zero ? zero() : load_to(C + r * a.ldc, j + q * LANES, a.N);
      bf16_rows<BF16_ROWS, N>(rows, At + i * stride, stride, Bp + j / LANES * panel, panel, padded32(R) / 32, s, N);
      for (int r = 0; r < rows; r++)
        for (int q = 0; q < N; q++) store_to(C + r * a.ldc, j + q * LANES, a.N, s[r * N + q]);
    }
  if constexpr (N > 1) bf16_outer_panels<N / 2>(a, m, n, At, stride, Bp, R, j, from_zero);
}

static void outer(const OuterArgs& whole, Team team) {
#if defined(UNSPOOL_AMX)
  if (tile_outer(whole, team)) return;
#endif
  const OuterPart part = outer_part(whole, team);
  const OuterArgs& a = part.a;
  const Range mine = part.columns;
  const int64_t stride = OUTER_ROWS + 16;  // OUTER_COLUMNS rows of it fit into OUTER_A_SCRATCH
  float* At = a.scratch;
  uint32_t* Bp = (uint32_t*)(At + OUTER_A_SCRATCH);
  for (int64_t top = a.R; top > 0; top -= OUTER_ROWS) {
    const int64_t R = top < OUTER_ROWS ? top : OUTER_ROWS;
    pack_pairs(a, top, R, Bp);
    for (int64_t m = mine.begin, n; m < mine.end; m += n) {
      const int64_t end = m < a.gap_at && a.gap_at < mine.end ? a.gap_at : mine.end;
      n = end - m < OUTER_COLUMNS ? end - m : OUTER_COLUMNS;
      transpose_rounded(a, top, R, m, n, At, stride);
      bf16_outer_panels<BF16_PANELS>(a, m, n, At, stride, Bp, R, 0, top == a.R && !a.accumulate);
    }
  }
}

}  // namespace unspool::UNSPOOL_SET
