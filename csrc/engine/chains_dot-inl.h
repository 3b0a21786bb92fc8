// The sums E and O of gemm_bf16-inl.h by the instruction VDPBF16PS. For each float of a sum it takes two pairs of bf16 numbers and
// computes two multiply-adds, the upper halves first, each rounded: two links of a chain, if a word holds the numbers k (upper half) and
// k + 2 (lower half). So in rounded rows and in packed matrices alike, four numbers k … k + 3 are the words (k, k + 2), a part of E, and
// (k + 1, k + 3), a part of O. On AMD CPUs from Zen 4 on it is as fast as one multiply-add; on Intel's, two multiply-adds are no slower.
//
// It flushes denormal numbers, which do not occur here (see round_bf16).
#pragma once
#include "engine/bf16-inl.h"
#include "engine/product-inl.h"

namespace unspool::UNSPOOL_SET {

static const Pairs PAIRS = Pairs::CHAINS;
static const int64_t NUMBERS = 2;  // in each float of a rounded row

// The rows of word r of a packed matrix.
static inline int low_row(int r) { return r / 2 * 4 + r % 2 + 2; }
static inline int high_row(int r) { return r / 2 * 4 + r % 2; }

// The rows of a tile and its panels: E and O take 24 registers. Of a single row, and of a few, more panels.
static const int BF16_ROWS = 6, BF16_PANELS = 2, BF16_PANELS_OF_ONE = 8;

// The rounded numbers of a row, with zeros up to a multiple of 32.
static inline void round_row(const float* from, int64_t n, float* to) {
  const __m512i order = _mm512_set4_epi32(0x0b0a0f0e, 0x09080d0c, 0x03020706, 0x01000504);  // of four: the third, first, fourth, second
  for (int64_t j = 0; j < n; j += 32) {
    const V first = load_to(from, j, n), second = j + LANES < n ? load_to(from, j + LANES, n) : zero();
    _mm512_storeu_si512(to + j / 2, _mm512_shuffle_epi8(round_to_bf16(first, second), order));
  }
}

// Columns j … j+15 of line l, a word of two of eight rows, rounded; a row that is nullptr is zero.
static inline V rounded_line(const float* const (&row)[8], int64_t l, int64_t j, int64_t n) {
  const float *low = row[low_row((int)l)], *high = row[high_row((int)l)];
  return floats_of(rounded_pairs(low ? load_to(low, j, n) : zero(), high ? load_to(high, j, n) : zero()));
}

// How a tile reads word w of panel j of a packed matrix, and of lines, in a block of 32 numbers.
struct PairsOfB {
  const uint32_t* b;
  int64_t panel;
  inline __attribute__((always_inline)) Bits word(int w, int j) const { return load_bits(b + w * LANES + j * panel); }
  inline __attribute__((always_inline)) void next_block() { b += 16 * LANES; }
};
struct LinesOfB : PairsOfB {
  LinesOfB(const float* b, int64_t panel) : PairsOfB{(const uint32_t*)b, panel} {}
};

#if !defined(UNSPOOL_SANITIZE)
// As add_product in simd-inl.h: left to itself, the compiler copies sums between registers.
static inline __attribute__((always_inline)) void add_pair(V& sum, V a, Bits b) { asm("vdpbf16ps %2, %1, %0" : "+v"(sum.x) : "v"(b.x), "v"(a.x)); }
#else
static inline void add_pair(V& sum, V a, Bits b) { sum = {_mm512_dpbf16_ps(sum.x, (__m512bh)_mm512_castps_si512(a.x), (__m512bh)b.x)}; }
#endif

// Two links of the chains that word w belongs to.
template <int M, int N, class A, class B> static inline __attribute__((always_inline)) void add_words(const A& a, const B& b, int w, V (&sum)[M][N]) {
  Bits column[N];
#pragma GCC unroll 8
  for (int j = 0; j < N; j++) column[j] = b.word(w, j);
#pragma GCC unroll 8
  for (int i = 0; i < M; i++) {
    const V row = set1(*a.at(i, w));
#pragma GCC unroll 8
    for (int j = 0; j < N; j++) add_pair(sum[i][j], row, column[j]);
  }
}

// Both sums of one block, their words in turn: the more chains at a time, the better is the latency of the instruction hidden.
template <int M, int N, class A, class B> static inline __attribute__((always_inline)) void sum_chains(const A& a, const B& b, V (&E)[M][N], V (&O)[M][N]) {
#pragma GCC unroll 8
  for (int i = 0; i < M; i++)
#pragma GCC unroll 8
    for (int j = 0; j < N; j++) E[i][j] = O[i][j] = zero();
#pragma GCC unroll 8
  for (int w = 0; w < 16; w += 2) {
    add_words(a, b, w, E);
    add_words(a, b, w + 1, O);
  }
}

}  // namespace unspool::UNSPOOL_SET
