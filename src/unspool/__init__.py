"""Recurrent networks, unspooled: train small sequence models on a CPU, measure them, look inside."""

__version__ = "0.1.0"
