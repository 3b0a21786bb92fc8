// Products in bf16 by the tile registers of AMX. A tile register holds 16 rows of 64 bytes; TDPBF16PS adds the product of 16 rows of
// 32 numbers and a block of 32 rows and 16 columns to a tile of sums, in the order of gemm_bf16-inl.h.
//
//   tmm0 … tmm3   s: 2 x 2 tiles, 32 rows and 32 columns
//   tmm4, tmm5    A: 16 rows each
//   tmm6, tmm7    B: one panel each
//
// The instructions are written out: the intrinsics of GCC 12 name no memory operand, and stores to the configuration got lost.
#pragma once
#include "engine/gemm_bf16-inl.h"

namespace unspool::UNSPOOL_SET {

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Tile registers are in use from the beginning of the scope to its end.
struct Tiles {
  Tiles() {
    const TileConfig config;
    asm volatile("ldtilecfg %0" : : "m"(config));
  }
  Tiles(const Tiles&) = delete;
  ~Tiles() { asm volatile("tilerelease"); }
};
#define UNSPOOL_LOAD_TILE(tile, from, stride) asm volatile("tileloadd (%0,%1,1), %%tmm" #tile : : "r"(from), "r"((int64_t)(stride)) : "memory")
#define UNSPOOL_STORE_TILE(tile, to, stride) asm volatile("tilestored %%tmm" #tile ", (%0,%1,1)" : : "r"(to), "r"((int64_t)(stride)) : "memory")
#define UNSPOOL_ADD_TILES(sum, a, b) asm volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sum ::)

// s (+)= A B for 32 rows of A, whose rows are `lda` numbers apart, two panels of B, `panel` words apart, and some blocks of 32.
static inline void add_tiles(const uint16_t* a, int64_t lda, const uint32_t* b, int64_t panel, int64_t blocks, float* s, int64_t stride, bool from_zero) {
  const int64_t below = 16 * stride;
  if (from_zero) {
    asm volatile("tilezero %tmm0\n\ttilezero %tmm1\n\ttilezero %tmm2\n\ttilezero %tmm3");
  } else {
    UNSPOOL_LOAD_TILE(0, s, stride * 4);
    UNSPOOL_LOAD_TILE(1, s + LANES, stride * 4);
    UNSPOOL_LOAD_TILE(2, s + below, stride * 4);
    UNSPOOL_LOAD_TILE(3, s + below + LANES, stride * 4);
  }
  for (int64_t block = 0; block < blocks; block++, a += 32, b += 16 * LANES) {
    UNSPOOL_LOAD_TILE(4, a, lda * 2);
    UNSPOOL_LOAD_TILE(6, b, 64);
    UNSPOOL_ADD_TILES(0, 4, 6);
    UNSPOOL_LOAD_TILE(7, b + panel, 64);
    UNSPOOL_ADD_TILES(1, 4, 7);
    UNSPOOL_LOAD_TILE(5, a + 16 * lda, lda * 2);
    UNSPOOL_ADD_TILES(2, 5, 6);
    UNSPOOL_ADD_TILES(3, 5, 7);
  }
  UNSPOOL_STORE_TILE(0, s, stride * 4);
  UNSPOOL_STORE_TILE(1, s + LANES, stride * 4);
  UNSPOOL_STORE_TILE(2, s + below, stride * 4);
  UNSPOOL_STORE_TILE(3, s + below + LANES, stride * 4);
}

// Rounded rows, as bf16: 32 n numbers of each row, zeros beyond K. Rows beyond M, up to a multiple of 32, are zero.
static inline void round_rows_to_bf16(const Product& p, uint16_t* to, int64_t lda) {
  for (int64_t m = 0; m < padded32(p.M); m++)
    for (int64_t k = 0; k < padded32(p.K); k += LANES) {
      const V v = m < p.M && k < p.K ? round_bf16(load_to(p.A + m * p.lda, k, p.K)) : zero();
      _mm256_storeu_si256((__m256i*)(to + m * lda + k), _mm512_cvtepi32_epi16(down16(bits_of(v)).x));
    }
}

// Two panels, or the last one alone: a panel that is not there is computed from the one before and dropped.
template <class Finish> static inline void amx_panels(const Product& p, const uint16_t* A, int64_t lda, int64_t panel, int count) {
  const uint32_t* b = p.B.pairs_at(panel, p.first_k);
  const int64_t blocks = (p.K + 31) / 32, apart = count > 1 ? p.B.depth() / 2 * LANES : 0;
  alignas(64) float s[ROWS_AT_ONCE * 2 * LANES];
  for (int64_t block = 0; block < blocks; block += K_BLOCK / 32) {
    const int64_t n = blocks - block < K_BLOCK / 32 ? blocks - block : K_BLOCK / 32;
    for (int64_t m = 0; m < p.M; m += 32)
      add_tiles(A + m * lda + block * 32, lda, b + block * 16 * LANES, apart, n, s + m * 2 * LANES, 2 * LANES, block == 0);
  }
  for (int64_t m = 0; m < p.M; m++)
    for (int j = 0; j < count; j++) {
      const PanelColumns at = panel_columns(p.B, panel + j);
      V sum = load(s + (2 * m + j) * LANES);
      if (p.start) sum = get<V>(p.start[m] + p.start_shift + at.at, at.n) + sum;
      put(p.C + m * p.ldc + p.shift + at.at, at.n, Finish::of(sum));
    }
}

static const int64_t TILE_ROWS = 8;  // fewer rows are faster by multiply-adds: a tile costs as much as 16 rows

template <class Finish> static inline bool tile_product(const Product& p) {
  if (p.M < TILE_ROWS || p.K < 1) return false;
  uint16_t* A = (uint16_t*)p.rounded;
  const int64_t lda = padded32(p.K) + 32, panels = p.last_panel - p.first_panel;
  round_rows_to_bf16(p, A, lda);
  const Tiles tiles;
  for (int64_t i = 0; i < panels; i += 2) {
    const int64_t panel = p.backwards ? p.last_panel - 2 - i : p.first_panel + i;
    const int count = i + 2 <= panels ? 2 : 1;
    amx_panels<Finish>(p, A, lda, panel < p.first_panel ? p.first_panel : panel, count);
  }
  return true;
}

}  // namespace unspool::UNSPOOL_SET
