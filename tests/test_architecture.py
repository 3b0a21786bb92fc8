"""The code layout: imports go one way, none is hidden, and the package is light to import."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from unspool.cells import CELLS

SOURCE = Path(__file__).resolve().parent.parent / "src" / "unspool"
ORDER = [
    "lazy",
    "errors",
    "options",
    "kernels",
    "storage",
    "cluster",
    "cells",
    "data",
    "model",
    "gradients",
    "optimisers",
    "evaluation",
    "training",
    "baselines",
    "tasks",
    "plots",
    "inspect",
    "compress",
    "turing",
    "torch",
    "studio",
    "cli",
    "__main__",
    "__init__",
]
"""The entries of the package: each imports only entries above it."""
HEAVY = {
    "tensorboardX",
    "safetensors",
    "matplotlib",
    "tokenizers",
    "rjieba",
    "sentencepiece",
    "constriction",
    "pyppmd",
    "torch",
    "mpi4py",
    "plotly",
    "sklearn",
    "PIL",
    "joblib",
    "dask",
    "distributed",
    "ray",
}
"""Third-party packages that a function may import when it runs: optional or slow ones."""


def modules():
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts), path


MODULES = dict(modules())
TREES = {name: ast.parse(path.read_text()) for name, path in MODULES.items()}


def imported(node):
    """The full names that an import statement may load."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    assert node.level == 0, "imports say the full name: no dots before it"
    return [f"{node.module}.{alias.name}" for alias in node.names]


def own(name):
    """The module of ours that a full name lies in, or None: unspool.kernels.native.matmul lies in kernels.native."""
    parts = name.split(".")
    if parts[0] != "unspool" or name == "unspool.__version__":
        return None
    ends = (".".join(parts[1:end]) for end in range(len(parts), 1, -1))
    return next((module for module in ends if module in MODULES), "__init__")


def imports_of(name):
    return [n for n in ast.walk(TREES[name]) if isinstance(n, ast.Import | ast.ImportFrom)]


def test_the_package_lists_its_entries_in_the_order_of_imports():
    assert {name.split(".")[0] for name in MODULES} == set(ORDER)
    assert len(ORDER) <= 24


@pytest.mark.parametrize("name", MODULES)
def test_an_entry_imports_only_entries_above_it(name):
    here = ORDER.index(name.split(".")[0])
    for node in imports_of(name):
        for full in imported(node):
            if (module := own(full)) is None:
                continue
            assert ORDER.index(module.split(".")[0]) <= here, f"line {node.lineno}: {module}"


def test_no_module_imports_itself_in_a_circle():
    graph = {
        name: {own(full) for node in imports_of(name) for full in imported(node)} - {None, name}
        for name in MODULES
    }
    done, path = set(), []

    def visit(name):
        assert name not in path, " ▶ ".join([*path, name])
        if name not in done:
            path.append(name)
            for other in sorted(graph[name]):
                visit(other)
            done.add(path.pop())

    for name in MODULES:
        visit(name)


@pytest.mark.parametrize("name", MODULES)
def test_no_import_is_hidden_in_a_function_but_of_heavy_packages(name):
    functions = [n for n in ast.walk(TREES[name]) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    hidden = [n for f in functions for n in ast.walk(f) if isinstance(n, ast.Import | ast.ImportFrom)]
    for node in hidden:
        for full in imported(node):
            assert full.split(".")[0] in HEAVY, f"{name}, line {node.lineno}: import {full} at the top"


def test_the_kernels_own_package_alone_imports_the_compiled_module():
    users = {
        name for name in MODULES for node in imports_of(name) for full in imported(node) if "_native" in full
    }
    assert users == {"kernels.native", "kernels.native_updates", "kernels.machine"}


@pytest.mark.parametrize("name", [name for name in MODULES if name.split(".")[0] != "cells"])
def test_no_module_outside_the_registry_names_a_cell(name):
    constants = [node for node in ast.walk(TREES[name]) if isinstance(node, ast.Constant)]
    assert [node.lineno for node in constants if node.value in CELLS] == [], (
        "ask the registry, or use its constants"
    )


def test_errors_import_nothing():
    assert imports_of("errors") == []


@pytest.mark.parametrize("name", MODULES)
def test_every_module_says_what_it_is_in_its_first_line(name):
    assert ast.get_docstring(TREES[name])


def test_importing_the_package_loads_nothing_heavy():
    program = "import sys, unspool; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & (HEAVY | {"jax", "scipy", "pandas", "cyclopts", "rich", "nltk", "statsmodels"})
