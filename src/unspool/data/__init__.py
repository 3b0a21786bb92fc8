"""Text and other sequences: sources, tokens, vocabulary, minibatches."""
