"""Gradients through time: backpropagate, truncation; check, decomposition, by_lag, jacobians, linear, per_sample."""
