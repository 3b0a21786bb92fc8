"""Inspect a trained network on a text: states, surprise, units, memory, the unrolled graph."""
