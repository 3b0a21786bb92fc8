"""The command `unspool`, and ``python -m unspool``: from here on, Ctrl-C is a line and exit code 130.

Importing the package loads nothing, so this is the first thing that happens; NumPy and the rest come after it.
"""

from unspool.cli.interrupt import leave_on_interrupt

leave_on_interrupt()

import mmap  # noqa: E402
import sys  # noqa: E402

from unspool.cli import failures  # noqa: E402

IMPORTS = 64 << 20
"""Bytes that NumPy's matrix library reserves while it is imported; it ends the process where it cannot."""

try:
    mmap.mmap(-1, IMPORTS).close()
    from unspool.cli.main import main
except BaseException as error:
    sys.exit(failures.report(*failures.ending(error)))

if __name__ == "__main__":
    sys.exit(main())
