#include "stream.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "runtime/philox.h"
#include "runtime/pool.h"

namespace unspool {

void Stream::prepare() {
  for (auto& layer : layers) {
    layer.room = Block(std::max<int64_t>(1, taped_gates_of(layer.cell) * layer.H));
    layer.h = Block(2 * layer.H);
    layer.s = Block(2 * layer.H);
    layer.p = Block(gates_of(layer.cell) * layer.H);
    std::memset(layer.h.at, 0, (size_t)layer.H * 8);
    std::memset(layer.s.at, 0, (size_t)layer.H * 8);
  }
  o = Block(K);
  weights = Block(K);
  order.resize((size_t)K);
}

void Stream::step(int32_t id) {
  const Kernels& k = kernels();
  Barrier alone(1);
  const Team self{0, 1, &alone};
  const float* x = nullptr;
  for (auto& layer : layers) {
    WindowArgs a{};
    a.tau = a.B = 1;
    a.H = layer.H;
    a.activation = layer.activation;
    a.d__H = layer.d;
    a.W = layer.W;
    a.hs__tBH = layer.h.at;
    a.ss__tBH = layer.s.at;
    a.gates__tBG = layer.room.at;
    if (layer.U.at) {
      k.rows({1, x, layer.X, layer.U, layer.b, 0, layer.p.at, layer.U.N}, self);
      a.p__tBG = layer.p.at;
    } else {
      a.table__KG = layer.table;
      a.ids__tB = &id;
    }
    const auto forward = layer.cell == ELMAN ? k.elman_forward : layer.cell == LSTM ? k.lstm_forward : k.gru_forward;
    const bool large = layer.H * layer.H * gates_of(layer.cell) * 4 > (5 << 17);  // else waiting for each other costs more than it saves
    if (large) parallel([&](Team team) { forward(a, team); });
    else forward(a, self);
    std::memcpy(layer.h.at, layer.h.at + layer.H, (size_t)layer.H * 4);
    if (layer.cell == LSTM) std::memcpy(layer.s.at, layer.s.at + layer.H, (size_t)layer.H * 4);
    x = layer.h.at;
  }
  const int64_t H = layers.back().H;
  k.rows({1, x, H, Vt, c, 0, o.at, K}, self);
}

int32_t Stream::most_probable() const {
  int64_t best = 0;
  for (int64_t j = 0; j < K; j++) {
    if (o.at[j] != o.at[j]) return -1;
    if (o.at[j] > o.at[best]) best = j;
  }
  return (int32_t)best;
}

int32_t Stream::draw(float temperature, int64_t top_k, float top_p, double u) {
  const float sharpness = 1.0f / temperature;
  if (!(sharpness <= 3.4e38f)) return most_probable();
  double sum = kernels().weigh(o.at, K, sharpness, weights.at);
  if (!(sum > 0.0)) return -1;  // logits that are no numbers have no order, and no sum either
  const float* w = weights.at;
  if (top_k <= 0 || top_k > K) top_k = K;
  if (top_k == K && top_p >= 1.0f) {  // the whole distribution, in the order of the ids
    double reach = u * sum;
    for (int64_t j = 0; j < K; j++) {
      if (w[j] < 1e-37f) continue;  // the bottom of exp's range stands for zero: not drawn even where u is 0
      reach -= (double)w[j];
      if (reach < 0.0) return (int32_t)j;
    }
    return most_probable();
  }
  std::iota(order.begin(), order.end(), 0);
  auto more = [w](int32_t a, int32_t b) { return w[a] > w[b] || (w[a] == w[b] && a < b); };
  if (top_p >= 1.0f) std::partial_sort(order.begin(), order.begin() + top_k, order.end(), more);
  else std::sort(order.begin(), order.end(), more);
  sum = 0.0;
  for (int64_t j = 0; j < top_k; j++) sum += (double)w[order[(size_t)j]];
  int64_t kept = top_k;
  if (top_p < 1.0f) {  // the fewest whose sum reaches top_p
    double reached = 0.0;
    for (kept = 0; kept < top_k && reached < (double)top_p * sum;) reached += (double)w[order[(size_t)kept++]];
    if (kept == 0) reached = (double)w[order[0]], kept = 1;
    sum = reached;
  }
  double reach = u * sum;
  for (int64_t j = 0; j < kept; j++) {
    reach -= (double)w[order[(size_t)j]];
    if (reach < 0.0) return order[(size_t)j];
  }
  return order[(size_t)kept - 1];
}

double uniform(uint64_t seed, uint64_t index) {
  uint32_t c[4] = {(uint32_t)index, (uint32_t)(index >> 32), 0u, 0x64726177u};
  philox(c, (uint32_t)seed, (uint32_t)(seed >> 32));
  const uint64_t bits = ((uint64_t)c[0] << 21) ^ (uint64_t)(c[1] >> 11);
  return (double)bits * 0x1p-53;
}

}  // namespace unspool
