// A product of rows with a packed matrix, as the kernels ask for it; how it is computed is in gemm-inl.h (float32) and
// gemm_bf16-inl.h (bf16).
#pragma once
#include "engine/simd-inl.h"
#include "kernels.h"

namespace unspool::UNSPOOL_SET {

#if defined(UNSPOOL_BF16)
static const Precision PRECISION = Precision::BF16;
#else
static const Precision PRECISION = Precision::FLOAT32;
#endif

#if defined(UNSPOOL_AVX512)
static const int MR = 8, NP = 2, ACCUMULATORS = 24;
#elif defined(UNSPOOL_AVX2)
static const int MR = 6, NP = 1, ACCUMULATORS = 6;
#else
static const int MR = 6, NP = 1, ACCUMULATORS = 6;
#endif
static const bool FINISH_IN_REGISTERS = ACCUMULATORS > 16;  // else the activation is applied after the tile is stored

// The first column of a panel, and the number of its columns.
struct PanelColumns { int64_t at; int n; };
static inline PanelColumns panel_columns(const Packed& B, int64_t panel) {
  const int64_t group = panel / B.panels_per_group(), j = (panel - group * B.panels_per_group()) * LANES;
  const int64_t rest = B.width() - j;
  return {group * B.width() + j, (int)(rest < LANES ? rest : LANES)};
}

// A product with rows on the left, restricted to some panels. Row m starts from start[m], or from zero.
struct Product {
  int64_t M = 0;
  const float* A = nullptr;
  int64_t lda = 0;
  Packed B;
  int64_t first_panel = 0, last_panel = 0;
  const float* const* start = nullptr;  // nullptr: zero
  int64_t start_shift = 0;              // added to the column when reading `start`
  float* C = nullptr;
  int64_t ldc = 0, shift = 0;           // `shift` is added to the column when writing C
  int64_t first_k = 0, K = 0;           // the rows of B that take part; A's columns are counted from the first of them
  bool backwards = false;               // from the last panel to the first
  bool prefetch = false;                // B exceeds the L2 cache: prefetch its panels
  float* rounded = nullptr;             // bf16: rounded_floats(K) floats for the rounded rows of A
};

// N panels that are multiplied together; whole: none has fewer than 16 columns.
template <int N> struct Group {
  int64_t panel;
  PanelColumns at[N];
  bool whole;
};
template <int N> static inline Group<N> group_at(const Packed& B, int64_t panel) {
  Group<N> g;
  g.panel = panel;
  g.whole = true;
  for (int j = 0; j < N; j++) {
    g.at[j] = panel_columns(B, panel + j);
    g.whole = g.whole && g.at[j].n == LANES;
  }
  return g;
}

// The function that is applied to a complete sum: here the identity.
struct NoFinish {
  static const bool identity = true;
  template <class T> static inline __attribute__((always_inline)) T of(T v) { return v; }
};

// Apply it after the tile is stored, two rows at a time: for machines with too few registers for the sums and the constants.
template <class Finish, int M, int N> static inline void finish_tile(float* to, int64_t ldc, const Group<N>& g) {
  if constexpr (!Finish::identity)
    for (int j = 0; j < N; j++) {
      const int n = g.at[j].n;
      float* at = to + g.at[j].at;
      int i = 0;
      for (; i + 2 <= M; i += 2, at += 2 * ldc) {
        const Pair done = Finish::of(Pair{get<V>(at, n), get<V>(at + ldc, n)});
        put(at, n, done.a);
        put(at + ldc, n, done.b);
      }
      if (i < M) put(at, n, Finish::of(get<V>(at, n)));
    }
}

}  // namespace unspool::UNSPOOL_SET
