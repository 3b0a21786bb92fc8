// Predicts the next bit of a file from counts of what followed in the part that was already read: contexts of each byte look
// up histories of bits, adaptive maps turn histories into probabilities, and a mixer that learns online adds them in the
// logistic domain, beside the distribution of a network if there is one.
//
//   s(p) = log2(p / (1 - p))      p = 1 / (1 + 2^-Σ w s)      w ← w + η (y - p) s
//
// All results are the same on every machine: integers, and float32 additions, multiplications and one division in a fixed order. The
// tables come from Python, which computes them with integers. `unspool.kernels.reference_bytes` is the same in Python.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace unspool {

struct ByteTables {
  std::vector<float> stretch;    // 4096: s of p = (i + 1/2) / 4096
  std::vector<uint16_t> squash;  // 8192: 65536 / (1 + 2^-x) of x = (i - 4096) / 256
  std::vector<uint32_t> powers;  // 2048: 2^30 2^(-i / 2048)
  std::vector<float> weights;    // INPUTS: the mixer's weights at the start
};

constexpr int CONTEXTS = 13;
constexpr int ORDERS = 7;        // the first contexts: the last 1, 2, 3, 4, 5, 6, 8 bytes
constexpr int INPUTS = 32;       // of the mixer: two per context, orders 0 and 1 without a history, match, network, bias, n-grams
constexpr int SETS = 5;          // weight vectors that are chosen by a small context each; a second mixer adds their outputs
constexpr int REFINEMENTS = 2;   // maps that correct the final probability
constexpr int KNOTS = 33;        // of each: at s = -16, -15 … 16
constexpr int MATCH_BITS = 18;   // log2 of the entries of the match model
constexpr int MATCH_LEAST = 5;   // bytes of a match
constexpr int COUNTERS = 32;     // lengths of a match that are distinguished

// The histories of the bits of half a byte after one context, for each node of the tree of four bits: a pair of counts
// as an index, and the last seven bits after a leading one (0: never reached).
struct Bucket {
  uint16_t check;
  uint8_t nodes[15][2];
};

struct Adaptive {  // a probability that adapts by 1 / (n + 3/2)
  uint32_t p, n;   // P(1) · 2^22; the number of updates up to a limit
};

class ByteModel {
 public:
  ByteModel(int bits, ByteTables tables);  // 2^bits buckets
  void set_network(const float* o__K);     // the network's logits of the next byte, 256; nullptr: no network
  void set_sums(const uint64_t* sums);     // cumulative frequencies of the next byte, 257 of a network and 257 of n-grams (all 0: none)
  uint32_t predict();                      // P(the next bit is 1) · 65536, from 1 to 65535
  void update(int y);

 private:
  void start_byte();
  void find_buckets();
  void find_match();
  void mix();
  void end_byte();
  Bucket& bucket(uint64_t hash);
  float stretch(uint32_t p) const { return tables.stretch[p >> 4]; }
  float stretch(const Adaptive& map) const { return tables.stretch[map.p >> 10]; }
  uint32_t squash(float x) const;
  uint32_t share_of_ones(const std::vector<uint64_t>& sums) const;

  ByteTables tables;
  int bits;
  std::vector<Bucket> buckets;
  std::vector<uint8_t> next_counts;          // [256][2]
  std::vector<uint8_t> history;              // all bytes so far
  std::vector<uint32_t> positions;           // hash of the last bytes -> the position after them; 0: none
  std::vector<Adaptive> by_counts, by_last;  // [CONTEXTS][256]
  std::vector<Adaptive> by_length;           // [COUNTERS][2]: P(1) by length of the match and predicted bit
  std::vector<uint16_t> order0, order1;
  std::vector<float> weights[SETS], last_weights;
  std::vector<uint16_t> refinements[REFINEMENTS];
  std::vector<uint64_t> network, ngrams;  // cumulative frequencies of the bytes, 257
  bool with_network = false, with_ngrams = false;

  uint64_t recent = 0, word = 0, word_before = 0;  // the last eight bytes; hashes of the last two words
  uint32_t partial = 1, bit = 0;                   // the bits of the current byte after a leading one; their number
  uint64_t hashes[CONTEXTS] = {};
  Bucket* at[CONTEXTS] = {};
  uint32_t match_at = 0, match_length = 0, predicted = 0;
  uint64_t steps = 0;

  // of the current bit
  uint8_t* node[CONTEXTS] = {};
  Adaptive* maps[CONTEXTS][2] = {};
  Adaptive* match_map = nullptr;
  alignas(16) float x[INPUTS] = {};
  float* chosen[SETS] = {};
  float* chosen_last = nullptr;
  float hidden[SETS] = {};
  uint32_t hidden_p[SETS] = {}, mixed = 0, final_p = 0;
  uint16_t* refined[REFINEMENTS] = {};
};

}  // namespace unspool
