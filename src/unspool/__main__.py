"""The command `unspool`, and ``python -m unspool``: from here on, Ctrl-C is a line and exit code 130.

Importing the package loads nothing, so this is the first thing that happens; NumPy and the rest come after it.
"""

import os
import signal
import sys

IMPORTS = 64 << 20
"""Bytes that NumPy's matrix library reserves while it is imported; it ends the process where it cannot."""


def _leave(number: int, frame: object) -> None:
    """End at once: nothing has begun, and no import on the way can take the interrupt for its own."""
    os.write(2, b"unspool: stopped\n")
    os._exit(128 + number)


_heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not where a shell has it ignored
if _heeded:
    signal.signal(signal.SIGINT, _leave)

import mmap  # noqa: E402

from unspool.cli import failures  # noqa: E402

try:
    mmap.mmap(-1, IMPORTS).close()
    from unspool.cli.main import main
except BaseException as error:
    sys.exit(failures.report(*failures.ending(error)))

if _heeded:
    signal.signal(signal.SIGINT, signal.default_int_handler)

if __name__ == "__main__":
    sys.exit(main())
