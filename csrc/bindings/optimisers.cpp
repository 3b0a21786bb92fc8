// Updates of one flat parameter vector, and the norm of a gradient.
#include "bindings/arrays.h"

#include <nanobind/stl/optional.h>

#include <cmath>

namespace unspool {
namespace {

double global_norm(Vector g) {
  const int64_t n = (int64_t)g.shape(0), chunks = (n + CHUNK - 1) / CHUNK;
  Block room_for_squares = room(std::max<int64_t>(1, 2 * chunks));
  NormArgs a{n, g.data(), (double*)room_for_squares.at};
  {
    GilReleased free;
    parallel([&, body = kernels().norm](Team team) { body(a, team); }, at_most_threads((double)n));
  }
  double sum = 0.0;
  for (int64_t i = 0; i < chunks; i++) sum += a.squares[i];
  return std::sqrt(sum);
}

template <class A> void same_length(const WrittenVector& p, const A& other, const char* name) {
  require(p.shape(0) == other.shape(0), std::string(name) + " has " + std::to_string(other.shape(0)) + " values; the parameters have " +
                                            std::to_string(p.shape(0)));
}

void adam(WrittenVector p, Vector g, WrittenVector m, WrittenVector v, double scale, double learning_rate, double beta1, double beta2, double epsilon,
          double decay, double correction1, double correction2) {
  same_length(p, g, "g");
  same_length(p, m, "m");
  same_length(p, v, "v");
  AdamArgs a{(int64_t)p.shape(0), p.data(), m.data(), v.data(), g.data(), (float)scale, (float)learning_rate, (float)(1.0 - beta1),
             (float)beta2, (float)(1.0 - beta2), (float)epsilon, (float)decay, (float)correction1, (float)correction2};
  GilReleased free;
  parallel([&, body = kernels().adam](Team team) { body(a, team); }, at_most_threads((double)a.n * 8));
}

void sgd(WrittenVector p, Vector g, std::optional<WrittenVector> m, double scale, double learning_rate, double momentum, double decay) {
  same_length(p, g, "g");
  if (m) same_length(p, *m, "m");
  SgdArgs a{(int64_t)p.shape(0), p.data(), m ? m->data() : nullptr, g.data(), (float)scale, (float)learning_rate, (float)momentum,
            (float)decay};
  GilReleased free;
  parallel([&, body = kernels().sgd](Team team) { body(a, team); }, at_most_threads((double)a.n * 4));
}

}  // namespace

void bind_optimisers(nb::module_& m) {
  m.def("global_norm", &global_norm, "g"_a.noconvert());
  m.def("adam", &adam, "p"_a.noconvert(), "g"_a.noconvert(), "m"_a.noconvert(), "v"_a.noconvert(), "scale"_a, "learning_rate"_a,
        "beta1"_a, "beta2"_a, "epsilon"_a, "decay"_a, "correction1"_a, "correction2"_a);
  m.def("sgd", &sgd, "p"_a.noconvert(), "g"_a.noconvert(), "m"_a.noconvert().none(), "scale"_a, "learning_rate"_a, "momentum"_a,
        "decay"_a);
}

}  // namespace unspool
