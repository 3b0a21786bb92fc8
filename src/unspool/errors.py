"""What can go wrong, in our own words.

    UnspoolError
    ├── InputError      (ValueError)   a value, a shape, an option or a text that cannot be used
    │   ├── EmptyInput                 nothing in it: an empty file, a folder without text
    │   └── UnknownArgument (TypeError)    a keyword argument that a class does not have
    ├── FileError       (OSError)      a file that cannot be read, written or trusted
    ├── MissingExtra    (ImportError)  an optional package that this needs is not installed
    ├── ProcessLost     (ConnectionError)  another process of a job does not answer
    └── Diverged        (ArithmeticError)  training left the finite numbers
    CutWarning          (UserWarning)  a window in bf16 is cut where this changes the last bits of its gradients

A message says what was wrong, what was expected and what to do, in one line.
The command line prints that line and exits with code 2. An exception that is none of these is a fault of this
program: one line with the path of a saved traceback, and exit code 70 (`unspool.cli.failures`).
"""


class UnspoolError(Exception):
    """Any error that is about the user's input and not about a fault of this program."""


class InputError(UnspoolError, ValueError):
    """A value, a shape, an option or a text that cannot be used."""


class EmptyInput(InputError):
    """There is nothing in it."""


class UnknownArgument(InputError, TypeError):
    """A keyword argument that a class does not have."""


class FileError(UnspoolError, OSError):
    """A file that cannot be read, written or trusted."""


class MissingExtra(UnspoolError, ImportError):
    """An optional package that this needs is not installed."""


class ProcessLost(UnspoolError, ConnectionError):
    """Another process of a job of torchrun or mpiexec does not answer."""


class Diverged(UnspoolError, ArithmeticError):
    """The loss or its gradient is not a finite number any more."""


class CutWarning(UserWarning):
    """A window is cut where its gradients in bf16 do not have the bits of the whole window."""
