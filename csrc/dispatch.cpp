// Chooses the best instruction set of this machine, at the first use.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "kernels.h"

namespace unspool {

#if defined(UNSPOOL_BUILD_X86)
namespace avx512 { extern const Kernels table; }
namespace avx2 { extern const Kernels table; }
#elif defined(UNSPOOL_BUILD_ARM)
namespace neon { extern const Kernels table; }
#endif
namespace plain { extern const Kernels table; }

namespace {

const std::vector<const Kernels*>& usable() {
  static const std::vector<const Kernels*> sets = [] {
    std::vector<const Kernels*> found;
#if defined(UNSPOOL_BUILD_X86)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw"))
      found.push_back(&avx512::table);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found.push_back(&avx2::table);
#elif defined(UNSPOOL_BUILD_ARM)
    found.push_back(&neon::table);
#endif
    found.push_back(&plain::table);
    return found;
  }();
  return sets;
}

std::atomic<const Kernels*> chosen{nullptr};

}  // namespace

const Kernels& kernels() {
  const Kernels* now = chosen.load(std::memory_order_acquire);
  if (!now) {
    const char* wanted = std::getenv("UNSPOOL_ISA");
    if (wanted && *wanted) choose_kernels(wanted);
    now = chosen.load(std::memory_order_acquire);
    if (!now) {
      now = usable().front();
      chosen.store(now, std::memory_order_release);
    }
  }
  return *now;
}

const char* choose_kernels(const char* name) {
  for (const Kernels* set : usable())
    if (std::strcmp(set->name, name) == 0) {
      chosen.store(set, std::memory_order_release);
      return nullptr;
    }
  return "this machine has no such instruction set";
}

const char* available_kernels() {
  static const std::string names = [] {
    std::string text;
    for (const Kernels* set : usable()) text += (text.empty() ? "" : " ") + std::string(set->name);
    return text;
  }();
  return names.c_str();
}

}  // namespace unspool
