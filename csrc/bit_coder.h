// An arithmetic coder of bits: each bit takes its share of the interval [low, high] of 32-bit numbers.
//
//   middle = low + ⌊(high - low) p / 65536⌋      1: [low, middle]      0: [middle + 1, high]
//
// Leading bytes that low and high share are written. The end of the file stands for zeros.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace unspool {

class BitEncoder {
 public:
  std::vector<uint8_t> out;

  void put(int y, uint32_t p) {
    const uint32_t middle = low + (uint32_t)(((uint64_t)(high - low) * p) >> 16);
    if (y) high = middle;
    else low = middle + 1;
    for (; ((low ^ high) >> 24) == 0; low <<= 8, high = high << 8 | 255) out.push_back((uint8_t)(high >> 24));
  }

  // Appends the shortest number of the interval.
  void finish() {
    for (int length = 0; length <= 4; length++) {
      const uint64_t step = (uint64_t)1 << (32 - 8 * length), number = (low + step - 1) / step * step;
      if (number > high) continue;
      for (int i = 0; i < length; i++) out.push_back((uint8_t)(number >> (24 - 8 * i)));
      break;
    }
    while (!out.empty() && out.back() == 0) out.pop_back();
  }

 private:
  uint32_t low = 0, high = 0xffffffff;
};

class BitDecoder {
 public:
  explicit BitDecoder(std::vector<uint8_t> bytes) : content(std::move(bytes)) {
    for (int i = 0; i < 4; i++) number = number << 8 | next();
  }

  int take(uint32_t p) {
    const uint32_t middle = low + (uint32_t)(((uint64_t)(high - low) * p) >> 16);
    const int y = number <= middle;
    if (y) high = middle;
    else low = middle + 1;
    for (; ((low ^ high) >> 24) == 0; low <<= 8, high = high << 8 | 255) number = number << 8 | next();
    return y;
  }

 private:
  uint8_t next() { return position < content.size() ? content[position++] : 0; }

  std::vector<uint8_t> content;
  size_t position = 0;
  uint32_t low = 0, high = 0xffffffff, number = 0;
};

}  // namespace unspool
