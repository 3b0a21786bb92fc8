// Matrix products. Every element is one chain of fused multiply-adds in rising k. Where a chain is cut into blocks, the
// partial sum is stored and loaded again unchanged, so that blocking never changes a result.
//
//   rows:   C = start + A B        A row-major, B packed into panels; a tile is MR rows x NP panels
#pragma once
#include "engine/product-inl.h"

namespace unspool::UNSPOOL_SET {

static const int64_t KC = 256;  // block of k: two panels of it stay in an L1 cache of 32 KiB

// Data to prefetch: N cache lines, `panel` apart, in every four steps of a tile, then `down` further.
struct Prefetch {
  const float* at;  // nullptr: nothing
  int64_t down, panel;
};

// One step of acc += A B. A(i, k) is a[i / 2][k] or, for odd i, lda further; when packed, a[0][k + i]. With two panels, half of
// the rows use a multiply-add that broadcasts from memory: one instruction less, one load more, as many as the load ports allow.
template <int M, int N, bool PACKED>
static inline __attribute__((always_inline)) void tile_step(const float* const (&a)[(M + 1) / 2], int64_t k, int64_t lda, const float* b, int64_t panel, V (&acc)[M][N]) {
  V column[N];
#pragma GCC unroll 8
  for (int j = 0; j < N; j++) column[j] = load(b + j * panel);
#pragma GCC unroll 8
  for (int i = 0; i < M; i++) {
    const float* at = PACKED ? a[0] + k + i : a[i / 2] + k + i % 2 * lda;
    if (N == 1 || (N == 2 && i % 2 == 0)) {
#pragma GCC unroll 8
      for (int j = 0; j < N; j++) add_product(acc[i][j], at, column[j]);
    } else {
      const V row = set1(*at);
#pragma GCC unroll 8
      for (int j = 0; j < N; j++) add_product(acc[i][j], row, column[j]);
    }
  }
}
// Unrolled four times: the branch predictor then predicts the end of the loop.
template <int M, int N, bool PACKED, bool PREFETCH>
static inline __attribute__((always_inline)) void tile_steps(const float* a, int64_t lda, const float* b, int64_t down, int64_t panel, int64_t K,
                                                             V (&acc)[M][N], const Prefetch& prefetch) {
  const int64_t next = PACKED ? MR : 1;
  const float* pairs[(M + 1) / 2];  // every second row of A
#pragma GCC unroll 8
  for (int i = 0; i < (M + 1) / 2; i++) pairs[i] = a + 2 * i * lda;
  int64_t k = 0;
  const float* line = prefetch.at;
  for (; k + 4 <= K; k += 4) {
    if constexpr (PREFETCH) {
#pragma GCC unroll 8
      for (int j = 0; j < N; j++) __builtin_prefetch(line + j * prefetch.panel, 0, 2);
      line += prefetch.down;
    }
#pragma GCC unroll 4
    for (int u = 0; u < 4; u++) tile_step<M, N, PACKED>(pairs, (k + u) * next, lda, b + (k + u) * down, panel, acc);
  }
  for (; k < K; k++) tile_step<M, N, PACKED>(pairs, k * next, lda, b + k * down, panel, acc);
}
template <int M, int N, bool PACKED>
static inline __attribute__((always_inline)) void tile(const float* a, int64_t lda, const float* b, int64_t down, int64_t panel, int64_t K,
                                                       V (&acc)[M][N], const Prefetch& prefetch) {
  if (prefetch.at) tile_steps<M, N, PACKED, true>(a, lda, b, down, panel, K, acc, prefetch);
  else tile_steps<M, N, PACKED, false>(a, lda, b, down, panel, K, acc, prefetch);
}

template <class Finish, int M, int N> static inline void product_tile(const Product& p, const Group<N>& g, int64_t m, int64_t k, int64_t kc, const Prefetch& prefetch) {
  V acc[M][N];
  float* to = p.C + m * p.ldc + p.shift;
  if (k == 0 && !p.start) {
#pragma GCC unroll 8
    for (int i = 0; i < M; i++)
#pragma GCC unroll 8
      for (int j = 0; j < N; j++) acc[i][j] = zero();
  } else {
    const float* from[M];
#pragma GCC unroll 8
    for (int i = 0; i < M; i++) from[i] = k > 0 ? to + i * p.ldc : p.start[m + i] + p.start_shift;
    if (g.whole) {
#pragma GCC unroll 8
      for (int i = 0; i < M; i++)
#pragma GCC unroll 8
        for (int j = 0; j < N; j++) acc[i][j] = load(from[i] + g.at[j].at);
    } else {
#pragma GCC unroll 8
      for (int i = 0; i < M; i++)
#pragma GCC unroll 8
        for (int j = 0; j < N; j++) acc[i][j] = load_n(from[i] + g.at[j].at, g.at[j].n);
    }
  }
  tile<M, N, false>(p.A + m * p.lda + k, p.lda, p.B.at + (g.panel * p.B.K + p.first_k + k) * LANES, LANES, p.B.K * LANES, kc, acc, prefetch);
  const bool done = k + kc == p.K;
  if (FINISH_IN_REGISTERS && done) {
#pragma GCC unroll 8
    for (int i = 0; i < M; i++)
#pragma GCC unroll 8
      for (int j = 0; j < N; j++) acc[i][j] = Finish::of(acc[i][j]);
  }
  if (g.whole) {
#pragma GCC unroll 8
    for (int i = 0; i < M; i++)
#pragma GCC unroll 8
      for (int j = 0; j < N; j++) store(to + i * p.ldc + g.at[j].at, acc[i][j]);
  } else {
#pragma GCC unroll 8
    for (int i = 0; i < M; i++)
#pragma GCC unroll 8
      for (int j = 0; j < N; j++) store_n(to + i * p.ldc + g.at[j].at, acc[i][j], g.at[j].n);
  }
  if (!FINISH_IN_REGISTERS && done) finish_tile<Finish, M, N>(to, p.ldc, g);
}

template <class Finish, int M, int N> static inline void tile_of(const Product& p, const Group<N>& g, int rows, int64_t m, int64_t k, int64_t kc, const Prefetch& prefetch) {
  if constexpr (M * N <= ACCUMULATORS) {
    if (rows == M) return product_tile<Finish, M, N>(p, g, m, k, kc, prefetch);
  }
  if constexpr (M > 1) tile_of<Finish, M - 1, N>(p, g, rows, m, k, kc, prefetch);
}

// All row tiles for one group of N panels, one block of k at a time: the block and the partial sums stay in the L1 cache.
template <class Finish, int N> static inline void panel_group(const Product& p, int64_t panel, int64_t next) {
  const Group<N> g = group_at<N>(p.B, panel);
  for (int64_t k = 0; k < p.K || k == 0;) {
    const int64_t kc = p.M <= MR ? p.K : (p.K - k < KC + KC / 2 ? p.K - k : KC);
    int64_t tiles = (p.M + MR - 1) / MR;
    Prefetch prefetch = {nullptr, LANES, p.B.K * LANES};
    if (p.prefetch && (k + kc < p.K || next >= 0))
      prefetch.at = p.B.at + (k + kc < p.K ? panel * p.B.K + p.first_k + k + kc : next * p.B.K + p.first_k) * LANES;
    for (int64_t m = 0; tiles > 0; tiles--) {
      const int rows = (int)((p.M - m + tiles - 1) / tiles);  // 17 rows are 6 + 6 + 5, not 8 + 8 + 1
      tile_of<Finish, MR, N>(p, g, rows, m, k, kc, prefetch);
      m += rows;
      if (prefetch.at) prefetch.at += kc / 4 * LANES;
    }
    k += kc;
    if (kc == 0) break;
  }
}

// The panels in groups of N, the rest in smaller groups. Backwards, from the last panel to the first: if W exceeds the L2
// cache, alternating the order finds a part of it still in the cache.
template <class Finish, int N> static inline void panels(const Product& p, int64_t first, int64_t last) {
  const int64_t whole = (last - first) / N * N;
  if constexpr (N > 1) {
    if (p.backwards) panels<Finish, N / 2>(p, first + whole, last);
  }
  for (int64_t i = 0; i < whole; i += N)
    panel_group<Finish, N>(p, first + (p.backwards ? whole - N - i : i), i + N < whole ? first + (p.backwards ? whole - 2 * N - i : i + N) : -1);
  if constexpr (N > 1) {
    if (!p.backwards) panels<Finish, N / 2>(p, first + whole, last);
  }
}

// Few rows use many panels at once: enough independent chains to hide the latency of a multiply-add.
template <class Finish = NoFinish> static inline void product(const Product& p) {
  if (p.M <= 0) return;
  const int64_t tiles = (p.M + MR - 1) / MR, rows = (p.M + tiles - 1) / tiles;
  if (rows * 8 <= ACCUMULATORS) panels<Finish, 8>(p, p.first_panel, p.last_panel);
  else if (rows * 4 <= ACCUMULATORS) panels<Finish, 4>(p, p.first_panel, p.last_panel);
  else panels<Finish, NP>(p, p.first_panel, p.last_panel);
}

static void pack(const PackArgs& a, Team team) {
  const Packed& s = a.shape;
  const Range mine = partition(s.panels(), 1, team.index, team.count);
  for (int64_t panel = mine.begin; panel < mine.end; panel++) {
    const PanelColumns at = panel_columns(s, panel);
    float* to = a.to + panel * s.K * LANES;
    if (!a.transposed) {
      const int64_t FEW = 4;  // panels that are packed together if their columns are adjacent
      const PanelColumns last = panel + FEW <= mine.end ? panel_columns(s, panel + FEW - 1) : at;
      if (last.at == at.at + (FEW - 1) * LANES && last.n == LANES) {
        for (int64_t k = 0; k < s.K; k++)
#pragma GCC unroll 4
          for (int64_t j = 0; j < FEW; j++) store(to + (j * s.K + k) * LANES, load(a.source + k * a.stride + at.at + j * LANES));
        panel += FEW - 1;
        continue;
      }
      for (int64_t k = 0; k < s.K; k++) store(to + k * LANES, load_n(a.source + k * a.stride + at.at, at.n));
      continue;
    }
    for (int64_t k = 0; k < s.K; k += LANES) {
      const int64_t end = k + LANES < s.K ? k + LANES : s.K;
      if (end - k == LANES && at.n == LANES) {
        transpose_block(a.source + at.at * a.stride + k, a.stride, to + k * LANES);
        continue;
      }
      for (int n = 0; n < LANES; n++) {
        const float* row = a.source + (at.at + n) * a.stride;
        for (int64_t q = k; q < end; q++) to[q * LANES + n] = n < at.n ? row[q] : 0.0f;
      }
    }
  }
}

}  // namespace unspool::UNSPOOL_SET
