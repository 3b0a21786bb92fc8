// One small pool of threads for everything.
#pragma once
#include <functional>

#include "runtime/team.h"

namespace unspool {

int threads();                // how many a call uses
void set_threads(int count);  // 1 … 256; ends surplus workers, after a call that is under way

// Runs body(team) on `threads()` threads, the caller being the first; returns when all are done.
// When another Python thread holds the pool, the caller does all of it alone: the bits are the same.
// `most` caps the number of threads where the work is too small to share.
void parallel(const std::function<void(Team)>& body, int most = 256);

}  // namespace unspool
