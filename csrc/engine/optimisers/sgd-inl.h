// Stochastic gradient descent, with or without momentum, over one flat parameter vector.
#pragma once
#include "engine/math-inl.h"
#include "kernels.h"

namespace unspool::UNSPOOL_SET {

struct Sgd {
  enum { LEARNING_RATE, MOMENTUM, DECAY, SETTINGS };
};

static void sgd(const UpdateArgs& a, Team team) {
  const Range mine = partition(a.n, LANES, team.index, team.count);
  const V scale = set1(a.scale), momentum = set1((float)a.settings[Sgd::MOMENTUM]);
  const V rate = set1((float)a.settings[Sgd::LEARNING_RATE]), decay = set1((float)a.settings[Sgd::DECAY]);
  float* velocity = a.states[0];
  for (int64_t j = mine.begin; j < mine.end; j += LANES) {
    const V p = load_to(a.p, j, a.n);
    V step = fma(decay, p, load_to(a.g, j, a.n) * scale);
    if (velocity) {
      step = flush(fma(momentum, load_to(velocity, j, a.n), step));
      store_to(velocity, j, a.n, step);
    }
    store_to(a.p, j, a.n, fnma(rate, step, p));
  }
}

static constexpr Optimiser sgd_optimiser() {
  Optimiser optimiser{};
  optimiser.name = "sgd";
  optimiser.state_count = 1;  // optional: without it there is no momentum
  optimiser.states[0] = "m";
  optimiser.setting_count = Sgd::SETTINGS;
  optimiser.settings[Sgd::LEARNING_RATE] = "learning_rate";
  optimiser.settings[Sgd::MOMENTUM] = "momentum";
  optimiser.settings[Sgd::DECAY] = "decay";
  optimiser.update = sgd;
  return optimiser;
}

}  // namespace unspool::UNSPOOL_SET
