"""The command line: one module a command, imported only when that command runs."""

import sys

from cyclopts import App

from unspool.errors import UnspoolError

app = App(name="unspool", help="Recurrent networks, unspooled: train, measure, look inside.")
app.command("unspool.cli.demo:demo", name="demo")
app.command("unspool.cli.stats:stats", name="stats")


def main() -> None:
    """Run the command line; our own errors become one line on standard error and exit code 2."""
    try:
        app()
    except UnspoolError as error:
        print(f"unspool: {error}", file=sys.stderr)
        sys.exit(2)
