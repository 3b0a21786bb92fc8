// The output layer, softmax and negative log-likelihood, forwards and backwards in one pass.
//
//   o(t) = c + V h(t)                                              (10.10)
//   y_hat(t) = softmax(o(t))                                       (10.11)
//   L(t) = -log y_hat(t)[y(t)]                                     (10.14)
//   do(t) = y_hat(t) - 1_y(t)                                      (10.18)
#pragma once
#include "engine/math-inl.h"
#include "engine/outer-inl.h"

namespace unspool::UNSPOOL_SET {

// The largest of a row. A NaN may pass unseen here; it is seen in the sum.
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

// Turns rows of logits into their gradients, in place. A few rows at a time, one kind of work after the other: rows do
// not wait for each other's sums and logarithms.
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

// Of every step, a thread takes the rows of the batch that are its own in the recurrence too: they are in its cache.
static void softmax(const SoftmaxArgs& a, Team team) {
  if (a.R == 0 && a.dh__RH && !a.accumulate) {  // the sum of nothing
    outer({0, a.K, a.H, a.o__block_K, a.K, a.h__RH, a.H, a.dV__KH, a.H, false, a.room, a.K, 0, nullptr, nullptr, 0, 0, false, nullptr, false}, team);
    if (a.dc__K) column_sum({0, a.K, a.o__block_K, a.K, a.dc__K, false}, team);
  }
  for (int64_t top = a.R; top > 0; top -= a.block) {
    const int64_t n = top < a.block ? top : a.block, base = top - n;
    const float* h = a.h__RH + base * a.H;
    for (int64_t step = 0; step < n; step += a.B) {
      const Range own = share(n - step < a.B ? n - step : a.B, 1, team.index, team.count);
      const Range mine = {step + own.begin, step + own.end};
      rows_between({n, h, a.H, a.Vt, a.c__K, 0, a.o__block_K, a.K}, mine, 0, a.Vt.panels());
      softmax_rows(a, base, mine);
      if (a.dh__RH) rows_between({n, a.o__block_K, a.K, a.V, nullptr, 0, a.dh__RH + base * a.H, a.H}, mine, 0, a.V.panels());
    }
    team.barrier->wait();  // also before the room is used again: the next block's rows may be divided otherwise
    if (!a.dh__RH) continue;
    const bool accumulate = a.accumulate || top < a.R;
    outer({n, a.K, a.H, a.o__block_K, a.K, h, a.H, a.dV__KH, a.H, accumulate, a.room, a.K, 0, nullptr, nullptr, 0, 0, false, nullptr, false}, team);
    if (a.dc__K) column_sum({n, a.K, a.o__block_K, a.K, a.dc__K, accumulate}, team);
    team.barrier->wait();
  }
}

// Unnormalised probabilities of one row, sharpened by 1/temperature.
static double weigh(const float* o, int64_t K, float sharpness, float* out) {
  const V shift = set1(largest(o, K)), by = set1(sharpness);
  for (int64_t j = 0; j < K; j += LANES) store_to(out, j, K, exp((load_to(o, j, K) - shift) * by));
  double sum = 0.0;
  for (int64_t j = 0; j < K; j++) sum += (double)out[j];
  return sum;
}

}  // namespace unspool::UNSPOOL_SET
