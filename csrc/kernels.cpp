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

static constexpr Kernels make_table() {
  Kernels k{};
  k.name = UNSPOOL_TEXT(UNSPOOL_SET);
  k.cells = CELLS;
  k.cell_count = sizeof CELLS / sizeof *CELLS;
  k.optimisers = OPTIMISERS;
  k.optimiser_count = sizeof OPTIMISERS / sizeof *OPTIMISERS;
  k.pack = pack;
  k.rows = rows;
  k.outer = outer;
  k.column_sum = column_sum;
  k.gather = gather;
  k.scatter_add = scatter_add;
  k.softmax = softmax;
  k.norm = norm;
  k.drop = drop;
  k.scale_rows = scale_rows;
  k.shift_rows = shift_rows;
  k.activate = activate_all;
  k.exp_weights = exp_weights;
  k.fma_peak = fma_peak;
  return k;
}
extern const Kernels table;
constexpr Kernels table = make_table();

}  // namespace unspool::UNSPOOL_SET
