// The threads that run a kernel's body: index of this thread, number of threads, barrier.
#pragma once
#include <atomic>
#include <cstdint>

namespace unspool {

// Spins for a short while, then yields: more threads than cores is slow, but no deadlock.
struct Barrier {
  explicit Barrier(int count) : count(count), waiting(0), generation(0) {}
  void wait();  // in pool.cpp
  const int count;
  std::atomic<int> waiting;
  std::atomic<unsigned> generation;
};

struct Team {
  int index, count;
  Barrier* barrier;
};

// The part of 0 … n for thread `index` of `count`, cut at multiples of `grain`.
struct Range { int64_t begin, end; };
static inline Range partition(int64_t n, int64_t grain, int index, int count) {
  const int64_t units = (n + grain - 1) / grain;
  const int64_t begin = units * index / count * grain, end = units * (index + 1) / count * grain;
  return {begin < n ? begin : n, end < n ? end : n};
}

}  // namespace unspool
