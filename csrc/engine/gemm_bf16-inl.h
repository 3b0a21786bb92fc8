// Matrix products of numbers that are rounded to bf16. An element is summed as the instruction TDPBF16PS of AMX sums it: k in
// blocks of 32 from 0, zeros beyond the end; in a block,
//
//   E = the chain of fused multiply-adds over even k from +0
//   O = the same over odd k
//   s = s + (E + O)
//
// with s = +0 before the first block. The result is start + s: one addition at the end.
//
//   rows:   C = start + A B        A is rounded row by row; B is packed into panels of pairs, rounded (chains_fma-inl.h, chains_dot-inl.h)
#pragma once
#if defined(UNSPOOL_DOT)
#include "engine/chains_dot-inl.h"
#else
#include "engine/chains_fma-inl.h"
#endif
#if defined(UNSPOOL_AMX)
#include "engine/gemm_amx-inl.h"
#endif

namespace unspool::UNSPOOL_SET {

static const int64_t K_BLOCK = 512;  // a multiple of 32: two panels of it stay in an L1 cache of 32 KiB

// How a tile reads float k of the rounded row i of A in a block of 32 numbers.
struct RowsOfA {
  const float* a;
  int64_t lda;
  inline __attribute__((always_inline)) const float* at(int i, int k) const { return a + i * lda + k; }
  inline __attribute__((always_inline)) void next_block() { a += 32 / NUMBERS; }
};

// s += (E + O) for some blocks of 32; the rows of s are `lds` apart.
template <int M, int N, class A, class B> static inline void bf16_tile(A a, B b, int64_t blocks, float* s, int64_t lds, bool from_zero) {
  for (int64_t block = 0; block < blocks; block++, a.next_block(), b.next_block()) {
    V E[M][N], O[M][N];
    sum_chains(a, b, E, O);
#pragma GCC unroll 8
    for (int i = 0; i < M; i++)
#pragma GCC unroll 8
      for (int j = 0; j < N; j++) {
        float* at = s + i * lds + j * LANES;
        store(at, (block == 0 && from_zero ? zero() : load(at)) + (E[i][j] + O[i][j]));
      }
  }
}

template <int M, int N, class A, class B> static inline void bf16_rows(int rows, const A& a, const B& b, int64_t blocks, float* s, int64_t lds, bool from_zero) {
  if (rows == M) return bf16_tile<M, N>(a, b, blocks, s, lds, from_zero);
  if constexpr (M > 1) bf16_rows<M - 1, N>(rows, a, b, blocks, s, lds, from_zero);
}

template <class Finish, int N, int ROWS> static inline void bf16_group(const Product& p, int64_t lda, int64_t panel) {
  const Group<N> g = group_at<N>(p.B, panel);
  const uint32_t* b = p.B.pairs_at(panel, p.first_k);
  const int64_t blocks = (p.K + 31) / 32, stride = p.B.depth() / 2 * LANES;
  alignas(64) float s[ROWS_AT_ONCE * N * LANES];
  if (blocks == 0) __builtin_memset(s, 0, (size_t)p.M * N * LANES * 4);
  for (int64_t block = 0; block < blocks; block += K_BLOCK / 32) {
    const int64_t n = blocks - block < K_BLOCK / 32 ? blocks - block : K_BLOCK / 32;
    int64_t tiles = (p.M + ROWS - 1) / ROWS;
    for (int64_t m = 0; tiles > 0; tiles--) {
      const int rows = (int)((p.M - m + tiles - 1) / tiles);
      bf16_rows<ROWS, N>(rows, RowsOfA{p.rounded + m * lda + block * (32 / NUMBERS), lda}, PairsOfB{b + block * 16 * LANES, stride}, n, s + m * N * LANES, N * LANES, block == 0);
      m += rows;
    }
  }
  for (int64_t m = 0; m < p.M; m++)
#pragma GCC unroll 8
    for (int j = 0; j < N; j++) {
      const int n = g.at[j].n;
      V sum = load(s + (m * N + j) * LANES);
      if (p.start) sum = get<V>(p.start[m] + p.start_shift + g.at[j].at, n) + sum;
      put(p.C + m * p.ldc + p.shift + g.at[j].at, n, Finish::of(sum));
    }
}

template <class Finish, int N, int ROWS> static inline void bf16_panels(const Product& p, int64_t lda, int64_t first, int64_t last) {
  const int64_t whole = (last - first) / N * N;
  if constexpr (N > 1) {
    if (p.backwards) bf16_panels<Finish, N / 2, ROWS>(p, lda, first + whole, last);
  }
  for (int64_t i = 0; i < whole; i += N) bf16_group<Finish, N, ROWS>(p, lda, first + (p.backwards ? whole - N - i : i));
  if constexpr (N > 1) {
    if (!p.backwards) bf16_panels<Finish, N / 2, ROWS>(p, lda, first + whole, last);
  }
}

template <class Finish = NoFinish> static inline void product(const Product& p) {
  if (p.M <= 0) return;
#if defined(UNSPOOL_AMX)
  if (tile_product<Finish>(p)) return;
#endif
  const int64_t lda = padded32(p.K) / NUMBERS + 16;  // no power of two, as rounded_stride
  for (int64_t m = 0; m < p.M; m++) round_row(p.A + m * p.lda, p.K, p.rounded + m * lda);
  if (p.M == 1) bf16_panels<Finish, BF16_PANELS_OF_ONE, 1>(p, lda, p.first_panel, p.last_panel);
  else if (p.M <= 3) bf16_panels<Finish, 2 * BF16_PANELS, 3>(p, lda, p.first_panel, p.last_panel);
  else bf16_panels<Finish, BF16_PANELS, BF16_ROWS>(p, lda, p.first_panel, p.last_panel);
}

// Rows k … k+15 of a panel's columns, as floats; beyond `end`, and beyond the columns, zeros.
static inline void panel_block(const PackArgs& a, const PanelColumns& at, int64_t k, int64_t end, float* to) {
  const bool whole = k + LANES <= end && at.n == LANES;
  if (a.transposed && whole) return transpose_block(a.source + at.at * a.stride + k, a.stride, to);
  for (int64_t q = 0; q < LANES; q++) {
    store(to + q * LANES, zero());
    if (k + q >= end) continue;
    if (!a.transposed) store(to + q * LANES, get<V>(a.source + (k + q) * a.stride + at.at, at.n));
    for (int n = 0; a.transposed && n < at.n; n++) to[q * LANES + n] = a.source[(at.at + n) * a.stride + k + q];
  }
}

// Panels of pairs of rows: word r of a column holds the rows low_row(r) and high_row(r). Rows from `cut` on begin a new block of 32.
static void pack(const PackArgs& a, Team team) {
  const Packed& s = a.shape;
  const Range mine = partition(s.panels(), 1, team.index, team.count);
  uint32_t* to = (uint32_t*)a.to + mine.begin * s.depth() / 2 * LANES;
  for (int64_t panel = mine.begin; panel < mine.end; panel++) {
    const PanelColumns at = panel_columns(s, panel);
    for (int part = 0; part < 2; part++) {
      const int64_t begin = part == 0 ? 0 : s.cut, end = part == 0 ? s.cut : s.K;
      for (int64_t k = 0; k < padded32(end - begin); k += LANES) {
        float block[LANES * LANES];
        panel_block(a, at, begin + k, end, block);
        for (int r = 0; r < LANES / 2; r++, to += LANES)
          store_bits(to, rounded_pairs(load(block + low_row(r) * LANES), load(block + high_row(r) * LANES)));
      }
    }
  }
}

}  // namespace unspool::UNSPOOL_SET
