"""Two built-in corpora: the help texts and the standard library of Python.

They differ between Python versions: use them for demonstrations and smoke tests, not to compare figures.
"""

import sysconfig
from pathlib import Path
from pydoc_data import topics

from unspool.errors import FileError

LEFT_OUT = frozenset(
    {"site-packages", "dist-packages", "test", "tests", "idle_test", "lib2to3", "__pycache__"}
)


def python_docs() -> str:
    """Return the help texts of the language, sorted by topic."""
    return "\n".join(text for _, text in sorted(topics.topics.items()))


def python_source() -> list[Path]:
    """Return the modules of the standard library, sorted, without tests."""
    root = Path(sysconfig.get_path("stdlib"))
    paths = sorted(path for path in root.rglob("*.py") if not LEFT_OUT & set(path.relative_to(root).parts))
    if not paths:
        raise FileError("builtin:python-source: this Python has no source files of its standard library")
    return paths
