// Threads and instruction sets.
#include <nanobind/stl/string.h>

#include "bindings/arrays.h"
#include "runtime/caches.h"

namespace unspool {
namespace {

using Tiles16 = nb::ndarray<const uint16_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// C + A B of n tiles: A is (n, 16, 32) bf16, B (n, 16, 32) with pairs (k, k + 1) of each of the 16 columns, C (n, 16, 16).
Array tile_products(Tiles16 A, Tiles16 B, Floats C, bool by_instruction) {
  const int64_t n = (int64_t)A.shape(0);
  require(A.shape(1) == 16 && A.shape(2) == 32, "A must have shape (n, 16, 32)");
  require((int64_t)B.shape(0) == n && B.shape(1) == 16 && B.shape(2) == 32, "B must have shape (" + std::to_string(n) + ", 16, 32)");
  const float* from = checked(C, "C", {n, 16, 16});
  const auto body = products(Precision::BF16).tile_products;
  require(body, "no instruction for bf16: this process uses the multiply-adds of " + std::string(bf16_name()));
  Array out = array({(size_t)n, 16, 16});
  GilReleased released;
  body({n, A.data(), B.data(), from, out.data(), by_instruction});
  return out;
}

}  // namespace

void bind_machine(nb::module_& m) {
  m.def("threads", [] { return threads(); });
  m.def("set_alone", &set_alone);
  m.def("set_threads", [](int64_t n) {
    require(n >= 1 && n <= 256, "threads must be from 1 to 256; got " + std::to_string(n));
    GilReleased released;
    set_threads((int)n);
  });
  m.def("isa", [] { return std::string(kernels().name); });
  m.def("isa_bf16", [] { return std::string(bf16_name()); });
  m.def("tile_products", &tile_products, "A"_a.noconvert(), "B"_a.noconvert(), "C"_a.noconvert(), "by_instruction"_a);
  m.def("available", [] { return std::string(available_kernels()); });
  m.def("choose_isa", [](const std::string& name) {
    const char* refusal = choose_kernels(name.c_str());
    require(!refusal, "'" + name + "': " + (refusal ? refusal : "") + "; this machine has " + available_kernels());
  });
  m.def("L2_bytes", [] { return L2_bytes(); });
  m.def("set_L2_bytes", [](int64_t bytes) {
    require(bytes >= 1, "L2_bytes must be 1 or more; got " + std::to_string(bytes));
    set_L2_bytes(bytes);
  });
  m.def("fma_peak", [](double seconds) {
    double rate[256] = {};
    GilReleased released;
    parallel([&](Team team) {
      team.barrier->wait();
      rate[team.index] = kernels().fma_peak(seconds);
    });
    double sum = 0.0;
    for (double r : rate) sum += r;
    return sum;
  });
}

}  // namespace unspool
