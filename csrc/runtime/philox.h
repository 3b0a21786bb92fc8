// Counter-based random numbers.
#pragma once
#include <cstdint>

namespace unspool {

// Philox 4x32-10 (Salmon, Moraes, Dror, Shaw 2011): four random words from a counter and a key.
static inline void philox(uint32_t c[4], uint32_t k0, uint32_t k1) {
  for (int round = 0; round < 10; round++) {
    const uint64_t x = (uint64_t)0xD2511F53u * c[0], y = (uint64_t)0xCD9E8D57u * c[2];
    const uint32_t c1 = c[1], c3 = c[3];
    c[0] = (uint32_t)(y >> 32) ^ c1 ^ k0;
    c[1] = (uint32_t)y;
    c[2] = (uint32_t)(x >> 32) ^ c3 ^ k1;
    c[3] = (uint32_t)x;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

// The `index`-th number of a seed's sequence, in [0, 1).
static inline double uniform(uint64_t seed, uint64_t index) {
  uint32_t c[4] = {(uint32_t)index, (uint32_t)(index >> 32), 0u, 0x64726177u};
  philox(c, (uint32_t)seed, (uint32_t)(seed >> 32));
  const uint64_t bits = ((uint64_t)c[0] << 21) ^ (uint64_t)(c[1] >> 11);
  return (double)bits * 0x1p-53;
}

}  // namespace unspool
