"""Stop a training on SIGINT, SIGTERM or a closed terminal."""

import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from unspool.cli.output import Shows, print_json
from unspool.cluster.group import current

FORWARDED = 5.0
"""Seconds in which a launcher forwards the signal that the terminal has sent to its processes as well."""


class Stop:
    """Whether a signal has come: the first lets the update finish and be saved, the second stops at once."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._now = False
        self._first, self._forwarded = 0.0, FORWARDED if current().size > 1 else 0.0
        self._terminals: list[int] = []

    def __call__(self) -> bool:
        """Return whether a signal has come."""
        return self.signal is not None

    def listen(self) -> None:
        """Handle the signals from now on, and a closed terminal, unless nohup has it ignored; only a main thread can."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._handle)
        hangup = getattr(signal, "SIGHUP", None)  # there is none on Windows
        if hangup is not None and signal.getsignal(hangup) != signal.SIG_IGN:
            self._terminals = [number for number in (1, 2) if os.isatty(number)]
            signal.signal(hangup, self._hang_up)

    def at_once(self) -> None:
        """Stop at once on the first signal from now on, also on one that has come already: nothing is left to save."""
        self._now = True
        if self.signal is not None:  # it came after the last update was reported
            raise KeyboardInterrupt

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None and time.monotonic() - self._first < self._forwarded:
            return
        now, self.signal = self._now or self.signal is not None, self.signal or number
        self._first = time.monotonic()
        if now:
            raise KeyboardInterrupt

    def _hang_up(self, number: int, frame: FrameType | None) -> None:
        """Redirect terminal output to os.devnull: writing to a closed terminal fails."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for terminal in self._terminals:
            os.dup2(nowhere, terminal)
        os.close(nowhere)
        if self.signal is None:  # the terminal and the shell may both send it
            self._handle(number, frame)

    def leave(self, out: Path, step: int | None) -> NoReturn:
        """Print after which update the run stopped and how to resume it; exit with the signal's code."""
        when = (
            "at once; the last checkpoint is complete"
            if step is None
            else f"after update {step:,}; everything is saved"
        )
        print(f"unspool: stopped {when}; resume with: unspool resume {out}", file=sys.stderr)
        sys.exit(128 + (self.signal or signal.SIGINT))


def finish_fit(content: dict[str, Any], out: Path, options: Shows, stop: Stop) -> None:
    """Print the result of a fit as JSON or, with --quiet, its folder; exit if the fit was stopped."""
    if options.json:
        print_json(content)
    elif options.quiet and "stopped" not in content:
        print(out)
    if "stopped" in content:
        stop.leave(out, content["stopped"])
