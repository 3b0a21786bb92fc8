// Sizes of the caches. They decide when W is prefetched and when threads split the hidden units: never the order of a sum.
// The sizes of tiles and blocks are constants (gemm-inl.h, kernels.h).
#pragma once
#include <cstdint>

namespace unspool {

int64_t L2_bytes();                // of one core, asked from the machine at the first call
void set_L2_bytes(int64_t bytes);  // for tests

}  // namespace unspool
