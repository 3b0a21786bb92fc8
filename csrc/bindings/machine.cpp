// Threads and instruction sets.
#include <nanobind/stl/string.h>

#include "bindings/arrays.h"
#include "runtime/caches.h"

namespace unspool {

void bind_machine(nb::module_& m) {
  m.def("threads", [] { return threads(); });
  m.def("set_threads", [](int64_t n) {
    require(n >= 1 && n <= 256, "threads must be from 1 to 256; got " + std::to_string(n));
    GilReleased released;
    set_threads((int)n);
  });
  m.def("isa", [] { return std::string(kernels().name); });
  m.def("isa_bf16", [] { return std::string(products(Precision::BF16).name); });
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
