"""Models that only count, and other baselines."""
