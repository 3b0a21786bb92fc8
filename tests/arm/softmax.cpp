// The output layer with its loss and gradients.
#include "hashes.h"

namespace unspool {

struct SoftmaxShape {
  int64_t R, H, K, B, block;  // a block holds whole steps of B rows and whole blocks of 32 rows
};
static const SoftmaxShape SHAPES[] = {{1, 1, 1, 1, 32}, {37, 17, 5, 1, 64}, {100, 33, 50, 4, 64}, {210, 40, 300, 3, 96}, {90, 7, 31, 64, 64}};

// With gradients or without; large: logits of which many have a probability of zero.
static void hash_softmax(Precision precision, const SoftmaxShape& s, bool gradients, bool accumulate, bool biased, bool large) {
  Numbers numbers((uint32_t)(s.R * 100 + s.K));
  const std::vector<float> h = numbers.floats(s.R * s.H, large ? 6 : 0), V = numbers.floats(s.K * s.H), c = numbers.floats(s.K);
  std::vector<int32_t> y = numbers.ids(s.R, (int32_t)s.K);
  for (int64_t r = 0; r < s.R; r += 5) y[(size_t)r] = -1;  // masked
  const Matrix forward(V, s.H, s.K, true, 1, precision), backward(V, s.K, s.H, false, 1, precision);
  std::vector<float> dh((size_t)(s.R * s.H)), dV = numbers.floats(s.K * s.H), dc = numbers.floats(s.K);
  std::vector<double> loss((size_t)s.R);
  Block o = unwritten(s.block * s.K), scratch = unwritten(outer_scratch(s.H, precision) * threads());
  SoftmaxArgs a{};
  a.rounded_floats = rounded_floats(s.H > s.K ? s.H : s.K);
  Block rounded = unwritten(a.rounded_floats * threads());
  a.R = s.R, a.H = s.H, a.K = s.K, a.B = s.B, a.block = s.block;
  a.h__RH = h.data();
  a.Vt = forward.packed, a.V = backward.packed;
  a.c__K = biased ? c.data() : nullptr;
  a.y__R = y.data();
  a.scale = 0.37f;
  a.o__block_K = o.at, a.scratch = scratch.at, a.rounded = rounded.at;
  a.loss__R = loss.data();
  if (gradients) a.dh__RH = dh.data(), a.dV__KH = dV.data(), a.dc__K = biased ? dc.data() : nullptr;
  a.accumulate = accumulate;
  run(products(precision).softmax, a);
  Hash& hash = hash_of(std::string("softmax ") + name_of(precision));
  for (const double each : loss) hash.add(each);
  hash.add(dh), hash.add(dV), hash.add(dc);
}

void hash_softmax(Precision precision) {
  for (const SoftmaxShape& shape : SHAPES)
    for (int way = 0; way < 16; way++) hash_softmax(precision, shape, way & 1, way & 2, way & 4, way & 8);
}

}  // namespace unspool
