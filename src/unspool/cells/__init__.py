"""One recurrence a file."""
