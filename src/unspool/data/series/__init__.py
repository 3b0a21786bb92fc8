"""Time series: times, seasons, transformations, windows."""
