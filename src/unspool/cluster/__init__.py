"""Several processes that train one model: the sum of gradients in one fixed tree, and the bytes between processes."""
