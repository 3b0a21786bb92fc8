"""Public names: the lists are complete, each name is described and typed, and pages and examples use no others."""

import ast
import dataclasses
import importlib
import inspect
import re
import typing
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ["data", "gradients", "baselines", "inspect", "compress", "turing", "torch"]
PUBLIC = ["unspool", *(f"unspool.{name}" for name in PACKAGES)]
NAMES = [(module, name) for module in PUBLIC for name in importlib.import_module(module).__all__]
TEXTS = sorted([*ROOT.glob("README*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*.py")])
TEXTS = [path for path in TEXTS if path.name != "log.md"]
IMPORT = re.compile(r"^\s*(?:>>> |\.\.\. )?from (unspool[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE)
PLAIN_IMPORT = re.compile(r"^\s*(?:>>> |\.\.\. )?import (unspool[\w.]*)", re.MULTILINE)
DOTTED = re.compile(r"(?<![\w/.-])unspool((?:\.\w+)+)(?=[`(,:)])")
SHAPE = re.compile(r"\((τ|tau|n|B|H|K|O|steps|rows)\b[^()]*,[^()]*\)|\b[Ss]hapes?\b")
"""A shape such as (τ, B), or a sentence about shapes."""


def place(path: Path) -> str:
    return str(path.relative_to(ROOT))


def source(module: str) -> Path:
    return ROOT / "src" / module.replace(".", "/") / "__init__.py"


def typed_modules(module: str) -> dict[str, str]:
    """The module that a type checker imports each public name from."""
    (block,) = [node for node in ast.parse(source(module).read_text()).body if isinstance(node, ast.If)]
    return {
        alias.name: node.module
        for node in block.orelse
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


def own_callables(kind: type) -> dict[str, typing.Any]:
    """The public methods and properties that a class defines itself; not its fields, whose defaults may be functions."""
    fields = {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    found = {}
    for name, value in vars(kind).items():
        plain = (
            value.fget if isinstance(value, property) else inspect.unwrap(getattr(value, "__func__", value))
        )
        if not name.startswith("_") and name not in fields and inspect.isfunction(plain):
            found[name] = plain
    return found


def untyped(function: typing.Any) -> list[str]:
    """The parameters of a function without an annotation, and "return"."""
    signature = inspect.signature(function)
    missing = [
        name
        for name, parameter in signature.parameters.items()
        if parameter.annotation is parameter.empty and name not in ("self", "cls")
    ]
    returns = inspect.isclass(function) or signature.return_annotation is not signature.empty
    return missing if returns else [*missing, "return"]


@pytest.mark.parametrize("module", PUBLIC)
def test_the_list_is_sorted_and_the_same_for_python_and_for_type_checkers(module: str) -> None:
    package = importlib.import_module(module)
    names = package.__all__
    assert names == sorted(set(names), key=lambda name: (not name.isupper(), name.islower(), name))
    assert set(names) == set(typed_modules(module))
    assert [name for name in dir(package) if not name.startswith("__")] == sorted(names)


@pytest.mark.parametrize("module", PUBLIC)
def test_no_name_is_also_a_module_which_would_replace_it_once_imported(module: str) -> None:
    modules = {path.stem for path in source(module).parent.iterdir()}
    assert modules & set(importlib.import_module(module).__all__) == set()


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_a_name_is_defined_where_type_checkers_look_and_described_in_a_sentence(
    module: str, name: str
) -> None:
    value = getattr(importlib.import_module(module), name)
    assert value.__module__ == typed_modules(module)[name]
    first = (value.__doc__ or "").split("\n")[0]
    assert re.match(r"[A-Z∂∇].*[.:]$", first), f"first line: {first!r}"
    if inspect.isclass(value):
        assert [each for each, function in own_callables(value).items() if not function.__doc__] == []


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_arguments_and_results_have_types(module: str, name: str) -> None:
    value = getattr(importlib.import_module(module), name)
    typing.get_type_hints(value)
    if not (inspect.isclass(value) and issubclass(value, Exception)):
        assert untyped(value) == []
    if inspect.isclass(value):
        assert [each for each, function in own_callables(value).items() if untyped(function)] == []


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_a_function_of_arrays_names_their_shapes(module: str, name: str) -> None:
    value = getattr(importlib.import_module(module), name)
    if inspect.isfunction(value) and "ndarray" in str(typing.get_type_hints(value)):
        assert SHAPE.search(value.__doc__ or "")


@pytest.mark.parametrize("path", TEXTS, ids=place)
def test_pages_and_examples_import_only_public_names(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for module, names in IMPORT.findall(text):
        assert module in PUBLIC, f"from {module} import {names}"
        wanted = {name.strip() for name in names.strip("()").split("#")[0].split(",")} - {""}
        assert wanted <= {*importlib.import_module(module).__all__, "__version__"}, module
    assert set(PLAIN_IMPORT.findall(text)) <= set(PUBLIC)


@pytest.mark.parametrize("path", TEXTS, ids=place)
def test_dotted_names_in_the_text_are_public(path: Path) -> None:
    for dotted in DOTTED.findall(path.read_text(encoding="utf-8")):
        first, *rest = dotted.removeprefix(".").split(".")
        if first == "errors" or first.startswith(
            "__"
        ):  # the line of a traceback names the module of the class
            continue
        module, names = (f"unspool.{first}", rest) if first in PACKAGES else ("unspool", [first, *rest])
        assert not names or names[0] in importlib.import_module(module).__all__, f"unspool{dotted}"
