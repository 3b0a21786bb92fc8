// Probabilities to draw a token from.
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

}  // namespace unspool::UNSPOOL_SET
