// Adam, with decoupled weight decay (AdamW), over one flat parameter vector.
#pragma once
#include "engine/math-inl.h"
#include "kernels.h"

namespace unspool::UNSPOOL_SET {

static void adam(const AdamArgs& a, Team team) {
  const Range mine = share(a.n, LANES, team.index, team.count);
  const V scale = set1(a.scale), rest1 = set1(a.rest1), b2 = set1(a.beta2), rest2 = set1(a.rest2);
  const V rate = set1(a.learning_rate / a.correction1), root = set1(a.correction2), eps = set1(a.epsilon);
  const V shrink = set1(1.0f - a.learning_rate * a.decay);
  for (int64_t j = mine.begin; j < mine.end; j += LANES) {
    const V g = load_to(a.g, j, a.n) * scale;
    const V m0 = load_to(a.m, j, a.n);
    const V second = fma(g * g, rest2, load_to(a.v, j, a.n) * b2);
    const Mask gone = second < set1(0x1p-126f);  // below, both are zero: never one over the square root of the other's zero
    const V v = select(gone, zero(), second), m = select(gone, zero(), flush(fma(g - m0, rest1, m0)));
    const V p = load_to(a.p, j, a.n) * shrink;
    store_to(a.m, j, a.n, m);
    store_to(a.v, j, a.n, v);
    store_to(a.p, j, a.n, fnma(rate, m / (sqrt(v) / root + eps), p));
  }
}

}  // namespace unspool::UNSPOOL_SET
