// All kernels for one instruction set. Compiled once for each, with UNSPOOL_SET naming the set: everything
// lives in that set's namespace, and nothing from the C++ library is instantiated here, so that no code built
// for a newer machine can be linked into the path of an older one.
#include "kernels.h"

#include "engine/cells/registry-inl.h"
#include "engine/elementwise-inl.h"
#include "engine/optimisers/registry-inl.h"
#include "engine/peak-inl.h"
#include "engine/softmax-inl.h"

#define UNSPOOL_TEXT_(x) #x
#define UNSPOOL_TEXT(x) UNSPOOL_TEXT_(x)

namespace unspool::UNSPOOL_SET {

extern const Kernels table;
const Kernels table = {UNSPOOL_TEXT(UNSPOOL_SET),
                       CELLS, sizeof CELLS / sizeof *CELLS, OPTIMISERS, sizeof OPTIMISERS / sizeof *OPTIMISERS,
                       pack, rows, outer, column_sum, gather, scatter_add,
                       softmax, norm, drop, scale_rows, shift_rows, activate_all, weigh, fma_peak};

}  // namespace unspool::UNSPOOL_SET
