// The kernels with tiles: each thread configures its tile registers when a kernel begins, and releases them when it ends.
#pragma once
#include "engine/cells/registry-inl.h"
#include "engine/softmax-inl.h"
#include "engine/tile_check-inl.h"

namespace unspool::UNSPOOL_SET {

// Whether a product of the kernel may use tiles (see tile_product, tile_outer).
static inline bool uses_tiles(const RowsArgs& a) { return a.M >= TILE_ROWS; }
static inline bool uses_tiles(const OuterArgs& a) { return a.M >= TILE_ROWS; }
static inline bool uses_tiles(const WindowArgs& a) { return a.B >= TILE_ROWS; }
static inline bool uses_tiles(const SoftmaxArgs&) { return true; }

template <class Args, void (*kernel)(const Args&, Team)> static void with_tiles(const Args& a, Team team) {
  const Tiles tiles(uses_tiles(a));
  kernel(a, team);
}

static const int CELL_COUNT = sizeof CELLS / sizeof *CELLS;
struct CellTable { Cell cells[CELL_COUNT]; };
template <int I = 0> static constexpr void add_cells(CellTable& table) {
  if constexpr (I < CELL_COUNT) {
    table.cells[I] = CELLS[I];
    table.cells[I].forward = with_tiles<ForwardArgs, CELLS[I].forward>;
    table.cells[I].backward = with_tiles<BackwardArgs, CELLS[I].backward>;
    add_cells<I + 1>(table);
  }
}
static constexpr CellTable make_cells() {
  CellTable table{};
  add_cells(table);
  return table;
}
static constexpr CellTable TILE_CELLS = make_cells();

static constexpr void use_tiles(Products& p) {
  p.cells = TILE_CELLS.cells;
  p.rows = with_tiles<RowsArgs, rows>;
  p.outer = with_tiles<OuterArgs, outer>;
  p.softmax = with_tiles<SoftmaxArgs, softmax>;
  p.by_tiles = true;
  p.tile_products = tile_products;
}

}  // namespace unspool::UNSPOOL_SET
