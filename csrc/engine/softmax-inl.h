// The output layer, softmax and negative log-likelihood, forward and backward in one pass.
//
//   o(t) = c + V h(t)                                              (10.10)
//   y_hat(t) = softmax(o(t))                                       (10.11)
//   L(t) = -log y_hat(t)[y(t)]                                     (10.14)
//   do(t) = y_hat(t) - 1_y(t)                                      (10.18)
#pragma once
#include "engine/math-inl.h"
#if defined(UNSPOOL_BF16)
#include "engine/outer_bf16-inl.h"
#else
#include "engine/outer-inl.h"
#endif

namespace unspool::UNSPOOL_SET {

// The maximum of a row. A NaN may be missed here; it shows in the sum.
static inline float largest(const float* o, int64_t K) {
  V tops = set1(o[0]);
  int64_t j = 0;
  for (; j + LANES <= K; j += LANES) tops = greater(load(o + j), tops);
  float most = reduce_max(tops);
  for (; j < K; j++) most = most < o[j] ? o[j] : most;
  return most;
}

// o = exp(o - most), in place; returns their sum.
static inline float exp_row(float* o, int64_t K, float most) {
  const V shift = set1(most);
  V sums = zero();
  int64_t j = 0;
  for (; j + LANES <= K; j += LANES) {
    const V e = exp(load(o + j) - shift);
    store(o + j, e);
    sums = sums + e;
  }
  if (j < K) {
    store_to(o, j, K, exp(load_to(o, j, K) - shift));
    sums = sums + load_to(o, j, K);  // lanes beyond the row read as zero
  }
  return reduce_add(sums);
}

// Replace rows of logits by their gradients. Several rows per stage (maximum, exp, log, scale), so that the latencies of
// sums and logarithms overlap.
static inline void softmax_rows(const SoftmaxArgs& a, int64_t base, Range mine) {
  const int64_t MOST = 32, FEW = a.K <= 256 ? MOST : 1;
  for (int64_t first = mine.begin; first < mine.end; first += FEW) {
    const int64_t n = mine.end - first < FEW ? mine.end - first : FEW;
    float most[MOST], sum[MOST];
    double* loss = a.loss__R + base + first;
    const int32_t* y = a.y__R + base + first;
    float* o = a.o__block_K + first * a.K;
    for (int64_t i = 0; i < n; i++) {
      most[i] = largest(o + i * a.K, a.K);
      loss[i] = y[i] < 0 ? 0.0 : (double)most[i] - (double)o[i * a.K + y[i]];
    }
    for (int64_t i = 0; i < n; i++) sum[i] = y[i] < 0 ? 1.0f : exp_row(o + i * a.K, a.K, most[i]);
    for (int64_t i = 0; i < n; i++) loss[i] = loss[i] + log_positive((double)sum[i]);
    for (int64_t i = 0; i < n; i++) {
      const V factor = set1(y[i] < 0 ? 0.0f : a.scale / sum[i]);
      float* row = o + i * a.K;
      for (int64_t j = 0; j < a.K; j += LANES) store_to(row, j, a.K, y[i] < 0 ? zero() : load_to(row, j, a.K) * factor);
      if (y[i] >= 0) row[y[i]] = row[y[i]] - a.scale;
    }
  }
}

// o = c + V h, for n rows.
static inline RowsArgs logits_of(const SoftmaxArgs& a, int64_t n, const float* h) {
  RowsArgs o;
  o.M = n;
  o.A = h, o.lda = a.H;
  o.B = a.Vt;
  o.start = a.c__K;
  o.C = a.o__block_K, o.ldc = a.K;
  o.rounded = a.rounded, o.rounded_floats = a.rounded_floats;
  return o;
}

// dh = do V, for n rows.
static inline RowsArgs dh_of(const SoftmaxArgs& a, int64_t n, float* to) {
  RowsArgs dh;
  dh.M = n;
  dh.A = a.o__block_K, dh.lda = a.K;
  dh.B = a.V;
  dh.C = to, dh.ldc = a.H;
  dh.rounded = a.rounded, dh.rounded_floats = a.rounded_floats;
  return dh;
}

// dV and dc, of n rows.
static inline void add_gradients(const SoftmaxArgs& a, int64_t n, const float* h, bool accumulate, Team team) {
  OuterArgs dV;
  dV.R = n, dV.M = a.K, dV.N = a.H;
  dV.A = a.o__block_K, dV.lda = a.K;
  dV.B = h, dV.ldb = a.H;
  dV.C = a.dV__KH, dV.ldc = a.H;
  dV.accumulate = accumulate;
  dV.scratch = a.scratch;
  dV.gap_at = a.K;
  outer(dV, team);
  if (!a.dc__K) return;
  ColumnSumArgs dc;
  dc.R = n, dc.N = a.K;
  dc.A = a.o__block_K, dc.lda = a.K;
  dc.s = a.dc__K;
  dc.accumulate = accumulate;
  column_sum(dc, team);
}

// Of every step, a thread takes the same rows of the batch as in the recurrence: they are in its cache.
static void softmax(const SoftmaxArgs& a, Team team) {
  if (a.R == 0 && a.dh__RH && !a.accumulate) add_gradients(a, 0, a.h__RH, false, team);  // an empty sum is zero
  for (int64_t top = a.R; top > 0; top -= a.block) {
    const int64_t n = top < a.block ? top : a.block, base = top - n;
    const float* h = a.h__RH + base * a.H;
    for (int64_t step = 0; step < n; step += a.B) {
      const Range own = partition(n - step < a.B ? n - step : a.B, 1, team.index, team.count);
      const Range mine = {step + own.begin, step + own.end};
      rows_between(logits_of(a, n, h), mine, 0, a.Vt.panels(), team);
      softmax_rows(a, base, mine);
      if (a.dh__RH) rows_between(dh_of(a, n, a.dh__RH + base * a.H), mine, 0, a.V.panels(), team);
    }
    team.barrier->wait();  // also before o is overwritten: the next block's rows may be split differently
    if (!a.dh__RH) continue;
    add_gradients(a, n, h, a.accumulate || top < a.R, team);
    team.barrier->wait();
  }
}

}  // namespace unspool::UNSPOOL_SET
