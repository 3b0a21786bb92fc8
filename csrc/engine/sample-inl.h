// Probabilities to draw a token from, and log-probabilities of a cluster of tokens.
#pragma once
#include "engine/softmax-inl.h"

namespace unspool::UNSPOOL_SET {

// Unnormalised probabilities of one row: exp((o - max o) / temperature), and their sum.
static double exp_weights(const float* o, int64_t K, float sharpness, float* out) {
  const V shift = set1(largest(o, K)), by = set1(sharpness);
  for (int64_t j = 0; j < K; j += LANES) store_to(out, j, K, exp((load_to(o, j, K) - shift) * by));
  double sum = 0.0;
  for (int64_t j = 0; j < K; j++) sum += (double)out[j];
  return sum;
}

// One row: o = start + log softmax(o), in place; the sum of the exponentials is that of the loss, to the bit.
static void log_softmax(float* o, int64_t K, float start) {
  const float most = largest(o, K);
  const V shift = set1(most);
  V sums = zero();
  int64_t j = 0;
  for (; j + LANES <= K; j += LANES) sums = sums + exp(load(o + j) - shift);
  if (j < K) {
    alignas(64) float last[LANES] = {};
    store_to(last, 0, K - j, exp(load_to(o + j, 0, K - j) - shift));
    sums = sums + load_to(last, 0, K - j);  // lanes beyond the row read as zero
  }
  const V by = set1((float)((double)start - ((double)most + log_positive((double)reduce_add(sums)))));
  for (j = 0; j < K; j += LANES) store_to(o, j, K, load_to(o, j, K) + by);
}

}  // namespace unspool::UNSPOOL_SET
