// Functions of every value by itself.
#include "bindings/cells.h"

namespace unspool {
namespace {

Array shift_rows(Matrix x, Floats b) {
  const int64_t R = (int64_t)x.shape(0), N = (int64_t)x.shape(1);
  const float* by = checked(b, "b", {N});
  Array out = array({(size_t)R, (size_t)N});
  ShiftRowsArgs args{};
  args.R = R, args.N = N;
  args.x = x.data(), args.stride = row_stride(x, "x");
  args.b = by;
  args.out = out.data();
  GilReleased released;
  parallel([&, body = kernels().shift_rows](Team team) { body(args, team); }, at_most_threads((double)R * N * 8));
  return out;
}

Array scale_rows(Floats x, Floats mask) {
  require(x.ndim() == 3, "x must have three dimensions (tau, B, H)");
  const int64_t tau = (int64_t)x.shape(0), B = (int64_t)x.shape(1), H = (int64_t)x.shape(2);
  const float* from = checked(x, "x", {tau, B, H});
  const float* by = checked(mask, "mask", {B, H});
  Array out = array({(size_t)tau, (size_t)B, (size_t)H});
  if (B * H == 0) return out;
  ScaleRowsArgs a{};
  a.tau = tau, a.B = B, a.H = H;
  a.x = from, a.mask = by;
  a.out = out.data();
  GilReleased released;
  parallel([&, body = kernels().scale_rows](Team team) { body(a, team); }, at_most_threads((double)(tau * B * H)));
  return out;
}

Array activate(Floats x, int activation, bool slope) {
  check_activation(activation);
  std::vector<size_t> shape(x.ndim());
  for (size_t i = 0; i < x.ndim(); i++) shape[i] = x.shape(i);
  const float* from = checked(x, "x", std::vector<int64_t>(shape.begin(), shape.end()));
  Array out = array(shape);
  ActivateArgs a{};
  a.n = (int64_t)x.size();
  a.activation = activation, a.slope = slope;
  a.x = from;
  a.out = out.data();
  if (a.n == 0) return out;
  GilReleased released;
  parallel([&, body = kernels().activate](Team team) { body(a, team); }, at_most_threads(8.0 * (double)a.n));
  return out;
}

Array zeros(size_t n) {
  Array out = array({n});
  if (n) std::memset(out.data(), 0, n * 4);
  return out;
}

}  // namespace

void bind_elementwise(nb::module_& m) {
  m.def("shift_rows", &shift_rows, "x"_a.noconvert(), "b"_a.noconvert());
  m.def("scale_rows", &scale_rows, "x"_a.noconvert(), "mask"_a.noconvert());
  m.def("activate", &activate, "x"_a.noconvert(), "activation"_a, "slope"_a);
  m.def("zeros", &zeros, "n"_a);
}

}  // namespace unspool
