// The rate of fused multiply-adds that one thread can reach, for the benchmarks.
#pragma once
#include <time.h>

#include "engine/gemm-inl.h"

namespace unspool::UNSPOOL_SET {

static inline double now_seconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Fused multiply-adds without memory access, in GF/s.
static double fma_peak(double seconds) {
  const int CHAINS = MR * NP >= 12 ? 12 : MR * NP;
  V acc[CHAINS];
  for (int i = 0; i < CHAINS; i++) acc[i] = set1(1e-3f * (float)i);
  const V x = set1(0.999f), y = set1(1e-4f);
  double best = 0.0, spent = 0.0;
  while (spent < seconds) {
    const int64_t N = 200000;
    const double t0 = now_seconds();
    for (int64_t n = 0; n < N; n++) {
#pragma GCC unroll 16
      for (int i = 0; i < CHAINS; i++) acc[i] = fma(acc[i], x, y);
    }
    const double took = now_seconds() - t0;
    const double rate = (double)N * CHAINS * LANES * 2 / took * 1e-9;
    best = best < rate ? rate : best;
    spent += took;
  }
  float sink = 0.0f;
  for (int i = 0; i < CHAINS; i++) sink += reduce_add(acc[i]);
  return sink == 12345.0f ? 0.0 : best;
}

}  // namespace unspool::UNSPOOL_SET
