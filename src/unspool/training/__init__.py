"""The training loop, its state, its events, recipes and deadlines."""
