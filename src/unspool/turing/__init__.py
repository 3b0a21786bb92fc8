"""Compile finite automata and Turing machines to recurrent networks, and run them exactly."""

from typing import TYPE_CHECKING

from unspool.lazy import lazy_names

_TABLE = """
turing.automaton  Automaton
turing.builtin    find
turing.compile    compile_machine
turing.engine     automaton_model machine_model read_states unit_labels
turing.floating   FirstErrors first_errors
turing.machine    Configuration Machine simulate
turing.network    MachineNetwork
turing.parse      load
turing.run        Exact exact_states side_by_side
turing.universal  decode_tape encode_machine
"""
if not TYPE_CHECKING:  # a type checker would take any name for one that exists
    __getattr__, __dir__ = lazy_names(__name__, _TABLE)
else:
    from unspool.turing.automaton import Automaton
    from unspool.turing.builtin import find
    from unspool.turing.compile import compile_machine
    from unspool.turing.engine import automaton_model, machine_model, read_states, unit_labels
    from unspool.turing.floating import FirstErrors, first_errors
    from unspool.turing.machine import Configuration, Machine, simulate
    from unspool.turing.network import MachineNetwork
    from unspool.turing.parse import load
    from unspool.turing.run import Exact, exact_states, side_by_side
    from unspool.turing.universal import decode_tape, encode_machine

__all__ = [
    "Automaton",
    "Configuration",
    "Exact",
    "FirstErrors",
    "Machine",
    "MachineNetwork",
    "automaton_model",
    "compile_machine",
    "decode_tape",
    "encode_machine",
    "exact_states",
    "find",
    "first_errors",
    "load",
    "machine_model",
    "read_states",
    "side_by_side",
    "simulate",
    "unit_labels",
]
