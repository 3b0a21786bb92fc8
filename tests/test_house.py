"""The house keeps its order: imports go one way, none is hidden to dodge a cycle, the package is light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "unspool"
FLOORS = [
    {"errors"},
    {"values"},
    {"config", "measure"},
    {"kernel", "data"},
    {"cells", "counting"},
    {"parameters", "unroll"},
    {"bptt", "optimise", "exchange", "schedule"},
    {"model"},
    {"train", "stream"},
    {"evaluate", "generate", "draw"},
    {"run"},
    {"__init__"},
    {"cli"},
    {"__main__"},
]
"""From words to doors: a module imports only from its own folder and from floors before its own."""
FLOOR = {name: number for number, names in enumerate(FLOORS) for name in names}
FILES = sorted(ROOT.rglob("*.py"))


def place(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").parts[0]


def imported(tree: ast.AST) -> set[str]:
    """Give the places of the package that a file imports from."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "unspool":
            parts = (node.module or "").split(".")[1:]
            names = [alias.name for alias in node.names]
            found |= {parts[0]} if parts else {name if name in FLOOR else "__init__" for name in names}
        elif isinstance(node, ast.Import):
            parts = [alias.name.split(".") for alias in node.names]
            found |= {each[1] if len(each) > 1 else "__init__" for each in parts if each[0] == "unspool"}
    return found


def test_every_file_has_a_floor() -> None:
    assert {place(path) for path in FILES} == set(FLOOR)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path: Path) -> None:
    own = place(path)
    above = {name for name in imported(ast.parse(path.read_text())) if FLOOR[name] >= FLOOR[own]}
    assert above <= {own}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_import_of_ours_is_hidden_in_a_function(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            assert not imported(node), f"{node.name} hides an import"


def test_only_one_file_imports_the_compiled_module() -> None:
    native = [path for path in FILES if "import _native" in path.read_text()]
    assert native == [ROOT / "kernel" / "ops.py"]


def test_only_doors_print() -> None:
    for path in FILES:
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        printing = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]
        assert not printing or place(path) == "cli", path


def test_the_package_brings_in_nothing_heavy() -> None:
    heavy = ("torch", "jax", "matplotlib", "scipy", "rich", "cyclopts", "safetensors")
    code = f"import sys, unspool; print([name for name in {heavy!r} if name in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"
