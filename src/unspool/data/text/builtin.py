"""Two corpora that every Python has: its help texts and its standard library.

They differ between Python versions: good for demonstrations and smoke tests, never for a figure to compare.
"""

import sysconfig
from pathlib import Path
from pydoc_data import topics

from unspool.errors import FileError

LEFT_OUT = frozenset(
    {"site-packages", "dist-packages", "test", "tests", "idle_test", "lib2to3", "__pycache__"}
)


def python_docs() -> str:
    """Give the help texts of the language, one topic after the other in the order of their names."""
    return "\n".join(text for _, text in sorted(topics.topics.items()))


def python_source() -> list[Path]:
    """Give the modules of the standard library, sorted, without its tests."""
    root = Path(sysconfig.get_path("stdlib"))
    paths = sorted(path for path in root.rglob("*.py") if not LEFT_OUT & set(path.relative_to(root).parts))
    if not paths:
        raise FileError("builtin:python-source: this Python comes without the source of its library")
    return paths
