// Sums of outer products in bf16 by the tile registers of AMX, in the order of outer_bf16-inl.h. Both sides are packed into pairs of
// rows, counted from the last one; the pairs of A are then transposed, 16 x 16 words at a time: half the work of transposing floats.
#pragma once
#include "engine/gemm_amx-inl.h"
#include "engine/sums-inl.h"

namespace unspool::UNSPOOL_SET {

// Columns m … m+n-1 of the R rows of A before `top`, the last row first, as tiles: 16 columns, then the blocks of 32 rows.
static inline void tile_columns(const OuterArgs& a, int64_t top, int64_t R, int64_t m, int64_t n, uint32_t* to) {
  const int64_t blocks = padded32(R) / 32;
  for (int64_t r = 0; r < R; r += 32) {
    const float* row[32] = {};
    for (int64_t q = 0; q < 32 && r + q < R; q++) row[q] = outer_columns(a, top - 1 - r - q, m, n);
    for (int64_t i = 0; i < n; i += TILE) {
      alignas(64) uint32_t words[BLOCK_WORDS];
      for (int64_t q = 0; q < 32; q += 2)
        store_bits(words + q / 2 * LANES, rounded_pairs(row[q] ? load_to(row[q], i, n) : zero(), row[q + 1] ? load_to(row[q + 1], i, n) : zero()));
      transpose_block((const float*)words, LANES, (float*)(to + (i / TILE * blocks + r / 32) * BLOCK_WORDS));
    }
  }
}

// The R rows of B before `top`, the last row first, as panels of pairs.
static inline void tile_panels(const OuterArgs& a, int64_t top, int64_t R, uint32_t* to) {
  const int64_t panel = padded32(R) / 2 * LANES;
  for (int64_t r = 0; r < padded32(R); r += 2)
    for (int64_t j = 0; j < a.N; j += LANES) {
      const float* row = a.B + (top - 1 - r) * a.ldb;
      const V even = r < R ? load_to(row, j, a.N) : zero(), odd = r + 1 < R ? load_to(row - a.ldb, j, a.N) : zero();
      store_bits(to + j / LANES * panel + r / 2 * LANES, rounded_pairs(even, odd));
    }
}

// M x N tiles of C, of which `rows` rows and `columns` columns are inside C.
template <int M, int N> static inline void outer_tiles(const TileRows& At, const uint32_t* Bp, int64_t blocks, float* C, int64_t ldc, int64_t rows,
                                                       int64_t columns, bool from_zero) {
  const int64_t panel = blocks * BLOCK_WORDS;
  if (rows >= M * TILE && columns >= N * TILE) return add_tiles<M, N>(At, Bp, panel, blocks, C, ldc, from_zero, nullptr);
  alignas(64) float s[M * TILE * N * TILE] = {};
  const int64_t m = rows < M * TILE ? rows : M * TILE;
  for (int64_t i = 0; i < m && !from_zero; i++)
    for (int64_t j = 0; j < N * TILE && j < columns; j += LANES) store(s + i * N * TILE + j, load_to(C + i * ldc, j, columns));
  add_tiles<M, N>(At, Bp, panel, blocks, s, N * TILE, from_zero, nullptr);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < N * TILE && j < columns; j += LANES) store_to(C + i * ldc, j, columns, load(s + i * N * TILE + j));
}

// C's rows m … m+n-1 for all panels of B.
static inline void add_outer_tiles(const OuterArgs& a, int64_t m, int64_t n, const uint32_t* At, const uint32_t* Bp, int64_t blocks, bool from_zero) {
  const int64_t panel = blocks * BLOCK_WORDS;
  for (int64_t j = 0; j < a.N; j += 2 * TILE)
    for (int64_t i = 0; i < n; i += 2 * TILE) {
      const TileRows rows = {(const char*)(At + i / TILE * panel), 64, BLOCK_WORDS * 4, panel * 4};
      const uint32_t* b = Bp + j / TILE * panel;
      float* C = a.C + (m + i) * a.ldc + j;
      const bool two = n - i > TILE, wide = a.N - j > TILE;
      for (int64_t r = i + 2 * TILE; r < n && r < i + 4 * TILE && !from_zero; r++) {  // the next tiles of C
        __builtin_prefetch(a.C + (m + r) * a.ldc + j, 1);
        __builtin_prefetch(a.C + (m + r) * a.ldc + j + TILE, 1);
      }
      if (two && wide) outer_tiles<2, 2>(rows, b, blocks, C, a.ldc, n - i, a.N - j, from_zero);
      else if (two) outer_tiles<2, 1>(rows, b, blocks, C, a.ldc, n - i, a.N - j, from_zero);
      else if (wide) outer_tiles<1, 2>(rows, b, blocks, C, a.ldc, n - i, a.N - j, from_zero);
      else outer_tiles<1, 1>(rows, b, blocks, C, a.ldc, n - i, a.N - j, from_zero);
    }
}

// Returns whether it was computed by tiles, which the caller has configured.
static inline bool tile_outer(const OuterArgs& whole, Team team) {
  if (whole.M < TILE_ROWS) return false;
  const OuterPart part = outer_part(whole, team);
  const OuterArgs& a = part.a;
  const Range mine = part.columns;
  const int64_t most = outer_tile_rows(whole.N);
  uint32_t *At = (uint32_t*)a.scratch, *Bp = At + most * OUTER_COLUMNS / 2;
  for (int64_t top = a.R; top > 0; top -= most) {
    const int64_t R = top < most ? top : most;
    tile_panels(a, top, R, Bp);
    for (int64_t m = mine.begin, n; m < mine.end; m += n) {
      const int64_t end = m < a.gap_at && a.gap_at < mine.end ? a.gap_at : mine.end;
      n = end - m < OUTER_COLUMNS ? end - m : OUTER_COLUMNS;
      tile_columns(a, top, R, m, n, At);
      add_outer_tiles(a, m, n, At, Bp, padded32(R) / 32, top == a.R && !a.accumulate);
    }
  }
  return true;
}

}  // namespace unspool::UNSPOOL_SET
