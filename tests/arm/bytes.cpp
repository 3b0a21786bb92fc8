// Predictions of the byte model, with tables of the right shape, for a text with a network, with a network and n-grams, and without.
#include <algorithm>

#include "byte_model.h"
#include "hashes.h"

namespace unspool {

static ByteTables tables() {
  ByteTables found;
  for (int i = 0; i < 4096; i++) found.stretch.push_back(((float)i - 2047.5f) / 160.0f);
  for (int i = 0; i < 8192; i++) found.squash.push_back((uint16_t)std::clamp(8 * i, 1, 65535));
  for (uint32_t i = 0; i < 2048; i++) found.powers.push_back((1u << 30) - (i << 18));
  found.weights.assign(INPUTS, 0.15f);
  return found;
}

void hash_bytes() {
  Numbers numbers(31);
  ByteModel model(12, tables());
  Hash& hash = hash_of("byte_model");
  const std::string text = "The sea, the shells of the shore, and the sea again; \xe6\x97\xb6\xe5\x85\x89. ";
  for (int i = 0; i < 3000; i++) {
    uint64_t sums[2][257] = {};
    if (i % 3 == 1) model.set_network(numbers.floats(256, 3).data());
    if (i % 3 == 2) {
      for (auto& each : sums)
        for (int k = 0; k < 256; k++) each[k + 1] = each[k] + 1 + (uint64_t)numbers.below(1 << 20);
      model.set_sums(sums[0]);
    }
    if (i % 3 == 0) model.set_network(nullptr);
    const uint8_t byte = numbers.below(8) ? (uint8_t)text[(size_t)i % text.size()] : (uint8_t)numbers.below(256);
    for (int bit = 7; bit >= 0; bit--) {
      hash.add(model.predict());
      model.update(byte >> bit & 1);
    }
  }
}

}  // namespace unspool
