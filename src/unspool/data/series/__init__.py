"""Numbers in time: times, seasons, transformations, windows."""
