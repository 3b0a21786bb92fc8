// Single tile products, by the instruction and by multiply-adds: to check the one against the other.
#pragma once
#include "engine/tiles-inl.h"
#include "kernels.h"

namespace unspool::UNSPOOL_SET {

// In a separate function, so that no multiply-add is moved before or behind the change of the flush modes.
static __attribute__((noinline)) void multiply_add_tiles(const TileArgs& t) {
  for (int64_t i = 0; i < t.count; i++)
    for (int64_t m = i * TILE; m < (i + 1) * TILE; m++) {
      V even = zero(), odd = zero();
      for (int64_t k = 0; k < TILE; k++) {
        const Bits a = all_bits(((const uint32_t*)t.A)[m * TILE + k]), b = load_bits((const uint32_t*)t.B + (i * TILE + k) * TILE);
        even = fma(even_of(a), even_of(b), even);
        odd = fma(odd_of(a), odd_of(b), odd);
      }
      store(t.out + m * TILE, load(t.C + m * TILE) + (even + odd));
    }
}

static void tile_products(const TileArgs& t) {
  if (!t.by_tiles) {
    const unsigned modes = _mm_getcsr();
    _mm_setcsr(modes | 0x8040);  // denormal operands and results are zero
    multiply_add_tiles(t);
    return _mm_setcsr(modes);
  }
  const Tiles tiles(true);
  for (int64_t i = 0; i < t.count; i++) {
    load_tile<0>(t.C + i * BLOCK_WORDS, 64);
    load_tile<4>(t.A + i * 2 * BLOCK_WORDS, 64);
    load_tile<6>(t.B + i * 2 * BLOCK_WORDS, 64);
    add_tile_product<0, 4, 6>();
    store_tile<0>(t.out + i * BLOCK_WORDS, 64);
  }
}

// Whether tiles compute known products, of numbers of many sizes, denormal ones too. It allocates nothing and calls nothing: for a child of
// a process with threads.
bool tiles_are_right() {
  const int64_t COUNT = 4;
  alignas(64) static uint16_t A[COUNT * 2 * BLOCK_WORDS], B[COUNT * 2 * BLOCK_WORDS];
  alignas(64) static float C[COUNT * BLOCK_WORDS], by_tiles[COUNT * BLOCK_WORDS], by_adds[COUNT * BLOCK_WORDS];
  uint32_t state = 1;
  for (int64_t i = 0; i < 2 * COUNT * 2 * BLOCK_WORDS; i++) {
    state = state * 1664525u + 1013904223u;
    const uint32_t exponent = i % 61 == 0 ? 0 : 100 + (state >> 16) % 50;
    uint16_t* side = i % 2 ? A : B;
    side[i / 2] = (uint16_t)((state >> 31) << 15 | exponent << 7 | (state >> 24 & 127));
  }
  for (int64_t i = 0; i < COUNT * BLOCK_WORDS; i++) C[i] = (float)(i % 37 - 18) * 0.37f;
  tile_products({COUNT, A, B, C, by_tiles, true});
  tile_products({COUNT, A, B, C, by_adds, false});
  return __builtin_memcmp(by_tiles, by_adds, sizeof by_adds) == 0;
}

}  // namespace unspool::UNSPOOL_SET
