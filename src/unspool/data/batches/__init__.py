"""Minibatches of a text, and of sequences of different lengths."""
