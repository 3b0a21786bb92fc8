// Sums of outer products over rows, from the last row to the first.
//
//   outer:  C = start + A^T B      both sides packed block by block; a tile is MR columns of A x NP panels of B
#pragma once
#include "engine/sums-inl.h"

namespace unspool::UNSPOOL_SET {

// Load or store a tile of C; at the border only the part inside C.
template <int N> static inline void load_tile(V (&acc)[MR][N], const float* C, int64_t ldc, int rows, int64_t columns) {
  if (rows == MR && columns >= N * LANES) {
#pragma GCC unroll 8
    for (int i = 0; i < MR; i++)
#pragma GCC unroll 8
      for (int j = 0; j < N; j++) acc[i][j] = load(C + i * ldc + j * LANES);
    return;
  }
#pragma GCC unroll 8
  for (int i = 0; i < MR; i++)
#pragma GCC unroll 8
    for (int j = 0; j < N; j++) acc[i][j] = i < rows ? load_to(C + i * ldc, j * LANES, columns) : zero();
}
template <int N> static inline void store_tile(V (&acc)[MR][N], float* C, int64_t ldc, int rows, int64_t columns) {
  if (rows == MR && columns >= N * LANES) {
#pragma GCC unroll 8
    for (int i = 0; i < MR; i++)
#pragma GCC unroll 8
      for (int j = 0; j < N; j++) store(C + i * ldc + j * LANES, acc[i][j]);
    return;
  }
#pragma GCC unroll 8
  for (int i = 0; i < MR; i++)
#pragma GCC unroll 8
    for (int j = 0; j < N; j++)
      if (i < rows) store_to(C + i * ldc, j * LANES, columns, acc[i][j]);
}

// The rows of B from the last to the first, packed into panels or not.
struct RowsOfB {
  const float* at;
  int64_t down, panel;  // distance to the next row, and to the next sixteen columns
};

// The next block's rows of B, to be prefetched: each tile prefetches some cache lines, `stride` apart.
struct PrefetchQueue {
  const float* at;
  int64_t stride, rows, lines, row, line;

  Prefetch next(int64_t n, int N) {  // for a tile that prefetches n lines
    if (line >= lines) return {nullptr, 0, 0};
    const Prefetch prefetch = {at + row * stride + line * LANES, N * stride, stride};
    row += n;
    if (row >= rows) row = 0, line++;
    return prefetch;
  }
};

template <int N> static inline void outer_panels(const OuterArgs& a, int64_t m, int64_t n, const float* Ap, const RowsOfB& B,
                                                 int64_t R, int64_t j, bool from_zero, PrefetchQueue& queue) {
  for (; j + (N - 1) * LANES < a.N; j += N * LANES) {
    for (int64_t i = 0; i < n; i += MR) {
      V acc[MR][N];
      float* C = a.C + (m + i) * a.ldc + j;
      const int live = (int)(n - i < MR ? n - i : MR);
      if (from_zero) {
#pragma GCC unroll 8
        for (int r = 0; r < MR; r++)
#pragma GCC unroll 8
          for (int q = 0; q < N; q++) acc[r][q] = zero();
      } else {
        load_tile<N>(acc, C, a.ldc, live, a.N - j);
      }
      tile<MR, N, true>(Ap + i * R, 0, B.at + j / LANES * B.panel, B.down, B.panel, R, acc, queue.next(R / 4 * N, N));
      store_tile<N>(acc, C, a.ldc, live, a.N - j);
    }
  }
  if constexpr (N > 1) outer_panels<N / 2>(a, m, n, Ap, B, R, j, from_zero, queue);
}

static inline void pack_columns(const float* row, int64_t n, float* to, int64_t panel) {
  int64_t i = 0;
  for (; i + MR <= n; i += MR, to += panel) __builtin_memcpy(to, row + i, MR * 4);
  for (int q = 0; i < n && q < MR; q++) to[q] = i + q < n ? row[i + q] : 0.0f;
}

// Each thread packs the part of both sides that it needs.
static void outer(const OuterArgs& whole, Team team) {
  const OuterPart part = outer_part(whole, team);
  const OuterArgs& a = part.a;
  const Range mine = part.columns;
  float *Ap = a.scratch, *Bp = Ap + OUTER_A_SCRATCH;
  // Packing does not pay for narrow rows of B and few columns of A: a block of them stays in the L1 cache.
  const bool unpacked = a.N % LANES == 0 && a.ldb <= 64 && mine.end - mine.begin <= 128;
  const int64_t most = unpacked ? OUTER_ROWS / 2 : OUTER_ROWS;
  for (int64_t top = a.R; top > 0; top -= most) {
    const int64_t R = top < most ? top : most;
    const bool from_zero = top == a.R && !a.accumulate;
    const RowsOfB B = unpacked ? RowsOfB{a.B + (top - 1) * a.ldb, -a.ldb, LANES} : RowsOfB{Bp, LANES, (R + 1) * LANES};
    for (int64_t r = 0; r < R && !unpacked; r++) {
      const float* row = a.B + (top - 1 - r) * a.ldb;
      for (int64_t j = 0; j < a.N; j += LANES) store(Bp + j * (R + 1) + r * LANES, load_to(row, j, a.N));
    }
    for (int64_t m = mine.begin, n; m < mine.end; m += n) {
      const int64_t end = m < a.gap_at && a.gap_at < mine.end ? a.gap_at : mine.end;
      n = end - m < OUTER_COLUMNS ? end - m : OUTER_COLUMNS;
      for (int64_t r = 0; r < R; r++) pack_columns(outer_columns(a, top - 1 - r, m, n), n, Ap + r * MR, R * MR);
      // Prefetch the next block's rows of B while the first columns are multiplied.
      const int64_t next = top - R < most ? 0 : top - R - most, rows = top - R - next;
      PrefetchQueue queue = {a.B + next * a.ldb, a.ldb, rows, a.N / LANES, 0, 0};
      if (a.ldb == a.N) queue.stride = LANES, queue.rows = rows * a.N / LANES, queue.lines = 1;  // contiguous rows: in the order of the memory
      if (m > mine.begin || rows == 0) queue.lines = 0;
      outer_panels<NP>(a, m, n, Ap, B, R, 0, from_zero, queue);
    }
  }
}

}  // namespace unspool::UNSPOOL_SET
