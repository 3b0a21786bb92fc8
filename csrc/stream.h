// One sequence, one token at a time: the state lives here, the weights are packed once.
#pragma once
#include <cstdint>
#include <vector>

#include "kernels.h"
#include "runtime/memory.h"

namespace unspool {

enum Cell : int { ELMAN = 0, LSTM = 1, GRU = 2 };
inline int64_t gates_of(int cell) { return cell == ELMAN ? 1 : cell == LSTM ? 4 : 3; }
inline int64_t taped_gates_of(int cell) { return cell == ELMAN ? 0 : 4; }

struct StreamLayer {
  int cell, activation;
  int64_t H, X;            // X: the width of its dense input
  Packed W, U;             // U.at == nullptr: the input is a row of `table`
  const float* table;
  const float* b;          // G H, with U
  const float* d;          // GRU
  Block room, h, s, p;     // gates; state before and after; b + U x
};

class Stream {
 public:
  std::vector<StreamLayer> layers;
  Packed Vt;
  const float* c = nullptr;
  int64_t K = 0, inputs = 0;  // tokens out, tokens in
  Block o, weights;
  std::vector<int32_t> order;

  void prepare();
  void step(int32_t id);                                              // reads one token: state and logits follow
  int32_t most_probable() const;                                          // -1: the logits are not numbers
  int32_t draw(float temperature, int64_t top_k, float top_p, double u);  // temperature 0: the most probable
};

double uniform(uint64_t seed, uint64_t index);  // in [0, 1), from Philox

}  // namespace unspool
