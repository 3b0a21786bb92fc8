"""Inspect a trained network on a text: states, surprise, units, memory, the unrolled graph."""

from typing import TYPE_CHECKING

from unspool.lazy import lazy_names

if TYPE_CHECKING:
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
    from unspool.inspect.units import Unit, choose_units, find_units

__all__ = [
    "At",
    "Folded",
    "InspectReport",
    "MemoryReport",
    "Probe",
    "Property",
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
    "probe",
    "properties_of",
    "save_graph",
    "to_dot",
    "to_json",
    "to_mermaid",
    "trace",
]
_MODULES = {
    "At": "inspect.graph.structure",
    "Folded": "inspect.graph.structure",
    "InspectReport": "inspect.report",
    "MemoryReport": "inspect.memory",
    "Probe": "inspect.probes",
    "Property": "inspect.properties",
    "Trace": "inspect.graph.trace",
    "Unfolded": "inspect.graph.structure",
    "Unit": "inspect.units",
    "choose_units": "inspect.units",
    "driven": "inspect.graph.systems",
    "find_units": "inspect.units",
    "fold": "inspect.graph.build",
    "from_json": "inspect.graph.export",
    "g": "inspect.graph.systems",
    "inspect": "inspect.report",
    "look_back": "inspect.memory",
    "plain": "inspect.graph.systems",
    "probe": "inspect.probes",
    "properties_of": "inspect.properties",
    "save_graph": "inspect.graph.picture",
    "to_dot": "inspect.graph.export",
    "to_json": "inspect.graph.export",
    "to_mermaid": "inspect.graph.export",
    "trace": "inspect.graph.trace",
}
"""The module that each public name is imported from at first use."""

if not TYPE_CHECKING:  # a type checker would take any name for one that exists
    __getattr__, __dir__ = lazy_names(__name__, _MODULES)
