// The tile registers of AMX: does this machine report them, and do they work?
#pragma once

namespace unspool {

// Asks the processor and the system; changes nothing. Palette 1 is assumed: leaf 0x1D of CPUID, which describes the palettes, is zero in
// some virtual machines whose tiles work.
bool reports_tiles();

// Asks the system for the tile registers, for this process and its children, and runs `right` once in a child process: an illegal
// instruction ends only the child. `right` may only compute: other threads may hold any lock.
bool tiles_work(bool (*right)());

}  // namespace unspool
