"""Recurrent computations as graphs: folded, unfolded, evaluated node by node, written down."""
