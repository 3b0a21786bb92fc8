// Stochastic gradient descent, with or without momentum, over one flat parameter vector.
#pragma once
#include "engine/math-inl.h"
#include "kernels.h"

namespace unspool::UNSPOOL_SET {

static void sgd(const SgdArgs& a, Team team) {
  const Range mine = share(a.n, LANES, team.index, team.count);
  const V scale = set1(a.scale), momentum = set1(a.momentum), rate = set1(a.learning_rate), decay = set1(a.decay);
  for (int64_t j = mine.begin; j < mine.end; j += LANES) {
    const V p = load_to(a.p, j, a.n);
    V step = fma(decay, p, load_to(a.g, j, a.n) * scale);
    if (a.m) {
      step = flush(fma(momentum, load_to(a.m, j, a.n), step));
      store_to(a.m, j, a.n, step);
    }
    store_to(a.p, j, a.n, fnma(rate, step, p));
  }
}

}  // namespace unspool::UNSPOOL_SET
