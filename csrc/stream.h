// One sequence, one token at a time: holds the state and the packed weights.
#pragma once
#include <cstdint>
#include <vector>

#include "kernels.h"
#include "runtime/faster_team.h"
#include "runtime/memory.h"

namespace unspool {

struct StreamLayer {
  int cell, activation;    // cell: its position in the table
  int64_t H, P, X;         // units; columns of p; columns of the dense input
  Packed W, U;
  const float* table;      // nullptr: the input is the layer below
  const float* b;          // P values, with U
  Parameter parameters[MAX_PARAMETERS];
  Block tape, h, s, p;     // of one step; state before and after; b + U x
};

// How a token is drawn from logits; the steps are applied in this order.
struct Drawing {
  const bool* seen__K = nullptr;  // tokens whose logits are penalised; nullptr: none
  float penalty = 1.0f;           // o / penalty if o > 0, else o · penalty
  float temperature = 1.0f;       // 0: the most probable
  int64_t top_k = 0;              // 0: all
  float top_p = 1.0f;             // 1: all
  float min_p = 0.0f;             // 0: all
};

// A cluster of tokens of an adaptive softmax: o = log P(cluster) + log softmax(c + V P h).
struct StreamTail {
  Packed Pt, Vt;  // in float32, also where the rest is in bf16
  const float* c;
  Block z;  // P h
};

class Stream {
 public:
  std::vector<StreamLayer> layers;
  Packed Vt;                      // with tails: of the head, whose last rows stand for the clusters
  std::vector<StreamTail> tails;  // none: o = c + V h
  const float* c = nullptr;
  int64_t K = 0, inputs = 0;  // tokens out, tokens in
  Block o, head, weights, rounded, penalised_o;
  int64_t rounded_floats = 0;  // of each thread
  std::vector<int32_t> order;

  void prepare();
  void step(int32_t id);                       // reads one token: updates state and logits
  int32_t draw(const Drawing& how, double u);  // -1: a logit is NaN

 private:
  FasterTeam faster;  // of the large layers
  void compute_logits(const float* h);
  const float* penalised(const Drawing& how);
  int32_t most_probable(const float* logits) const;  // -1: a logit is NaN
};

}  // namespace unspool
