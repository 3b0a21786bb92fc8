"""Recurrent computations as graphs: folded, unfolded, evaluated node by node, drawn and exported."""
