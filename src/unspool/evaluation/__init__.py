"""Measures of a model: perplexity, classification and regression scores, forecast errors."""
