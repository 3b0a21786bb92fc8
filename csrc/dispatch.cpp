// Chooses the best instruction set of this machine, at the first use.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "kernels.h"

namespace unspool {

#define UNSPOOL_DECLARE(set)                                                             \
  namespace set { extern const Kernels table; extern const Products products_table; } \
  namespace set##_bf16 { extern const Products products_table; }
#if defined(UNSPOOL_BUILD_X86)
UNSPOOL_DECLARE(avx512)
UNSPOOL_DECLARE(avx2)
#elif defined(UNSPOOL_BUILD_ARM)
UNSPOOL_DECLARE(neon)
#endif
UNSPOOL_DECLARE(plain)

namespace {

struct InstructionSet {
  const Kernels* kernels;
  const Products *float32, *bf16;
};
#define UNSPOOL_TABLES(set) InstructionSet{&set::table, &set::products_table, &set##_bf16::products_table}

const std::vector<InstructionSet>& usable() {
  static const std::vector<InstructionSet> sets = [] {
    std::vector<InstructionSet> found;
#if defined(UNSPOOL_BUILD_X86)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw"))
      found.push_back(UNSPOOL_TABLES(avx512));
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found.push_back(UNSPOOL_TABLES(avx2));
#elif defined(UNSPOOL_BUILD_ARM)
    found.push_back(UNSPOOL_TABLES(neon));
#endif
    found.push_back(UNSPOOL_TABLES(plain));
    return found;
  }();
  return sets;
}

std::atomic<const InstructionSet*> chosen{nullptr};

const InstructionSet& current() {
  const InstructionSet* now = chosen.load(std::memory_order_acquire);
  if (!now) {
    const char* wanted = std::getenv("UNSPOOL_ISA");
    if (wanted && *wanted) choose_kernels(wanted);
    now = chosen.load(std::memory_order_acquire);
    if (!now) {
      now = &usable().front();
      chosen.store(now, std::memory_order_release);
    }
  }
  return *now;
}

}  // namespace

const Kernels& kernels() { return *current().kernels; }

const Products& products(Precision precision) { return precision == Precision::BF16 ? *current().bf16 : *current().float32; }

const char* choose_kernels(const char* name) {
  for (const InstructionSet& set : usable())
    if (std::strcmp(set.kernels->name, name) == 0) {
      chosen.store(&set, std::memory_order_release);
      return nullptr;
    }
  return "this machine has no such instruction set";
}

const char* available_kernels() {
  static const std::string names = [] {
    std::string text;
    for (const InstructionSet& set : usable()) text += (text.empty() ? "" : " ") + std::string(set.kernels->name);
    return text;
  }();
  return names.c_str();
}

}  // namespace unspool
