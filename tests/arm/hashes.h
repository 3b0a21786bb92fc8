// Inputs from a fixed generator, and hashes of results. See main.cpp.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels.h"
#include "runtime/memory.h"
#include "runtime/pool.h"

namespace unspool {

// Numbers that depend on a seed and a counter only, made without a rounding.
class Numbers {
 public:
  explicit Numbers(uint32_t seed) : seed(seed) {}
  uint32_t word();
  int32_t below(int32_t n) { return (int32_t)(((uint64_t)word() * (uint64_t)n) >> 32); }
  std::vector<float> floats(int64_t n, int exponent = 0);  // in [-1, 1) times 2^exponent
  std::vector<float> wide(int64_t n);                      // of many sizes: some are rounded to zero in bf16
  std::vector<float> special(int64_t n);                   // one in four is zero, infinite, NaN, denormal or close to a limit
  std::vector<int32_t> ids(int64_t n, int32_t K);

 private:
  uint32_t seed;
  uint64_t index = 0;
};

float float_of(uint32_t bits);

// FNV-1a over 32-bit words. Sign and payload of a NaN depend on the machine: every NaN counts as the same one.
class Hash {
 public:
  void add(uint32_t word);
  void add(const float* values, int64_t n);
  void add(const std::vector<float>& values) { add(values.data(), (int64_t)values.size()); }
  void add(double value);
  uint64_t value = 0xcbf29ce484222325u;
};

// The hash of a kernel: a line of the output. The first word of its name is the name of the kernel in kernels.h.
Hash& hash_of(const std::string& kernel);

const char* name_of(Precision precision);

// A block whose floats are NaN until they are written: a result that depends on an unwritten one differs from the expected result.
Block unwritten(int64_t floats);

template <class Args> void run(void (*kernel)(const Args&, Team), const Args& args) {
  parallel([&](Team team) { kernel(args, team); });
}

// A matrix packed for products; source is (K, N), or (N, K) if transposed.
struct Matrix {
  Matrix(const std::vector<float>& source, int64_t K, int64_t N, bool transposed, int64_t groups, Precision precision, int64_t cut = 0);
  Block block;
  Packed packed;
};

void hash_products(Precision precision);
void hash_softmax(Precision precision);
void hash_windows(Precision precision);
void hash_streams(Precision precision);
void hash_tables();
void hash_elementwise();
void hash_optimisers();
void hash_bytes();

}  // namespace unspool
