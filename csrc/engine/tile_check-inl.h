// Single tile products, by an instruction for bf16 and by multiply-adds: to check the one against the other.
#pragma once
#if defined(UNSPOOL_AMX)
#include "engine/tiles-inl.h"
#else
#include "engine/chains_dot-inl.h"
#endif
#include "kernels.h"

namespace unspool::UNSPOOL_SET {

static const int64_t SIDE = 16, WORDS = SIDE * SIDE;  // of a tile

#if defined(UNSPOOL_AMX)
static void multiply_tiles(const TileArgs& t) {
  const Tiles tiles(true);
  for (int64_t i = 0; i < t.count; i++) {
    load_tile<0>(t.C + i * WORDS, 64);
    load_tile<4>(t.A + i * 2 * WORDS, 64);
    load_tile<6>(t.B + i * 2 * WORDS, 64);
    add_tile_product<0, 4, 6>();
    store_tile<0>(t.out + i * WORDS, 64);
  }
}
#else
// Of two words (k, k + 1) and (k + 2, k + 3): (k, k + 2) and (k + 1, k + 3), the first in the upper half.
static inline Bits even_pairs(Bits first, Bits second) { return up16(first) | (second & all_bits(0xffff)); }
static inline Bits odd_pairs(Bits first, Bits second) { return (first & all_bits(0xffff0000)) | down16(second); }
static void multiply_tiles(const TileArgs& t) {
  for (int64_t m = 0; m < t.count * SIDE; m++) {
    const uint32_t *a = (const uint32_t*)t.A + m * SIDE, *b = (const uint32_t*)t.B + m / SIDE * WORDS;
    V even = zero(), odd = zero();
    for (int64_t k = 0; k < SIDE; k += 2) {
      const Bits a0 = all_bits(a[k]), a1 = all_bits(a[k + 1]), b0 = load_bits(b + k * SIDE), b1 = load_bits(b + (k + 1) * SIDE);
      add_pair(even, floats_of(even_pairs(a0, a1)), even_pairs(b0, b1));
      add_pair(odd, floats_of(odd_pairs(a0, a1)), odd_pairs(b0, b1));
    }
    store(t.out + m * SIDE, load(t.C + m * SIDE) + (even + odd));
  }
}
#endif

static void multiply_add_tiles(const TileArgs& t) {
  for (int64_t i = 0; i < t.count; i++)
    for (int64_t m = i * SIDE; m < (i + 1) * SIDE; m++) {
      V even = zero(), odd = zero();
      for (int64_t k = 0; k < SIDE; k++) {
        const Bits a = all_bits(((const uint32_t*)t.A)[m * SIDE + k]), b = load_bits((const uint32_t*)t.B + (i * SIDE + k) * SIDE);
        even = fma(even_of(a), even_of(b), even);
        odd = fma(odd_of(a), odd_of(b), odd);
      }
      store(t.out + m * SIDE, load(t.C + m * SIDE) + (even + odd));
    }
}

// In a separate function, so that no addition is moved before or behind the change of the flush modes.
static __attribute__((noinline)) void multiply(const TileArgs& t) { t.by_instruction ? multiply_tiles(t) : multiply_add_tiles(t); }
static void tile_products(const TileArgs& t) {
  const unsigned modes = _mm_getcsr();
  _mm_setcsr(modes | 0x8040);  // denormal operands and results of additions are zero
  multiply(t);
  _mm_setcsr(modes);
}

// Whether the instruction computes known products, of numbers of many sizes, denormal ones too. It allocates nothing and calls nothing: for a
// child of a process with threads.
bool instruction_is_right() {
  const int64_t COUNT = 4;
  alignas(64) uint16_t A[COUNT * 2 * WORDS], B[COUNT * 2 * WORDS];
  alignas(64) float C[COUNT * WORDS], by_instruction[COUNT * WORDS], by_adds[COUNT * WORDS];
  uint32_t state = 1;
  for (int64_t i = 0; i < 2 * COUNT * 2 * WORDS; i++) {
    state = state * 1664525u + 1013904223u;
    const uint32_t exponent = i % 61 == 0 ? 0 : 100 + (state >> 16) % 50;
    uint16_t* side = i % 2 ? A : B;
    side[i / 2] = (uint16_t)((state >> 31) << 15 | exponent << 7 | (state >> 24 & 127));
  }
  for (int64_t i = 0; i < COUNT * WORDS; i++) C[i] = (float)(i % 37 - 18) * 0.37f;
  tile_products({COUNT, A, B, C, by_instruction, true});
  tile_products({COUNT, A, B, C, by_adds, false});
  return __builtin_memcmp(by_instruction, by_adds, sizeof by_adds) == 0;
}

}  // namespace unspool::UNSPOOL_SET
