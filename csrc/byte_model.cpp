#include "byte_model.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace unspool {
namespace {

constexpr uint64_t MULTIPLIER = 0x9E3779B97F4A7C15ull, SECOND = 0xD6E8FEB86659FD93ull;
constexpr int PRECISION = 22;              // bits of an adaptive probability
constexpr uint32_t LIMIT = 1023;           // of the number of its updates
constexpr float FIRST_RATE = 0.02f, LAST_RATE = 0.002f, HORIZON = 4000.0f;  // of the mixer: first · horizon / (horizon + bits)
constexpr float OUTER_RATE = 0.0015f;      // of the second mixer
constexpr float BOUND = 15.99f;            // of s
constexpr size_t SET_SIZES[SETS] = {256, 256, COUNTERS * 8, 32 * 8, (ORDERS + 1) * 16};

// 65536 / (n + 3/2): the share of the update that follows n others.
struct Shares {
  int64_t of[LIMIT + 1];
  constexpr Shares() : of() {
    for (int n = 0; n <= (int)LIMIT; n++) of[n] = 131072 / (2 * n + 3);
  }
};
constexpr Shares SHARES;

uint64_t hashed(uint64_t value, uint64_t salt) {
  uint64_t h = (value + salt * SECOND) * MULTIPLIER;
  h ^= h >> 29;
  return h * SECOND;
}

float bounded(float x) { return std::min(std::max(x, -BOUND), BOUND); }

void adapt(Adaptive& a, int y) {
  const int64_t target = y ? (1 << PRECISION) - 1 : 0;
  a.p = (uint32_t)((int64_t)a.p + (((target - (int64_t)a.p) * SHARES.of[a.n]) >> 16));
  if (a.n < LIMIT) a.n++;
}

void adapt(uint16_t& p, int y) { p = (uint16_t)((int)p + (((y ? 65535 : 0) - (int)p) >> 4)); }

Adaptive laplace(uint32_t ones, uint32_t all) { return {(uint32_t)(((uint64_t)(2 * ones + 1) << PRECISION) / (2 * all + 2)), 0}; }

// The counts of zeros and ones that a history can have: with a smaller count i, the larger is at most MOST[i].
constexpr int MOST[] = {41, 20, 11, 7, 5};

struct Counts {
  int n[2], last;  // last: the last bit
  bool operator==(const Counts& o) const { return n[0] == o.n[0] && n[1] == o.n[1] && last == o.last; }
};

std::vector<Counts> all_counts() {
  std::vector<Counts> found{{{0, 0}, 0}};
  for (int total = 1; total <= MOST[0]; total++)
    for (int n0 = 0; n0 <= total; n0++) {
      const int n1 = total - n0, less = std::min(n0, n1), more = std::max(n0, n1);
      if (less > 4 || more > MOST[less]) continue;
      for (int last = 0; last < 2; last++)
        if ((last ? n1 : n0) > 0) found.push_back({{n0, n1}, last});
    }
  return found;
}

// One more of y. Of the others, half of those above two are forgotten: what is recent counts more.
Counts after(const Counts& counts, int y) {
  int a = counts.n[y] + 1, b = counts.n[1 - y];
  if (b > 2) b = 2 + (b - 2) / 2;
  int& less = a < b ? a : b;
  int& more = a < b ? b : a;
  less = std::min(less, 4);
  more = std::min(more, MOST[less]);
  Counts next{};
  next.n[y] = a, next.n[1 - y] = b, next.last = y;
  return next;
}

}  // namespace

ByteModel::ByteModel(int bits, ByteTables tables)
    : tables(std::move(tables)), bits(bits), buckets((size_t)1 << bits, Bucket{}), next_counts(512), positions((size_t)1 << MATCH_BITS),
      by_length(COUNTERS * 2, laplace(0, 0)), order0(256, 32768), order1(65536, 32768), last_weights(256 * SETS, 0.2f), network(257), ngrams(257) {
  std::vector<Counts> counts = all_counts();
  for (size_t i = 0; i < counts.size(); i++)
    for (int y = 0; y < 2; y++)
      next_counts[2 * i + y] = (uint8_t)(std::find(counts.begin(), counts.end(), after(counts[i], y)) - counts.begin());
  counts.resize(256);
  for (int context = 0; context < CONTEXTS; context++)
    for (uint32_t i = 0; i < 256; i++) {
      by_counts.push_back(laplace(counts[i].n[1], counts[i].n[0] + counts[i].n[1]));
      uint32_t ones = 0, all = 0;
      for (uint32_t rest = i; rest > 1; rest >>= 1) ones += rest & 1, all++;
      by_last.push_back(laplace(ones, all));
    }
  for (int set = 0; set < SETS; set++)
    for (size_t i = 0; i < SET_SIZES[set]; i++) weights[set].insert(weights[set].end(), this->tables.weights.begin(), this->tables.weights.end());
  for (auto& refinement : refinements) {
    for (int i = 0; i < KNOTS; i++) refinement.push_back((uint16_t)squash((float)(i - 16)));
    refinement.resize((size_t)65536 * KNOTS);
    for (size_t i = KNOTS; i < refinement.size(); i += KNOTS) std::memcpy(&refinement[i], &refinement[0], KNOTS * 2);
  }
  start_byte();
}

