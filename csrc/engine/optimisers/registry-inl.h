// All optimisers: one line each.
#pragma once
#include "engine/optimisers/adam-inl.h"
#include "engine/optimisers/rmsprop-inl.h"
#include "engine/optimisers/sgd-inl.h"

namespace unspool::UNSPOOL_SET {

static constexpr Optimiser OPTIMISERS[] = {
    adam_optimiser(),
    rmsprop_optimiser(),
    sgd_optimiser(),
};

}  // namespace unspool::UNSPOOL_SET
