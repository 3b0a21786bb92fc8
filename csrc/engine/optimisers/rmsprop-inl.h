// RMSprop with the bias correction of Adam (Adam without the mean of the gradient) and decoupled weight decay, over
// one flat parameter vector.
#pragma once
#include "engine/math-inl.h"
#include "kernels.h"

namespace unspool::UNSPOOL_SET {

struct Rmsprop {
  enum { LEARNING_RATE, BETA2, EPSILON, DECAY, CORRECTION2, SETTINGS };
};

static void rmsprop(const UpdateArgs& a, Team team) {
  const Range mine = partition(a.n, LANES, team.index, team.count);
  const double beta2 = a.settings[Rmsprop::BETA2];
  const float learning_rate = (float)a.settings[Rmsprop::LEARNING_RATE], decay = (float)a.settings[Rmsprop::DECAY];
  const V scale = set1(a.scale), b2 = set1((float)beta2), rest2 = set1((float)(1.0 - beta2)), rate = set1(learning_rate);
  const V root = set1((float)a.settings[Rmsprop::CORRECTION2]), eps = set1((float)a.settings[Rmsprop::EPSILON]);
  const V shrink = set1(1.0f - learning_rate * decay);
  float* second_moment = a.states[0];
  for (int64_t j = mine.begin; j < mine.end; j += LANES) {
    const V g = load_to(a.g, j, a.n) * scale;
    const V second = fma(g * g, rest2, load_to(second_moment, j, a.n) * b2);
    const Mask gone = second < set1(0x1p-126f);  // then the step is zero: g is never divided by the root of a v that is zero
    const V v = select(gone, zero(), second), step = select(gone, zero(), g);
    store_to(second_moment, j, a.n, v);
    store_to(a.p, j, a.n, fnma(rate, step / (sqrt(v) / root + eps), load_to(a.p, j, a.n) * shrink));
  }
}

static constexpr Optimiser rmsprop_optimiser() {
  Optimiser optimiser{};
  optimiser.name = "rmsprop";
  optimiser.state_count = optimiser.required_states = 1;
  optimiser.states[0] = "v";
  optimiser.setting_count = Rmsprop::SETTINGS;
  optimiser.settings[Rmsprop::LEARNING_RATE] = "learning_rate";
  optimiser.settings[Rmsprop::BETA2] = "beta2";
  optimiser.settings[Rmsprop::EPSILON] = "epsilon";
  optimiser.settings[Rmsprop::DECAY] = "decay";
  optimiser.settings[Rmsprop::CORRECTION2] = "correction2";  // the square root of 1 - beta2^step
  optimiser.update = rmsprop;
  return optimiser;
}

}  // namespace unspool::UNSPOOL_SET
