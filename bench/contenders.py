"""Contenders of a benchmark: processes that compute the same step, measured alternately in short bursts.

A repetition is a burst: as many steps as fit into `seconds`, at least one; its figure is the mean of its steps. The order of the
contenders is reversed after each repetition. The best and the median over the repetitions count. A contender that crashes
or raises has the reason in place of a figure; its process is started again for the next case.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from table import Peer, serve

Case = dict[str, Any]
Figures = dict[str, Any]


class Failed(Exception):
    """A contender cannot compute a case; the message is the reason."""


class Contender:
    """A process that computes steps of one library in one precision."""

    def __init__(self, script: str, name: str) -> None:
        self.script, self.name = script, name
        self.peer = Peer(script, name)
        self.hello = self.peer.hello

    def ask(self, message: dict[str, Any]) -> Any:
        """Send a message, return its answer; raise `Failed` with the signal or the error."""
        answer = self.peer.measure(message)
        if answer is None:
            reason = self.peer.ending()
            self.peer = Peer(self.script, self.name)
            raise Failed(reason)
        if isinstance(answer, dict) and "failed" in answer:
            raise Failed(answer["failed"])
        return answer

    def close(self) -> None:
        """End the process."""
        self.peer.close()


def serve_steps(hello: Any, make_step: Callable[[Case], Any]) -> None:
    """Run as a contender: make the step of a case, then answer with the mean seconds of bursts of it."""
    current: dict[str, Any] = {}

    def answer(message: dict[str, Any]) -> Any:
        try:
            if "case" in message:
                current.clear()
                current["step"] = make_step(message["case"])
                current["step"]()
                return _mean(current["step"], 1)
            if message.get("profile"):
                return _profile(current["step"], message["steps"])
            if message["warm_up"]:
                current["step"]()
            return _mean(current["step"], message["steps"])
        except Exception as error:
            return {"failed": f"{type(error).__name__}: {error}".splitlines()[0]}

    serve(hello, answer)


def _mean(step: Callable[[], None], steps: int) -> float:
    begin = time.perf_counter()
    for _ in range(steps):
        step()
    return (time.perf_counter() - begin) / steps


def _profile(step: Any, steps: int) -> dict[str, float]:
    """Return the mean seconds of each part of a step."""
    step()
    spent: dict[str, float] = {}
    for _ in range(steps):
        last = time.perf_counter()
        for part in step.parts():
            now = time.perf_counter()
            spent[part] = spent.get(part, 0.0) + (now - last) / steps
            last = time.perf_counter()
    return spent


def start(script: str, names: Iterable[str]) -> list[Contender]:
    """Start the processes; leave out those whose library is not installed, with a line that says so."""
    found = []
    for name in names:
        contender = Contender(script, name)
        if contender.hello is None:
            print(f"{name}: not measured, its library is not installed", file=sys.stderr)
        else:
            found.append(contender)
    return found


def measure(
    contenders: list[Contender], case: Case, *, rounds: int, seconds: float, profile: bool = False
) -> tuple[dict[str, list[Any]], dict[str, str]]:
    """Measure one case; return by contender the figure of each repetition, and the reasons of those that failed."""
    steps: dict[str, int] = {}
    found: dict[str, list[Any]] = {}
    failed: dict[str, str] = {}
    for turn in range(-1, rounds):
        for contender in contenders[::-1] if turn > 0 and turn % 2 else contenders:
            name = contender.name
            try:
                if turn < 0:
                    steps[name] = max(1, math.ceil(seconds / contender.ask({"case": case})))
                    found[name] = []
                elif name not in failed:
                    n = steps[name]
                    found[name].append(contender.ask({"steps": n, "warm_up": n > 1, "profile": profile}))
            except Failed as reason:
                failed[name] = str(reason)
                found.pop(name, None)
    return found, failed


def best_and_median(seconds: list[float]) -> Figures:
    """Return the best and the median of repetitions, in milliseconds."""
    return {"best": min(seconds) * 1e3, "median": statistics.median(seconds) * 1e3}


def with_time_left(cases: list[Case], weight: Callable[[Case], float]) -> Iterator[Case]:
    """Yield the cases; print on standard error how many are done and the time left, by their expected cost."""
    total, done, begin = sum(map(weight, cases)), 0.0, time.perf_counter()
    for i, case in enumerate(cases):
        spent = time.perf_counter() - begin
        left = f", {spent / done * (total - done) / 60:.1f} min left" if done else ""
        print(f"\rcase {i + 1} of {len(cases)}{left}      ", end="", file=sys.stderr, flush=True)
        yield case
        done += weight(case)
    print(f"\r{len(cases)} cases in {(time.perf_counter() - begin) / 60:.1f} min      ", file=sys.stderr)
