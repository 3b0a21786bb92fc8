// Chooses between one thread and the pool for many short calls, by their times: the pool is faster where the cores are free, and many
// times slower where other processes use them. No result depends on the choice.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>

#include "runtime/pool.h"

namespace unspool {

class FasterTeam {
 public:
  // Runs body(team) once, as `parallel` does.
  template <class Body>
  void run(const Body& body) {
    const auto begin = std::chrono::steady_clock::now();
    parallel(body, uses_pool() ? MOST_THREADS : 1);
    took(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin).count());
  }

 private:
  static const int64_t TRIAL = 5, SHORTEST = 32, LONGEST = 4096;  // calls

  bool uses_pool() const { return at < TRIAL ? false : at < 2 * TRIAL || pool_wins; }

  void took(int64_t nanoseconds) {
    if (at < 2 * TRIAL) {
      if (at % TRIAL) trial[at / TRIAL] += nanoseconds;  // the first call of each fills the caches
      if (++at < 2 * TRIAL) return;
      const bool wins = trial[1] < trial[0];
      period = wins == pool_wins ? std::min(2 * period, LONGEST) : SHORTEST;
      pool_wins = wins;
      return;
    }
    const bool waited = pool_wins && nanoseconds * (TRIAL - 1) > 8 * trial[0];  // for a thread whose core is in use
    if (++at < 2 * TRIAL + period && !waited) return;
    at = trial[0] = trial[1] = 0;
  }

  int64_t at = 0;           // calls since the last trial began: TRIAL alone, TRIAL with the pool, then `period` with the faster one
  int64_t trial[2] = {};    // their nanoseconds, alone and with the pool
  int64_t period = SHORTEST;
  bool pool_wins = false;
};

}  // namespace unspool
