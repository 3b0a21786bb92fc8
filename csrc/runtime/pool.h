// The pool of threads that runs all kernels.
#pragma once
#include <functional>

#include "runtime/team.h"

namespace unspool {

static const int MOST_THREADS = 256;

int threads();                // threads per call, the caller included
void set_threads(int count);  // 1 … 256; ends surplus workers, after a call that is under way

// Whether calls of this thread run alone from now on: they leave the pool to the other threads.
void set_alone(bool alone);

// Runs body(team) on `threads()` threads, the caller being the first; returns when all are done.
// While another Python thread uses the pool, the caller runs the body alone, with the same bits.
// `most` limits the number of threads, for small work.
void parallel(const std::function<void(Team)>& body, int most = 256);

}  // namespace unspool
