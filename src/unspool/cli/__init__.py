"""The command line. `main` runs it; one module per command is imported only when that command runs."""
