// Random numbers that depend on seed, stream and position only.
#include "bindings/arrays.h"
#include "runtime/philox.h"

namespace unspool {
namespace {

Array dropout_mask(size_t n, uint64_t seed, uint64_t stream, double rate) {
  require(rate >= 0.0 && rate < 1.0, "rate must be at least 0 and below 1; got " + std::to_string(rate));
  Array out = array({n});
  DropArgs a{};
  a.n = (int64_t)n;
  a.seed = seed, a.stream = stream, a.rate = (float)rate;
  a.out = out.data();
  GilReleased released;
  parallel([&, body = kernels().drop](Team team) { body(a, team); }, at_most_threads((double)n * 8));
  return out;
}

}  // namespace

void bind_random(nb::module_& m) {
  m.def("dropout_mask", &dropout_mask, "n"_a, "seed"_a, "stream"_a, "rate"_a);
  m.def("uniform", &uniform, "seed"_a, "index"_a);
}

}  // namespace unspool