uint32_t ByteModel::squash(float value) const { return tables.squash[(int)((bounded(value) + 16.0f) * 256.0f)]; }

// The integer frequencies of `unspool.compress.integer_frequencies`, summed up.
void ByteModel::set_network(const float* o__K) {
  with_network = o__K != nullptr, with_ngrams = false;
  if (!with_network) return;
  double top = o__K[0];
  for (int k = 1; k < 256; k++) top = std::max(top, (double)o__K[k]);
  network[0] = 0;
  for (int k = 0; k < 256; k++) {
    const double steps = (top - (double)o__K[k]) * 2954.639443740597;  // 2048 / ln 2
    const uint32_t d = steps < 63488.0 ? (uint32_t)steps : 63488;
    network[k + 1] = network[k] + 1 + (tables.powers[d & 2047] >> (d >> 11));
  }
}

void ByteModel::set_sums(const uint64_t* sums) {
  with_network = true, with_ngrams = sums[2 * 257 - 1] > 0;
  std::copy(sums, sums + 257, network.begin());
  std::copy(sums + 257, sums + 2 * 257, ngrams.begin());
}

// P(the next bit is 1) · 65536 by a distribution of the byte, below 65536: every frequency is at least 1.
uint32_t ByteModel::share_of_ones(const std::vector<uint64_t>& sums) const {
  const uint32_t begin = (partial << (8 - bit)) & 255, middle = begin + (128u >> bit), end = begin + (256u >> bit);
  return (uint32_t)(((sums[end] - sums[middle]) << 16) / (sums[end] - sums[begin]));
}

// Of four neighbours: the one with this check, or else the one whose first node has the lowest counts, emptied.
Bucket& ByteModel::bucket(uint64_t hash) {
  const uint64_t index = hash >> (64 - bits);
  const uint16_t check = (uint16_t)(hash >> 8);
  Bucket* lowest = nullptr;
  for (uint64_t i = 0; i < 4; i++) {
    Bucket& each = buckets[index ^ i];
    if (each.check == check && each.nodes[0][1]) return each;
    if (!lowest || each.nodes[0][0] < lowest->nodes[0][0]) lowest = &each;
  }
  *lowest = Bucket{};
  lowest->check = check;
  return *lowest;
}

void ByteModel::find_buckets() {
  for (int i = 0; i < CONTEXTS; i++) at[i] = &bucket(bit == 0 ? hashes[i] : hashed(hashes[i] + partial, 77));
}

void ByteModel::find_match() {
  const uint32_t n = (uint32_t)history.size();
  if (match_length && history[match_at] == history[n - 1]) {
    match_at++;
    match_length = std::min(match_length + 1, 65535u);
  } else {
    match_length = 0;
  }
  if (n < MATCH_LEAST) return;
  uint32_t& position = positions[hashed(recent << 24, 99) >> (64 - MATCH_BITS)];
  if (!match_length && position) {
    match_at = position;
    while (match_length < std::min(match_at, 40u) && history[match_at - 1 - match_length] == history[n - 1 - match_length]) match_length++;
  }
  position = n;
}

void ByteModel::start_byte() {
  const uint64_t in_word = word ? word : recent & 255;
  int i = 0;
  for (int n : {1, 2, 3, 4, 5, 6, 8}) hashes[i++] = hashed(recent & (~(uint64_t)0 >> (64 - 8 * n)), (uint64_t)n);
  hashes[i++] = hashed(in_word, 20);
  hashes[i++] = hashed(in_word, word_before + 21);
  hashes[i++] = hashed(word + (recent & 255), 22);
  hashes[i++] = hashed(recent & 0xffff00, 23);
  hashes[i++] = hashed(recent & 0xffff0000, 24);
  hashes[i++] = hashed(recent & 0xf0f0f0f0ff, 25);
  if (match_length) predicted = history[match_at] | 256;
  find_buckets();
}

