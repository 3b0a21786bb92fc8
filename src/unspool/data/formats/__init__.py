"""Readers of data files: tables, labelled and tagged sequences, pairs, arrays, images, series."""
