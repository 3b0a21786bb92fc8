"""The processes that train one model: rank 0 leads, the others follow its messages and take part in every sum.

    rank 0                                       rank p > 0
    lead(update, rows of p)  ───────────────▶    follow()
    gradients of its shards                      gradients of its shards
    add_up                   ◀──────────────▶    add_up          slices: all to all, local tree, all to everyone

While rank 0 does something else, a thread sends a message of kind "tick" now and then: a process that receives nothing
for `timeout` seconds reports that rank 0 is lost.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from statistics import median
from typing import Any

import numpy as np

from unspool.cluster.message import Message
from unspool.cluster.transport import Alone, Bytes, Transport
from unspool.cluster.tree import Node, nodes_inside, postorder, shards_of
from unspool.errors import InputError, ProcessLost
from unspool.kernels.arrays import Floats

TIMEOUT = 60.0
"""Seconds without an answer after which a process counts as lost; `UNSPOOL_CLUSTER_TIMEOUT` sets another number."""
TICK, END, UPDATE, MEASURE = "tick", "end", "update", "measure"
NOTE = 24
"""Bytes of a note about a shard."""
LINE = 16
"""Slices begin at multiples of so many values."""
NOTHING = np.empty(0, np.uint8)


def timeout() -> float:
    """Return the seconds without an answer after which a process counts as lost."""
    text = os.environ.get("UNSPOOL_CLUSTER_TIMEOUT", str(TIMEOUT))
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds <= 86400:
        raise InputError(f"UNSPOOL_CLUSTER_TIMEOUT is {text!r}; expected a number of seconds from 1 to 86400")
    return seconds


class Group:
    """The processes of a job, over a transport."""

    def __init__(self, transport: Transport, patience: float = TIMEOUT) -> None:
        self.transport, self.rank, self.size = transport, transport.rank, transport.size
        self.lost = False
        """Whether a process did not answer: nothing can be sent any more."""
        self.interrupted = False
        """Whether a process that follows has received a signal to stop."""
        self.patience = patience
        self._lock, self._last = threading.RLock(), time.monotonic()
        self._room, self._reason = [0] * self.size, ""
        self._closed = threading.Event()
        self.computing = self.talking = 0.0
        """Seconds of gradients, and of sums over the processes, for a measurement."""
        self.cost: Any = None
        """What an update was measured to cost, a `unspool.cluster.cost.Cost`; None before."""
        if self.size > 1 and self.rank == 0:
            threading.Thread(target=self._tick, daemon=True, name="unspool-cluster").start()

    @contextmanager
    def conversation(self) -> Iterator[None]:
        """Keep the transport for calls that belong together; note where a process is lost."""
        with self._lock:
            if self.lost:
                raise ProcessLost(self._reason)
            try:
                yield
            except ProcessLost as error:
                if self.lost:  # a call inside of another one has noted it
                    raise
                self.lost = True
                self._reason = (
                    f"rank {self.rank} of {self.size} lost another process ({error}); start the job again to resume the run "
                    f"from its last checkpoint (if an update takes longer than {self.patience:g} s, set UNSPOOL_CLUSTER_TIMEOUT)"
                )
                raise ProcessLost(self._reason) from None
            finally:
                self._last = time.monotonic()

    def lead(self, messages: Sequence[Message]) -> None:
        """Send each other process its message: rank p gets messages[p - 1]. All messages have the same kind."""
        bodies = [NOTHING, *(message.to_bytes() for message in messages)]
        with self.conversation():
            late = any(len(body) > room for body, room in zip(bodies, self._room, strict=True))
            frames = [_frame(body, room, late) for body, room in zip(bodies, self._room, strict=True)]
            self.transport.exchange([NOTHING, *frames[1:]], [0] * self.size)
            if late:
                self.transport.exchange(bodies, [0] * self.size)
            if messages[0].kind == UPDATE:
                self._room = [max(len(body), room) for body, room in zip(bodies, self._room, strict=True)]

    def tell_all(self, message: Message) -> None:
        """Send every other process the same message."""
        if self.size > 1:
            self.lead([message] * (self.size - 1))

    def follow(self) -> Message:
        """Return the next message of rank 0 that is not a tick."""
        while True:
            with self.conversation():
                room = self._room[self.rank]
                frame = self._from_first(16 + room)
                length, late = frame[:16].view(np.int64).tolist()
                body = self._from_first(length) if late else frame[16 : 16 + length]
                message = Message.from_bytes(body)
                if message.kind == UPDATE:
                    self._room[self.rank] = max(length, room)
            if message.kind == MEASURE:
                self._measure(**message.values)
            elif message.kind != TICK:
                return message

    def add_up(self, S: int, sums: Sequence[Floats], note: Bytes) -> tuple[Floats, list[Bytes]]:
        """Return the sum over all S shards, and the notes of all processes; `sums` are those of the own nodes.

        A note has `NOTE` bytes for each shard of its process. Process p adds up slice p of the vectors, and gives it to everyone.
        """
        count = len(sums[0])
        width = -(-count // (self.size * LINE)) * LINE
        cuts = [slice(min(p * width, count), min((p + 1) * width, count)) for p in range(self.size)]
        own, nodes = cuts[self.rank], [nodes_inside(shards_of(p, self.size, S), S) for p in range(self.size)]
        length = own.stop - own.start
        parts = [
            np.concatenate([note, *(each[cut].view(np.uint8) for each in sums if p != self.rank)])
            for p, cut in enumerate(cuts)
        ]
        sizes = [
            NOTE * len(shards_of(p, self.size, S)) + (4 * length * len(nodes[p]) if p != self.rank else 0)
            for p in range(self.size)
        ]
        start = time.perf_counter()
        with self.conversation():
            received = self.transport.exchange(parts, sizes)
            notes, known = list[Bytes](), dict[Node, Floats]()
            for p, content in enumerate(received):
                ahead = NOTE * len(shards_of(p, self.size, S))
                notes.append(content[:ahead])
                values = content[ahead:].view(np.float32).reshape(-1, length) if p != self.rank else None
                for i, node in enumerate(nodes[p]):
                    known[node] = sums[i][own] if values is None else values[i]
            part = np.zeros(width, np.float32)
            part[:length] = _finish(known, S)
            total = self.transport.gather(part.view(np.uint8))
        self.talking += time.perf_counter() - start
        return total.reshape(-1).view(np.float32)[:count], notes

    def collect(self, content: Bytes) -> list[Bytes]:
        """Return on rank 0 what each process gives; the others get nothing."""
        with self.conversation():
            length = np.array([len(content)], np.int64).view(np.uint8)
            sizes = self.transport.gather(length).view(np.int64)[:, 0].tolist()
            parts = [content, *[NOTHING] * (self.size - 1)]
            return self.transport.exchange(parts, sizes if self.rank == 0 else [0] * self.size)

    def end(self, code: int) -> None:
        """Let the other processes end with this exit code, and leave the job."""
        self._closed.set()
        if not self.lost:
            self.tell_all(Message(END, {"code": code}))
            self.transport.close()

    def measure(self, calls: int, block: int) -> tuple[float, float]:
        """Return the seconds of a call of the transport, and the bytes per second that a process sends."""
        with self.conversation():
            self.tell_all(Message(MEASURE, {"calls": calls, "block": block}))
            return self._measure(calls, block)

    def _measure(self, calls: int, block: int) -> tuple[float, float]:
        small, large = list[float](), list[float]()
        with self.conversation():
            for size, found in ((8, small), (block, large)):
                parts = [
                    np.zeros(size // self.size if p != self.rank else 0, np.uint8) for p in range(self.size)
                ]
                for _ in range(calls):
                    start = time.perf_counter()
                    self.transport.exchange(parts, [len(part) for part in parts])
                    found.append(time.perf_counter() - start)
        latency = median(small)
        sent = block // self.size * (self.size - 1)
        return latency, sent / max(median(large) - latency, 1e-9)

    def _from_first(self, length: int) -> Bytes:
        """Take part in an exchange in which only rank 0 sends."""
        return self.transport.exchange([NOTHING] * self.size, [length, *[0] * (self.size - 1)])[0]

    def _tick(self) -> None:
        """Send ticks while rank 0 has nothing to say."""
        while not self._closed.wait(self.patience / 8):
            if time.monotonic() - self._last < self.patience / 4 or not self._lock.acquire(blocking=False):
                continue
            try:
                if self.lost or self._closed.is_set():
                    return
                with suppress(ProcessLost):  # the next call in the main thread raises
                    self.tell_all(Message(TICK))
            finally:
                self._lock.release()


def _frame(body: Bytes, room: int, late: bool) -> Bytes:
    """Return the length of a message, whether it comes late, and room for it."""
    frame = np.zeros(16 + room, np.uint8)
    frame[:16].view(np.int64)[:] = len(body), late
    if not late:
        frame[16 : 16 + len(body)] = body
    return frame


def _finish(known: Mapping[Node, Floats], S: int) -> Floats:
    """Add up the nodes that the processes have; their arrays are overwritten."""
    stack = list[Floats]()
    with np.errstate(all="ignore"):  # a loss that is not finite ends the training
        for node in postorder(Node(0, S), known):
            if node in known:
                stack.append(known[node])
            else:
                right = stack.pop()
                stack[-1] += right
    return stack[0]


ALONE = Group(Alone())
_joined = [ALONE]


def current() -> Group:
    """Return the processes that train with this one: those that torchrun or mpiexec has started, or none."""
    return _joined[-1]


def use(group: Group) -> None:
    """Train with these processes from now on."""
    _joined[:] = [group]
