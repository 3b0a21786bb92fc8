"""`unspool demo`: train a small character model on the help texts that every Python has."""


def demo() -> None:
    """Train a small character model on Python's own help texts and watch the loss fall."""
    print("soon")
