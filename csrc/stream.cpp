#include "stream.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "runtime/caches.h"
#include "runtime/pool.h"

namespace unspool {

void Stream::prepare() {
  int64_t deepest = Vt.K;  // the most rows of a packed matrix
  for (auto& layer : layers) {
    const Cell& cell = products(Vt).cells[layer.cell];
    layer.tape = Block(std::max<int64_t>(1, cell.tape.of(layer.H, layer.P)));
    deepest = std::max({deepest, layer.H, layer.X});
    for (int i = 0; i < cell.parameter_count; i++) deepest = std::max(deepest, layer.parameters[i].packed.K);
    layer.h = Block(2 * layer.H);
    layer.s = Block(2 * layer.H);
    layer.p = Block(layer.P);
    std::memset(layer.h.at, 0, (size_t)layer.H * 8);
    std::memset(layer.s.at, 0, (size_t)layer.H * 8);
  }
  for (auto& tail : tails) tail.z = Block(tail.Vt.K);
  rounded_floats = rounded_stride(deepest);
  rounded = Block(Vt.precision == Precision::BF16 ? rounded_floats * MOST_THREADS : 1);
  o = Block(K);
  head = Block(tails.empty() ? 1 : Vt.N);
  weights = Block(K);
  penalised_o = Block(K);
  order.resize((size_t)K);
}

void Stream::step(int32_t id) {
  const Products& k = products(Vt);
  Barrier alone(1);
  const Team self{0, 1, &alone};
  const float* x = nullptr;
  for (auto& layer : layers) {
    const Cell& cell = k.cells[layer.cell];
    ForwardArgs a{};
    a.tau = a.B = 1;
    a.H = layer.H;
    a.P = layer.P;
    a.activation = layer.activation;
    a.parameters = layer.parameters;
    a.W = layer.W;
    a.rounded = rounded.at, a.rounded_floats = rounded_floats;
    a.hs__tBH = layer.h.at;
    a.ss__tBH = layer.s.at;
    a.tape__tBT = layer.tape.at;
    if (layer.table) {
      a.table__KP = layer.table;
      a.ids__tB = &id;
    } else if (cell.gates) {
      RowsArgs p;
      p.M = 1;
      p.A = x, p.lda = layer.X;
      p.B = layer.U;
      p.start = layer.b;
      p.C = layer.p.at, p.ldc = layer.P;
      p.rounded = rounded.at;
      k.rows(p, self);
      a.p__tBP = layer.p.at;
    } else {
      a.p__tBP = x;
    }
    const bool large = layer.W.floats() * 4 > L2_bytes() / 8 * 5;  // else the barrier costs more than the threads save
    if (large) faster.run([&](Team team) { cell.forward(a, team); });
    else cell.forward(a, self);
    std::memcpy(layer.h.at, layer.h.at + layer.H, (size_t)layer.H * 4);
    if (cell.has_cell_state) std::memcpy(layer.s.at, layer.s.at + layer.H, (size_t)layer.H * 4);
    x = layer.h.at;
  }
  compute_logits(x);
}

void Stream::compute_logits(const float* h) {
  Barrier alone(1);
  const Team self{0, 1, &alone};
  const auto product = [&](const float* x, const Packed& B, const float* start, float* to) {  // to = start + B^T x
    RowsArgs a;
    a.M = 1;
    a.A = x, a.lda = B.K;
    a.B = B;
    a.start = start;
    a.C = to, a.ldc = B.N;
    a.rounded = rounded.at;
    products(B).rows(a, self);
  };
  if (tails.empty()) return product(h, Vt, c, o.at);
  product(h, Vt, c, head.at);
  int64_t first = Vt.N - (int64_t)tails.size();
  std::memcpy(o.at, head.at, (size_t)first * 4);
  const float* cluster = head.at + first;
  for (auto& tail : tails) {
    product(h, tail.Pt, nullptr, tail.z.at);
    product(tail.z.at, tail.Vt, tail.c, o.at + first);
    kernels().log_softmax(o.at + first, tail.Vt.N, *cluster++);
    first += tail.Vt.N;
  }
}

const float* Stream::penalised(const Drawing& how) {
  if (!how.seen__K || how.penalty == 1.0f) return o.at;
  for (int64_t j = 0; j < K; j++) {
    const float logit = o.at[j];
    penalised_o.at[j] = !how.seen__K[j] ? logit : logit > 0.0f ? logit / how.penalty : logit * how.penalty;
  }
  return penalised_o.at;
}

int32_t Stream::most_probable(const float* logits) const {
  int64_t best = 0;
  for (int64_t j = 0; j < K; j++) {
    if (logits[j] != logits[j]) return -1;
    if (logits[j] > logits[best]) best = j;
  }
  return (int32_t)best;
}

int32_t Stream::draw(const Drawing& how, double u) {
  const float* logits = penalised(how);
  const float sharpness = 1.0f / how.temperature;
  if (!(sharpness <= 3.4e38f)) return most_probable(logits);
  double sum = kernels().exp_weights(logits, K, sharpness, weights.at);
  if (!(sum > 0.0)) return -1;  // NaN among the logits
  const float* w = weights.at;
  const int64_t top_k = how.top_k <= 0 || how.top_k > K ? K : how.top_k;
  if (top_k == K && how.top_p >= 1.0f && how.min_p <= 0.0f) {  // the whole distribution, in the order of the ids
    double reach = u * sum;
    for (int64_t j = 0; j < K; j++) {
      if (w[j] < 1e-37f) continue;  // the lower end of exp's range stands for zero: never drawn, not even with u = 0
      reach -= (double)w[j];
      if (reach < 0.0) return (int32_t)j;
    }
    return most_probable(logits);
  }
  std::iota(order.begin(), order.end(), 0);
  auto more = [w](int32_t a, int32_t b) { return w[a] > w[b] || (w[a] == w[b] && a < b); };
  if (top_k < K && how.top_p >= 1.0f) std::partial_sort(order.begin(), order.begin() + top_k, order.end(), more);
  else std::sort(order.begin(), order.end(), more);
  sum = 0.0;
  for (int64_t j = 0; j < top_k; j++) sum += (double)w[order[(size_t)j]];
  int64_t candidates = top_k;
  if (how.top_p < 1.0f) {  // the fewest whose sum reaches top_p
    double reached = 0.0;
    for (candidates = 0; candidates < top_k && reached < (double)how.top_p * sum;) reached += (double)w[order[(size_t)candidates++]];
    if (candidates == 0) reached = (double)w[order[0]], candidates = 1;
    sum = reached;
  }
  if (how.min_p > 0.0f) {  // p >= min_p · max p; the largest weight is the first
    const double least = (double)how.min_p * (double)w[order[0]];
    int64_t kept = 1;
    for (sum = (double)w[order[0]]; kept < candidates && (double)w[order[(size_t)kept]] >= least; kept++) sum += (double)w[order[(size_t)kept]];
    candidates = kept;
  }
  double reach = u * sum;
  for (int64_t j = 0; j < candidates; j++) {
    reach -= (double)w[order[(size_t)j]];
    if (reach < 0.0) return order[(size_t)j];
  }
  return order[(size_t)candidates - 1];
}

}  // namespace unspool
