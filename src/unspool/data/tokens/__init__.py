"""Tokenizers and the vocabulary."""
