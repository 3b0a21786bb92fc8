"""Ctrl-C and a polite end of the process, while something is trained."""

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NoReturn


class Stop:
    """Ctrl-C or a polite end of the process: the update is finished and all is saved; the second is at once."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._now = False

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
        """From now on, heed the signals."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._heed)

    def at_once(self) -> None:
        """From now on there is nothing to save: the first signal is at once, also one that has come already."""
        self._now = True
        if self.signal is not None:  # it came after the last update was reported
            raise KeyboardInterrupt

    def _heed(self, number: int, frame: FrameType | None) -> None:
        now, self.signal = self._now or self.signal is not None, self.signal or number
        if now:
            raise KeyboardInterrupt

    def leave(self, out: Path, step: int | None) -> NoReturn:
        """Say after which update it was, or that it was at once, and how to go on; end as the signal would have."""
        when = (
            "at once, what was saved before is whole"
            if step is None
            else f"after update {step:,}, all is saved"
        )
        print(f"unspool: stopped {when}; go on with: unspool resume {out}", file=sys.stderr)
        sys.exit(128 + (self.signal or signal.SIGINT))
