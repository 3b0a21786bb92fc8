// Chooses the best instruction set of this machine, at the first use.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "kernels.h"
#include "runtime/tiles.h"

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
#if defined(UNSPOOL_BUILD_AMX)
namespace avx512_amx { extern const Products products_table; bool instruction_is_right(); }
#endif
#if defined(UNSPOOL_BUILD_DOT)
namespace avx512_dot { extern const Products products_table; bool instruction_is_right(); }
#endif

namespace {

// Products by an instruction for bf16, if it is right: tested at the first use, for this process and its children. No lock, which a
// child could inherit: two threads may both test it.
struct Unit {
  const Products* products;
  bool (*test)();
  enum State { NOT_TESTED, PASSED, FAILED };
  std::atomic<State> state{NOT_TESTED};

  bool failed() const { return state.load(std::memory_order_acquire) == FAILED; }
  bool works() {
    if (state.load(std::memory_order_acquire) == NOT_TESTED) state.store(test() ? PASSED : FAILED, std::memory_order_release);
    return !failed();
  }
};
#if defined(UNSPOOL_BUILD_AMX)
Unit amx_unit{&avx512_amx::products_table, [] { return tiles_work(avx512_amx::instruction_is_right); }};
#endif
#if defined(UNSPOOL_BUILD_DOT)
Unit dot_unit{&avx512_dot::products_table, avx512_dot::instruction_is_right};
#endif

struct InstructionSet {
  const char* name;
  const Kernels* kernels;
  const Products *float32, *bf16;
  Unit* unit;  // in place of bf16, if it works; nullptr: none
};
#define UNSPOOL_TABLES(set) #set, &set::table, &set::products_table, &set##_bf16::products_table

const std::vector<InstructionSet>& usable() {
  static const std::vector<InstructionSet> sets = [] {
    std::vector<InstructionSet> found;
#if defined(UNSPOOL_BUILD_X86)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw")) {
      const InstructionSet avx512 = {UNSPOOL_TABLES(avx512), nullptr};
      const auto with = [&](Unit& unit) {
        InstructionSet set = avx512;
        set.name = unit.products->name, set.unit = &unit;
        found.push_back(set);
      };
#if defined(UNSPOOL_BUILD_AMX)
      if (reports_tiles()) with(amx_unit);
#endif
#if defined(UNSPOOL_BUILD_DOT)
      // On CPUs of Intel it takes as long as two multiply-adds.
      if (__builtin_cpu_is("amd") && __builtin_cpu_supports("avx512bf16")) with(dot_unit);
#endif
      found.push_back(avx512);
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found.push_back({UNSPOOL_TABLES(avx2), nullptr});
#elif defined(UNSPOOL_BUILD_ARM)
    found.push_back({UNSPOOL_TABLES(neon), nullptr});
#endif
    found.push_back({UNSPOOL_TABLES(plain), nullptr});
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

const Products& products(Precision precision) {
  const InstructionSet& set = current();
  if (precision == Precision::FLOAT32) return *set.float32;
  return set.unit && set.unit->works() ? *set.unit->products : *set.bf16;
}

const Products& products(const Packed& matrix) {
  const Products& best = products(matrix.precision);
  if (matrix.precision == Precision::FLOAT32 || best.pairs == matrix.pairs) return best;
#if defined(UNSPOOL_BUILD_DOT)
  if (matrix.pairs == Pairs::CHAINS) return *dot_unit.products;  // which has packed it
#endif
  return *current().bf16;
}

const char* bf16_name() {
  const InstructionSet& set = current();
  return set.unit && !set.unit->failed() ? set.unit->products->name : set.bf16->name;
}

const char* choose_kernels(const char* name) {
  for (const InstructionSet& set : usable())
    if (std::strcmp(set.name, name) == 0) {
      chosen.store(&set, std::memory_order_release);
      return nullptr;
    }
  return "this machine has no such instruction set";
}

const char* available_kernels() {
  static const std::string names = [] {
    std::string text;
    for (const InstructionSet& set : usable()) text += (text.empty() ? "" : " ") + std::string(set.name);
    return text;
  }();
  return names.c_str();
}

}  // namespace unspool
