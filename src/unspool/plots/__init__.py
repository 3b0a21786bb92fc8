"""Plots in files, with matplotlib (extra ``plot``), which is imported only when a plot is drawn; an SVG writer."""
