#include "hashes.h"

#include <cstring>

#include "runtime/philox.h"

namespace unspool {

float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

uint32_t Numbers::word() {
  uint32_t counter[4] = {(uint32_t)index, (uint32_t)(index >> 32), 0, 0};
  index++;
  philox(counter, seed, 0);
  return counter[0];
}

std::vector<float> Numbers::floats(int64_t n, int exponent) {
  std::vector<float> values((size_t)n);
  for (float& value : values) value = (float)((int32_t)word() >> 8) * float_of((uint32_t)(exponent - 23 + 127) << 23);
  return values;
}

std::vector<float> Numbers::wide(int64_t n) {
  std::vector<float> values = floats(n);
  for (float& value : values) value *= float_of((uint32_t)(below(90) - 70 + 127) << 23);
  return values;
}

std::vector<float> Numbers::special(int64_t n) {
  static const uint32_t BITS[] = {0x00000000, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7f7fffff, 0xff7fffff,
                                  0x00000001, 0x80000001, 0x007fffff, 0x00800000, 0x23800000, 0x237fffff, 0xa3800000, 0x3f808000};
  std::vector<float> values = wide(n);
  for (float& value : values)
    if (below(4) == 0) value = float_of(BITS[below(16)]);
  return values;
}

std::vector<int32_t> Numbers::ids(int64_t n, int32_t K) {
  std::vector<int32_t> values((size_t)n);
  for (int32_t& value : values) value = below(K);
  return values;
}

void Hash::add(uint32_t word) {
  for (int i = 0; i < 4; i++) value = (value ^ ((word >> 8 * i) & 255)) * 0x100000001b3u;
}

void Hash::add(const float* values, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    uint32_t bits = 0x7fc00000;
    if (values[i] == values[i]) std::memcpy(&bits, &values[i], 4);
    add(bits);
  }
}

void Hash::add(double number) {
  uint64_t bits = 0x7ff8000000000000u;
  if (number == number) std::memcpy(&bits, &number, 8);
  add((uint32_t)bits);
  add((uint32_t)(bits >> 32));
}

const char* name_of(Precision precision) { return precision == Precision::BF16 ? "bf16" : "float32"; }

Block unwritten(int64_t floats) {
  Block block(floats);
  std::memset((void*)block.at, 0xff, (size_t)floats * 4);
  return block;
}

Matrix::Matrix(const std::vector<float>& source, int64_t K, int64_t N, bool transposed, int64_t groups, Precision precision, int64_t cut) {
  packed.K = K, packed.N = N, packed.groups = groups;
  packed.precision = precision, packed.cut = cut;
  packed.pairs = products(precision).pairs;
  block = unwritten(packed.floats());
  packed.at = block.at;
  PackArgs a;
  a.source = source.data(), a.stride = transposed ? K : N, a.transposed = transposed;
  a.to = block.at, a.shape = packed;
  run(products(precision).pack, a);
}

}  // namespace unspool
