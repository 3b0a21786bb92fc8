"""Ctrl-C while modules are imported: one line and exit code 130, whatever an import does with the exception.

This module imports nothing slow: it is loaded before everything else.
"""

import os
import signal


def _leave(number: int, frame: object) -> None:
    """End the process at once: nothing has started, and no import can catch the interrupt."""
    os.write(2, b"unspool: stopped\n")
    os._exit(128 + number)


def leave_on_interrupt() -> None:
    """End the process on Ctrl-C, until `interrupt_normally` is called; not where a shell has it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def interrupt_normally() -> None:
    """Raise KeyboardInterrupt on Ctrl-C again: the modules of the command are imported."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)
