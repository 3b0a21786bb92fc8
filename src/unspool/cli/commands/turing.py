"""Compile a Turing machine or an automaton into a recurrent network, and run both step by step for comparison.

A Turing machine becomes h(t) = σ(W h(t-1) + U x(t) + b) with σ(a) = min(1, max(0, a)) and rational weights: one update
per step, without rounding. A finite automaton becomes an Elman layer with relu, which the engine runs in float32. The exit
code is 0 only if the machine and its network agree at every step.
"""

import json as jsonlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

from unspool.cli.options import Flag, Replacing
from unspool.cli.output import notes, print_json, terminal
from unspool.cli.output_files import check_outputs, output, write_output
from unspool.cli.progress import counting_bar
from unspool.cli.views import machine as view
from unspool.cli.views.machine import Followed
from unspool.errors import InputError
from unspool.options import at_least
from unspool.turing.automaton import Automaton
from unspool.turing.builtin import AUTOMATA, BUILTIN, MACHINES, find
from unspool.turing.compile import compile_machine
from unspool.turing.engine import automaton_model, read_states, unit_labels, word_ids
from unspool.turing.network import MachineNetwork, Rationals
from unspool.turing.picture import MOST, draw_automaton, draw_machine
from unspool.turing.run import StepPair, side_by_side

MANY_STEPS = 2000


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Options:
    """What `turing` is given."""

    steps: int = 1000
    """Largest number of steps of a Turing machine."""
    json: Flag = False
    """Print JSON, with every step."""
    quiet: Flag = False
    """Print only the result."""
    picture: Path | None = None
    """Draw the tape, the hidden units and the stacks into this file (.svg)."""
    weights: Path | None = None
    """Write the units and W, U, b as fractions into this file (.json)."""
    replacing: Replacing = Replacing()


def turing(
    machine: Annotated[str | None, Parameter(negative="")] = None,
    tape: str = "",
    /,
    *,
    options: Options = Options(),
) -> None:
    """Run `unspool turing`.

    Parameters
    ----------
    machine
        builtin:NAME, or a JSON file: blank, start, halting, transitions; for an automaton start, accepting, transitions
        [default: list the built-in machines].
    tape
        The word on the tape; the head stands on its first symbol.
    """
    if machine is None:
        return _list_builtin(options.json)
    at_least("steps", options.steps, 0)
    outputs = {".svg": options.picture, ".json": options.weights}
    for suffix, path in outputs.items():
        if path is not None and path.suffix.lower() != suffix:
            raise InputError(f"{path}: expected a name that ends with {suffix}")
    check_outputs(*outputs.values(), force=options.replacing.force, inputs=[machine])
    found = find(machine)
    if isinstance(found, Automaton) and options.weights is not None:
        raise InputError("--weights requires a Turing machine; the weights of an automaton are 0, 1 and -1")
    found.check(tape)
    agree = (
        _automaton(found, tape, options)
        if isinstance(found, Automaton)
        else _machine(compile_machine(found), tape, options)
    )
    if not agree:
        sys.exit(1)


def _list_builtin(json: bool) -> None:
    """Print the machines that are built in."""
    known = [(BUILTIN + name, what, word) for name, (what, word, _) in (MACHINES | AUTOMATA).items()]
    if json:
        print_json([dict(zip(("machine", "does", "tape"), each, strict=True)) for each in known])
    else:
        view.print_known(terminal(), known)


def _machine(network: MachineNetwork, tape: str, show: Options) -> bool:
    machine, console = network.machine, notes(show)
    view.introduce(console, network, tape)
    if show.weights is not None:
        text = jsonlib.dumps(_weights(network), ensure_ascii=False) + "\n"
        write_output(show.weights, text.encode("utf-8"), force=show.replacing.force)
    followed = Followed(network, tape, most=None if show.json else MOST)
    for pair in _with_progress(side_by_side(network, tape, show.steps), show.steps, show.quiet):
        followed.add(pair)
    if show.picture is not None:
        on = f"tape {_short(tape)}" if tape else "empty tape"
        title = f"{machine.name}, {on}: {len(network.units)} units"
        first = followed.first[: MOST + 1]
        with output(show.picture, force=show.replacing.force) as path:
            draw_machine(network, first, path, title, followed.steps + 1 - len(first))
    if show.json:
        with _all_digits():
            content = _as_json(network, tape, followed)
        print_json(content)
    view.print_steps(console, followed)
    view.conclude(terminal(quiet=show.json), followed)
    return followed.disagree is None


def _with_progress(pairs: Iterator[StepPair], steps: int, quiet: bool) -> Iterator[StepPair]:
    """Yield the pairs, with a bar on standard error if there may be many."""
    console = terminal(stderr=True, quiet=quiet)
    counted = "{task.completed:,}/{task.total:,} steps at most"
    with counting_bar(console, counted, hidden=steps < MANY_STEPS) as bar:
        task = bar.add_task("", total=steps)
        for t, pair in enumerate(pairs):
            if t % 64 == 0:
                bar.update(task, completed=t)
            yield pair


def _automaton(automaton: Automaton, word: str, show: Options) -> bool:
    model = automaton_model(automaton)
    true, read = list(automaton.run(word)), read_states(automaton, model, word)
    if show.picture is not None:
        labels = unit_labels(automaton)
        h = model.forward(word_ids(automaton, word[:MOST])).h[:, 0]
        values = np.vstack([model.parameters["layer0.h0"], h]).tolist()
        title = f"{automaton.name}, word {_short(word)}: {len(labels)} units"
        with output(show.picture, force=show.replacing.force) as path:
            draw_automaton(labels, values, word, true, path, title)
    accepted, agree = true[-1] in automaton.accepting, true == read
    if show.json:
        content = {
            "machine": automaton.name, "kind": "automaton", "word": word, "units": model.config.hidden, "accepted": accepted,
            "agree": agree, "states": true, "network": read,
        }  # fmt: skip
        print_json(content)
    view.print_automaton(terminal(quiet=show.json), automaton, word, model.config.hidden, true, read)
    return agree


def _short(word: str) -> str:
    return word if len(word) <= 40 else word[:39] + "…"


@contextmanager
def _all_digits() -> Iterator[None]:
    """Let whole numbers be written however long they are: those of a long tape have thousands of digits."""
    most = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(most)


def _as_json(network: MachineNetwork, tape: str, followed: Followed) -> dict[str, Any]:
    return {
        "machine": network.machine.name,
        "kind": "machine",
        "tape": tape,
        "units": len(network.units),
        "base": network.base,
        "updates": {"reading": len(tape) + 1, "each_step": 1},
        "steps": followed.steps,
        "halted": followed.halted,
        "agree": followed.disagree is None,
        "bits": followed.bits,
        **{precision: watch.first_errors._asdict() for precision, watch in followed.floats.items()},
        "run": [
            {"machine": pair.machine._asdict(), "network": pair.network._asdict(), "l": str(pair.truth.l), "r": str(pair.truth.r)}
            for pair in followed.first
        ],
    }  # fmt: skip


def _weights(network: MachineNetwork) -> dict[str, Any]:
    def written(part: Rationals) -> list[Any]:
        return [written(each) if isinstance(each, np.ndarray) else str(each) for each in part]

    return {
        "machine": network.machine.name,
        "base": network.base,
        "units": [unit.label for unit in network.units],
        "inputs": [*network.machine.symbols, "start"],
        "W": written(network.W),
        "U": written(network.U),
        "b": written(network.b),
    }