uint32_t ByteModel::predict() {
  std::memset(x, 0, sizeof x);
  const uint32_t level = 1u << (bit & 3), index = level - 1 + (partial & (level - 1));
  const uint32_t c1 = (uint32_t)(recent & 255);
  uint32_t order = 0;  // the number of orders that have been here
  float* in = x;
  for (int i = 0; i < CONTEXTS; i++, in += 2) {
    node[i] = at[i]->nodes[index];
    maps[i][0] = &by_counts[i * 256 + node[i][0]];
    maps[i][1] = &by_last[i * 256 + node[i][1]];
    if (!node[i][1]) continue;
    if (i < ORDERS) order = i + 1;
    in[0] = stretch(*maps[i][0]);
    in[1] = stretch(*maps[i][1]);
  }
  *in++ = stretch(order0[partial]);
  *in++ = stretch(order1[c1 * 256 + partial]);
  const bool match = match_length && (predicted >> (8 - bit)) == partial;
  const uint32_t length = !match ? 0 : match_length < 16 ? match_length : std::min(15 + match_length / 16, COUNTERS - 1u);
  match_map = match ? &by_length[2 * length + (predicted >> (7 - bit) & 1)] : nullptr;
  if (match) *in = stretch(*match_map);
  in++;
  uint32_t sure = 0;
  if (with_network) {
    *in = stretch(share_of_ones(network));
    sure = 1 + (uint32_t)std::min(std::max(*in * 1.5f + 15.0f, 0.0f), 30.0f);
  }
  in++;
  *in++ = 0.5f;
  if (with_ngrams) *in = stretch(share_of_ones(ngrams));
  const size_t choices[SETS] = {partial, c1, length * 8 + bit, sure * 8 + bit, (order * 8 + bit) * 2 + (word != 0)};
  for (int set = 0; set < SETS; set++) chosen[set] = &weights[set][choices[set] * INPUTS];
  mix();
  return final_p;
}

void ByteModel::mix() {
  for (int set = 0; set < SETS; set++) {
    float sums[8] = {};
    const float* w = chosen[set];
    for (int i = 0; i < INPUTS; i += 8)
      for (int j = 0; j < 8; j++) sums[j] += w[i + j] * x[i + j];
    const float dot = ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
    hidden[set] = bounded(dot);
    hidden_p[set] = squash(dot);
  }
  chosen_last = &last_weights[partial * SETS];
  float dot = 0.0f;
  for (int set = 0; set < SETS; set++) dot += chosen_last[set] * hidden[set];
  mixed = squash(dot);
  const float place = bounded(dot) + 16.0f;
  const int low = (int)place;
  const uint32_t share = (uint32_t)((place - (float)low) * 4096.0f);
  const uint64_t contexts[REFINEMENTS] = {(recent & 255) << 8 | partial, hashed((recent & 0xffffff) << 8 | partial, 5) >> 48};
  uint32_t sum = 2 * mixed;
  for (int k = 0; k < REFINEMENTS; k++) {
    uint16_t* row = &refinements[k][contexts[k] * KNOTS + low];
    sum += (row[0] * (4096 - share) + row[1] * share) >> 12;
    refined[k] = row + (share >= 2048);
  }
  final_p = std::min(std::max(sum / 4, 1u), 65535u);
}

void ByteModel::update(int y) {
  const float target = (float)y, rate = std::max(LAST_RATE, FIRST_RATE * HORIZON / (HORIZON + (float)++steps));
  const float outer = OUTER_RATE * (target - (float)mixed * (1.0f / 65536.0f));
  for (int set = 0; set < SETS; set++) {
    const float step = rate * (target - (float)hidden_p[set] * (1.0f / 65536.0f));
    float* w = chosen[set];
    for (int i = 0; i < INPUTS; i++) w[i] += step * x[i];
    chosen_last[set] += outer * hidden[set];
  }
  for (uint16_t* p : refined) adapt(*p, y);
  for (int i = 0; i < CONTEXTS; i++) {
    adapt(*maps[i][0], y);
    adapt(*maps[i][1], y);
    const uint32_t last = std::max<uint32_t>(node[i][1], 1) << 1 | (uint32_t)y;
    node[i][0] = next_counts[2 * node[i][0] + y];
    node[i][1] = (uint8_t)(last < 256 ? last : (last & 127) | 128);
  }
  adapt(order0[partial], y);
  adapt(order1[(recent & 255) * 256 + partial], y);
  if (match_map) adapt(*match_map, y);
  partial = partial << 1 | (uint32_t)y;
  if (++bit == 8) end_byte();
  else if (bit == 4) find_buckets();
}

void ByteModel::end_byte() {
  const uint8_t byte = (uint8_t)partial, lower = byte >= 'A' && byte <= 'Z' ? byte + 32 : byte;
  history.push_back(byte);
  recent = recent << 8 | byte;
  if ((lower >= 'a' && lower <= 'z') || byte >= 128) word = hashed(word + lower, 30);
  else if (word) word_before = word, word = 0;
  partial = 1, bit = 0;
  find_match();
  start_byte();
}

}  // namespace unspool
