// Adam, with decoupled weight decay (AdamW), over one flat parameter vector.
#pragma once
#include "engine/math-inl.h"
#include "kernels.h"

namespace unspool::UNSPOOL_SET {

struct Adam {
  enum { LEARNING_RATE, BETA1, BETA2, EPSILON, DECAY, CORRECTION1, CORRECTION2, SETTINGS };
};

static void adam(const UpdateArgs& a, Team team) {
  const Range mine = partition(a.n, LANES, team.index, team.count);
  const double beta1 = a.settings[Adam::BETA1], beta2 = a.settings[Adam::BETA2];
  const float learning_rate = (float)a.settings[Adam::LEARNING_RATE], decay = (float)a.settings[Adam::DECAY];
  const V scale = set1(a.scale), rest1 = set1((float)(1.0 - beta1)), b2 = set1((float)beta2), rest2 = set1((float)(1.0 - beta2));
  const V rate = set1(learning_rate / (float)a.settings[Adam::CORRECTION1]), root = set1((float)a.settings[Adam::CORRECTION2]);
  const V eps = set1((float)a.settings[Adam::EPSILON]), shrink = set1(1.0f - learning_rate * decay);
  float *first = a.states[0], *second_moment = a.states[1];
  for (int64_t j = mine.begin; j < mine.end; j += LANES) {
    const V g = load_to(a.g, j, a.n) * scale;
    const V m0 = load_to(first, j, a.n);
    const V second = fma(g * g, rest2, load_to(second_moment, j, a.n) * b2);
    const Mask gone = second < set1(0x1p-126f);  // then both are zero: m is never divided by the root of a v that is zero
    const V v = select(gone, zero(), second), m = select(gone, zero(), flush(fma(g - m0, rest1, m0)));
    const V p = load_to(a.p, j, a.n) * shrink;
    store_to(first, j, a.n, m);
    store_to(second_moment, j, a.n, v);
    store_to(a.p, j, a.n, fnma(rate, m / (sqrt(v) / root + eps), p));
  }
}

static constexpr Optimiser adam_optimiser() {
  Optimiser optimiser{};
  optimiser.name = "adam";
  optimiser.state_count = optimiser.required_states = 2;
  optimiser.states[0] = "m";
  optimiser.states[1] = "v";
  optimiser.setting_count = Adam::SETTINGS;
  optimiser.settings[Adam::LEARNING_RATE] = "learning_rate";
  optimiser.settings[Adam::BETA1] = "beta1";
  optimiser.settings[Adam::BETA2] = "beta2";
  optimiser.settings[Adam::EPSILON] = "epsilon";
  optimiser.settings[Adam::DECAY] = "decay";
  optimiser.settings[Adam::CORRECTION1] = "correction1";  // 1 - beta1^step
  optimiser.settings[Adam::CORRECTION2] = "correction2";  // the square root of 1 - beta2^step
  optimiser.update = adam;
  return optimiser;
}

}  // namespace unspool::UNSPOOL_SET
