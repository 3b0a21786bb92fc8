"""Ctrl-C, a polite end of the process and a closed terminal, while something is trained."""

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NoReturn


class Stop:
    """A signal to stop: the update is finished and all is saved; the second is at once."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._now = False
        self._terminals: list[int] = []

    def __call__(self) -> bool:
        """Say whether a stop was asked for."""
        return self.signal is not None

    def heeded(self, told: Callable[[int, int], None]) -> Callable[[int, int], None]:
        """While a model is judged there is nothing to save: a stop is at once."""

        def hear(done: int, of: int) -> None:
            if self():
                raise KeyboardInterrupt
            told(done, of)

        return hear

    def listen(self) -> None:
        """Handle the signals from now on, and a closed terminal, unless nohup has it ignored; only a main thread can."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._heed)
        hangup = getattr(signal, "SIGHUP", None)  # there is none on Windows
        if hangup is not None and signal.getsignal(hangup) != signal.SIG_IGN:
            self._terminals = [number for number in (1, 2) if os.isatty(number)]
            signal.signal(hangup, self._hang_up)

    def at_once(self) -> None:
        """From now on there is nothing to save: the first signal is at once, also one that has come already."""
        self._now = True
        if self.signal is not None:  # it came after the last update was reported
            raise KeyboardInterrupt

    def _heed(self, number: int, frame: FrameType | None) -> None:
        now, self.signal = self._now or self.signal is not None, self.signal or number
        if now:
            raise KeyboardInterrupt

    def _hang_up(self, number: int, frame: FrameType | None) -> None:
        """Say what is still to be said to nobody: writing to a terminal that is closed is an error."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for terminal in self._terminals:
            os.dup2(nowhere, terminal)
        os.close(nowhere)
        if self.signal is None:  # the terminal and the shell may both tell of it
            self._heed(number, frame)

    def leave(self, out: Path, step: int | None) -> NoReturn:
        """Say after which update it was, or that it was at once, and how to go on; end as the signal would have."""
        when = (
            "at once, what was saved before is whole"
            if step is None
            else f"after update {step:,}, all is saved"
        )
        print(f"unspool: stopped {when}; go on with: unspool resume {out}", file=sys.stderr)
        sys.exit(128 + (self.signal or signal.SIGINT))
