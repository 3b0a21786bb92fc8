"""``python -m unspool``: the command line."""

from unspool.cli import main

main()
