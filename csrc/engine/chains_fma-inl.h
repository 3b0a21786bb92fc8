// The sums E and O of gemm_bf16-inl.h by fused multiply-adds. Rounded rows are floats; the words of a packed matrix are pairs (k, k + 1).
#pragma once
#include "engine/bf16-inl.h"
#include "engine/product-inl.h"

namespace unspool::UNSPOOL_SET {

static const Pairs PAIRS = Pairs::NEIGHBOURS;
static const int64_t NUMBERS = 1;  // in each float of a rounded row

// The rows of word r of a packed matrix.
static inline int low_row(int r) { return 2 * r; }
static inline int high_row(int r) { return 2 * r + 1; }

// The rows of a tile and its panels; of a single row, and of a few, more panels: enough chains to hide the latency of a
// multiply-add.
#if defined(UNSPOOL_AVX512)
static const int BF16_ROWS = 6, BF16_PANELS = 2, BF16_PANELS_OF_ONE = 8;
#else
static const int BF16_ROWS = 6, BF16_PANELS = 1, BF16_PANELS_OF_ONE = 2;
#endif

// The rounded numbers of a row, with zeros up to a multiple of 32.
static inline void round_row(const float* from, int64_t n, float* to) {
  for (int64_t j = 0; j < padded32(n); j += LANES) store(to + j, j < n ? round_bf16(load_to(from, j, n)) : zero());
}

// Columns j … j+15 of line l of eight rows, rounded; a row that is nullptr is zero.
static inline V rounded_line(const float* const (&row)[8], int64_t l, int64_t j, int64_t n) { return row[l] ? round_bf16(load_to(row[l], j, n)) : zero(); }

// How a tile reads row k of panel j of a packed matrix, and of lines, in a block of 32.
struct PairsOfB {
  const uint32_t* b;
  int64_t panel;
  inline __attribute__((always_inline)) V row(int k, int j) const {
    const Bits pairs = load_bits(b + k / 2 * LANES + j * panel);
    return k % 2 ? odd_of(pairs) : even_of(pairs);
  }
  inline __attribute__((always_inline)) void next_block() { b += 16 * LANES; }
};
struct LinesOfB {
  const float* b;
  int64_t panel;
  inline __attribute__((always_inline)) V row(int k, int j) const { return load(b + k * LANES + j * panel); }
  inline __attribute__((always_inline)) void next_block() { b += 32 * LANES; }
};

// A chain of one block of 32: E (ODD = 0) or O. It begins with a product, not with +0 plus a product: the difference between -0 and +0 is
// lost in s, which is never -0. Unrolled: in a loop, the compiler copies sums between registers.
template <int ODD, int M, int N, class A, class B> static inline __attribute__((always_inline)) void add_chain(const A& a, const B& b, V (&sum)[M][N]) {
#pragma GCC unroll 16
  for (int k = ODD; k < 32; k += 2) {
    V column[N];
#pragma GCC unroll 8
    for (int j = 0; j < N; j++) column[j] = b.row(k, j);
#pragma GCC unroll 8
    for (int i = 0; i < M; i++) {
      const bool broadcast = k > ODD && i % 2 == 0;  // from memory, as in tile_step of gemm-inl.h
      const V row = set1(*a.at(i, k));
#pragma GCC unroll 8
      for (int j = 0; j < N; j++)
        if (k == ODD) sum[i][j] = row * column[j];
        else if (broadcast) add_product(sum[i][j], a.at(i, k), column[j]);
        else add_product(sum[i][j], row, column[j]);
    }
  }
}

// Both chains, for few rows: each number of B is read once.
template <int M, int N, class A, class B> static inline __attribute__((always_inline)) void add_both(const A& a, const B& b, V (&E)[M][N], V (&O)[M][N]) {
#pragma GCC unroll 8
  for (int i = 0; i < M; i++)
#pragma GCC unroll 8
    for (int j = 0; j < N; j++) E[i][j] = O[i][j] = zero();
#pragma GCC unroll 2
  for (int k = 0; k < 32; k += 2) {
    V even[N], odd[N];
#pragma GCC unroll 8
    for (int j = 0; j < N; j++) even[j] = b.row(k, j), odd[j] = b.row(k + 1, j);
#pragma GCC unroll 8
    for (int i = 0; i < M; i++) {
      const V first = set1(*a.at(i, k)), second = set1(*a.at(i, k + 1));
#pragma GCC unroll 8
      for (int j = 0; j < N; j++) add_product(E[i][j], first, even[j]);
#pragma GCC unroll 8
      for (int j = 0; j < N; j++) add_product(O[i][j], second, odd[j]);
    }
  }
}

// Both sums of one block.
template <int M, int N, class A, class B> static inline __attribute__((always_inline)) void sum_chains(const A& a, const B& b, V (&E)[M][N], V (&O)[M][N]) {
  if constexpr (M <= 3) return add_both(a, b, E, O);
  add_chain<0>(a, b, E);
  add_chain<1>(a, b, O);
}

}  // namespace unspool::UNSPOOL_SET
