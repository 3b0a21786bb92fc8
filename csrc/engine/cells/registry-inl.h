// All cells: one line each. The tables are constants, so that no code for a newer machine runs while the module is loaded.
#pragma once
#include "engine/cells/elman-inl.h"
#include "engine/cells/gru-inl.h"
#include "engine/cells/lnlstm-inl.h"
#include "engine/cells/lstm-inl.h"

namespace unspool::UNSPOOL_SET {

static constexpr Cell CELLS[] = {
    elman_cell(),
    lstm_cell(),
    gru_cell(),
    lnlstm_cell(),
};

}  // namespace unspool::UNSPOOL_SET
