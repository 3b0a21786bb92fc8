"""The page that `unspool inspect` writes."""
