"""The arithmetic, twice under the same names: `native` (C++, float32) and `reference` (plain NumPy, float64)."""
