// All kernels for one instruction set, or with UNSPOOL_BF16 its products in bf16, by the tiles of AMX with UNSPOOL_AMX, by VDPBF16PS with
// UNSPOOL_DOT. Compiled once for each, with UNSPOOL_SET naming the set: everything lives in that set's namespace, and nothing from the C++ library is instantiated here, so that no code built
// for a newer machine can be linked into the path of an older one.
#include "kernels.h"

#include "engine/cells/registry-inl.h"
#include "engine/softmax-inl.h"
#if !defined(UNSPOOL_BF16)
#include "engine/elementwise-inl.h"
#include "engine/optimisers/registry-inl.h"
#include "engine/peak-inl.h"
#include "engine/sample-inl.h"
#include "engine/tables-inl.h"
#endif
#if defined(UNSPOOL_AMX)
#include "engine/tile_kernels-inl.h"
#elif defined(UNSPOOL_DOT)
#include "engine/tile_check-inl.h"
#endif

namespace unspool::UNSPOOL_SET {

static constexpr Products make_products() {
  Products p{};
  p.name = UNSPOOL_NAME;
  p.cells = CELLS;
  p.cell_count = sizeof CELLS / sizeof *CELLS;
  p.pack = pack;
  p.rows = rows;
  p.outer = outer;
  p.softmax = softmax;
#if defined(UNSPOOL_BF16)
  p.pairs = PAIRS;
#endif
#if defined(UNSPOOL_AMX)
  use_tiles(p);
#elif defined(UNSPOOL_DOT)
  p.tile_products = tile_products;
#endif
  return p;
}
extern const Products products_table;
constexpr Products products_table = make_products();

#if !defined(UNSPOOL_BF16)
static constexpr Kernels make_table() {
  Kernels k{};
  k.name = UNSPOOL_NAME;
  k.optimisers = OPTIMISERS;
  k.optimiser_count = sizeof OPTIMISERS / sizeof *OPTIMISERS;
  k.column_sum = column_sum;
  k.gather = gather;
  k.scatter_add = scatter_add;
  k.norm = norm;
  k.drop = drop;
  k.scale_rows = scale_rows;
  k.shift_rows = shift_rows;
  k.activate = activate_all;
  k.exp_weights = exp_weights;
  k.log_softmax = log_softmax;
  k.fma_peak = fma_peak;
  return k;
}
extern const Kernels table;
constexpr Kernels table = make_table();
#endif

}  // namespace unspool::UNSPOOL_SET
