// Products in bf16 by the tile registers of AMX, in the order of gemm_bf16-inl.h, from the same panels: 32 rows of a panel, in pairs,
// are one tile.
#pragma once
#include "engine/product-inl.h"
#include "engine/tiles-inl.h"

namespace unspool::UNSPOOL_SET {

// Fewer rows are computed by multiply-adds. A tile product takes 5.6 ns from the L1 cache and 11 ns from L2, with 1 row or with 16;
// multiply-adds at 150 GF/s take 7 ns for each row.
static const int64_t TILE_ROWS = 4;
static const int TILE_PANELS = 4;     // multiplied together: four sums hide the latency of a tile product
static const int64_t TILE_K = 256;    // block of k: four panels of it take 32 KiB

// Rounded rows, `lda` numbers apart, with zeros beyond K and beyond M to whole tiles.
static inline void round_to_tiles(const Product& p, uint16_t* to, int64_t lda) {
  for (int64_t m = 0; m < (p.M + TILE - 1) / TILE * TILE; m++)
    for (int64_t k = 0; k < padded32(p.K); k += 32) {
      const float* row = p.A + m * p.lda;
      const V first = m < p.M ? load_to(row, k, p.K) : zero(), second = m < p.M && k + LANES < p.K ? load_to(row, k + LANES, p.K) : zero();
      _mm512_storeu_si512(to + m * lda + k, round_to_bf16(first, second));
    }
}

// Panels that are multiplied together, and a block of k of them.
struct TileGroup {
  const uint32_t* b;
  int64_t panel;  // words between two panels
  int count;
  int64_t blocks;
  bool from_zero;
  const uint32_t* then;
};

// Up to 32 rows: two tiles of rows share each tile of B.
static inline void add_rows(const TileGroup& g, const TileRows& a, bool two, float* s) {
  const int64_t stride = TILE_PANELS * LANES;
  for (int j = 0; j < g.count;) {
    const uint32_t *b = g.b + j * g.panel, *then = g.then ? g.then + j * g.panel : nullptr;
    const int left = g.count - j, n = two ? (left > 1 ? 2 : 1) : left > 3 ? 4 : left > 1 ? 2 : 1;
    float* to = s + j * LANES;
    if (two && n == 2) add_tiles<2, 2>(a, b, g.panel, g.blocks, to, stride, g.from_zero, then);
    else if (two) add_tiles<2, 1>(a, b, g.panel, g.blocks, to, stride, g.from_zero, then);
    else if (n == 4) add_tiles<1, 4>(a, b, g.panel, g.blocks, to, stride, g.from_zero, then);
    else if (n == 2) add_tiles<1, 2>(a, b, g.panel, g.blocks, to, stride, g.from_zero, then);
    else add_tiles<1, 1>(a, b, g.panel, g.blocks, to, stride, g.from_zero, then);
    j += n;
  }
}

// `next`: the first panel of the next group, or -1.
template <class Finish> static inline void tile_group(const Product& p, const uint16_t* A, int64_t lda, int64_t panel, int count, int64_t next) {
  const int64_t blocks = padded32(p.K) / 32;
  const uint32_t* b = p.B.pairs_at(panel, p.first_k);
  alignas(64) float s[ROWS_AT_ONCE * TILE_PANELS * LANES];
  for (int64_t block = 0; block < blocks; block += TILE_K / 32) {
    const int64_t n = blocks - block < TILE_K / 32 ? blocks - block : TILE_K / 32;
    TileGroup g = {b + block * BLOCK_WORDS, p.B.depth() / 2 * LANES, count, n, block == 0, nullptr};
    if (p.prefetch && block + n < blocks) g.then = g.b + n * BLOCK_WORDS;
    else if (p.prefetch && next >= 0) g.then = p.B.pairs_at(next, p.first_k);
    for (int64_t m = 0; m < p.M; m += 2 * TILE) {
      const TileRows a = {(const char*)(A + m * lda + block * 32), lda * 2, 64, TILE * lda * 2};
      if (m > 0) g.then = nullptr;  // the first rows have prefetched it
      add_rows(g, a, p.M - m > TILE, s + m * TILE_PANELS * LANES);
    }
  }
  for (int64_t m = 0; m < p.M; m++)
    for (int j = 0; j < count; j++) {
      const PanelColumns at = panel_columns(p.B, panel + j);
      V sum = load(s + (m * TILE_PANELS + j) * LANES);
      if (p.start) sum = get<V>(p.start[m] + p.start_shift + at.at, at.n) + sum;
      put(p.C + m * p.ldc + p.shift + at.at, at.n, Finish::of(sum));
    }
}

// Returns whether it was computed by tiles; the kernel that calls it has configured them.
template <class Finish> static inline bool tile_product(const Product& p) {
  if (p.M < TILE_ROWS || p.K < 1) return false;
  uint16_t* A = (uint16_t*)p.rounded;
  const int64_t lda = padded32(p.K) + 32;  // whole cache lines, and no power of two
  round_to_tiles(p, A, lda);
  const int64_t groups = (p.last_panel - p.first_panel + TILE_PANELS - 1) / TILE_PANELS;
  for (int64_t i = 0; i < groups; i++) {
    const int64_t step = p.backwards ? -TILE_PANELS : TILE_PANELS, panel = p.first_panel + (p.backwards ? groups - 1 - i : i) * TILE_PANELS;
    const int64_t left = p.last_panel - panel;
    tile_group<Finish>(p, A, lda, panel, (int)(left < TILE_PANELS ? left : TILE_PANELS), i + 1 < groups ? panel + step : -1);
  }
  return true;
}

}  // namespace unspool::UNSPOOL_SET
