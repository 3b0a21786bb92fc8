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
namespace avx512_amx { extern const Products products_table; bool tiles_are_right(); }
#endif

namespace {

struct InstructionSet {
  const char* name;
  const Kernels* kernels;
  const Products *float32, *bf16;
  const Products* tiles;           // in place of bf16, if they work; nullptr: none
  bool (*tiles_are_right)();
};
#define UNSPOOL_TABLES(set) #set, &set::table, &set::products_table, &set##_bf16::products_table

const std::vector<InstructionSet>& usable() {
  static const std::vector<InstructionSet> sets = [] {
    std::vector<InstructionSet> found;
#if defined(UNSPOOL_BUILD_X86)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw")) {
      const InstructionSet avx512 = {UNSPOOL_TABLES(avx512), nullptr, nullptr};
#if defined(UNSPOOL_BUILD_AMX)
      InstructionSet amx = avx512;
      amx.name = "amx", amx.tiles = &avx512_amx::products_table, amx.tiles_are_right = avx512_amx::tiles_are_right;
      if (reports_tiles()) found.push_back(amx);
#endif
      found.push_back(avx512);
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found.push_back({UNSPOOL_TABLES(avx2), nullptr, nullptr});
#elif defined(UNSPOOL_BUILD_ARM)
    found.push_back({UNSPOOL_TABLES(neon), nullptr, nullptr});
#endif
    found.push_back({UNSPOOL_TABLES(plain), nullptr, nullptr});
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

// Of this process and its children. No lock, which a child could inherit: two threads may both test the tiles.
enum class TileTest { NOT_RUN, PASSED, FAILED };
std::atomic<TileTest> tile_test{TileTest::NOT_RUN};

}  // namespace

const Kernels& kernels() { return *current().kernels; }

const Products& products(Precision precision) {
  const InstructionSet& set = current();
  if (precision == Precision::FLOAT32) return *set.float32;
  if (!set.tiles) return *set.bf16;
  if (tile_test.load(std::memory_order_acquire) == TileTest::NOT_RUN)
    tile_test.store(tiles_work(set.tiles_are_right) ? TileTest::PASSED : TileTest::FAILED, std::memory_order_release);
  return tile_test.load(std::memory_order_acquire) == TileTest::PASSED ? *set.tiles : *set.bf16;
}

const char* bf16_name() {
  const InstructionSet& set = current();
  return set.tiles && tile_test.load(std::memory_order_acquire) != TileTest::FAILED ? set.tiles->name : set.bf16->name;
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
