"""The commands: one module each, registered by one line; the module's docstring is the command's help."""

from importlib import import_module
from pathlib import Path
from typing import Any

COMMANDS = {
    "demo": "demo",
    "train": "train",
    "resume": "resume",
    "evaluate": "evaluate_command",
    "generate": "generate",
    "compress": "compress_command",
    "decompress": "decompress_command",
    "classify": "app",
    "regress": "app",
    "tag": "app",
    "translate": "app",
    "generate-from": "app",
    "forecast": "app",
    "sweep": "sweep",
    "stats": "stats",
    "inspect": "inspect_command",
    "graph": "graph",
    "check-gradients": "check_command",
    "turing": "turing",
    "studio": "studio",
    "runs": "runs",
    "show": "show",
    "completion": "completion",
}
"""Each command, and the function or the cyclopts App in its module."""


def module_of(name: str) -> str:
    """Return the name of a command's module.

    >>> module_of("check-gradients")
    'check_gradients'
    """
    return name.replace("-", "_")


def import_path(name: str) -> str:
    """Return where cyclopts finds a command when it runs."""
    return f"{__name__}.{module_of(name)}:{COMMANDS[name]}"


def fit_of(command: str) -> Any:
    """Return the value `FIT` of a command's module: how it resumes a run, and what a run is used for (`cli.fit.Resumable`)."""
    return import_module(f"{__name__}.{module_of(command)}").FIT


def reader_of(command: str) -> Any:
    """Return the function `read_as_fitted` of a command's module: it reads data as the fit of a run did."""
    return import_module(f"{__name__}.{module_of(command)}").read_as_fitted


def help_of(name: str) -> str:
    """Return the docstring of a command's module, one line per paragraph, without importing the module."""
    source = Path(__file__).with_name(f"{module_of(name)}.py").read_text(encoding="utf-8")
    paragraphs = source.split('"""')[1].split("\n\n")
    return "\n\n".join(" ".join(each.split()) for each in paragraphs)
