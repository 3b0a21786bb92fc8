"""Inspect a trained network on a text: states, surprise, units, memory, the unrolled graph."""

from typing import TYPE_CHECKING

from unspool.lazy import lazy_names

_TABLE = """
inspect.graph.build      fold
inspect.graph.export     from_json to_dot to_json to_mermaid
inspect.graph.picture    save_graph
inspect.graph.structure  At Folded Unfolded
inspect.graph.systems    driven g plain
inspect.graph.trace      Trace trace
inspect.memory           MemoryReport look_back
inspect.probes           Probe probe
inspect.properties       Property properties_of
inspect.report           InspectReport inspect
inspect.steps            StepPredictions StepsReport predictions_by_step
inspect.units            Unit choose_units find_units
"""
if not TYPE_CHECKING:  # a type checker would take any name for one that exists
    __getattr__, __dir__ = lazy_names(__name__, _TABLE)
else:
    from unspool.inspect.graph.build import fold
    from unspool.inspect.graph.export import from_json, to_dot, to_json, to_mermaid
    from unspool.inspect.graph.picture import save_graph
    from unspool.inspect.graph.structure import At, Folded, Unfolded
    from unspool.inspect.graph.systems import driven, g, plain
    from unspool.inspect.graph.trace import Trace, trace
    from unspool.inspect.memory import MemoryReport, look_back
    from unspool.inspect.probes import Probe, probe
    from unspool.inspect.properties import Property, properties_of
    from unspool.inspect.report import InspectReport, inspect
    from unspool.inspect.steps import StepPredictions, StepsReport, predictions_by_step
    from unspool.inspect.units import Unit, choose_units, find_units

__all__ = [
    "At",
    "Folded",
    "InspectReport",
    "MemoryReport",
    "Probe",
    "Property",
    "StepPredictions",
    "StepsReport",
    "Trace",
    "Unfolded",
    "Unit",
    "choose_units",
    "driven",
    "find_units",
    "fold",
    "from_json",
    "g",
    "inspect",
    "look_back",
    "plain",
    "predictions_by_step",
    "probe",
    "properties_of",
    "save_graph",
    "to_dot",
    "to_json",
    "to_mermaid",
    "trace",
]
