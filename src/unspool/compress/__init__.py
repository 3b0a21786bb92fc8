"""Lossless compression of any file with a language model, to its cross-entropy, or with one that starts from nothing."""

from typing import TYPE_CHECKING

from unspool.lazy import lazy_names

_TABLE = """
compress.codec                CompressionResult compress compress_adaptive decompress identity model_within
compress.container            Container
compress.integer_frequencies  frequencies
compress.range_coder          Decoder Encoder
"""
if not TYPE_CHECKING:  # a type checker would take any name for one that exists
    __getattr__, __dir__ = lazy_names(__name__, _TABLE)
else:
    from unspool.compress.codec import (
        CompressionResult,
        compress,
        compress_adaptive,
        decompress,
        identity,
        model_within,
    )
    from unspool.compress.container import Container
    from unspool.compress.integer_frequencies import frequencies
    from unspool.compress.range_coder import Decoder, Encoder

__all__ = [
    "CompressionResult",
    "Container",
    "Decoder",
    "Encoder",
    "compress",
    "compress_adaptive",
    "decompress",
    "frequencies",
    "identity",
    "model_within",
]
