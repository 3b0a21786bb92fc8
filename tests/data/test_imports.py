"""Data and counting stay light: nothing heavy is imported before it is used."""

import subprocess
import sys

import pytest

HEAVY = ("matplotlib", "scipy", "statsmodels", "nltk", "tokenizers", "rjieba", "torch", "rich")


@pytest.mark.parametrize(
    "module", ["unspool.data.text.corpus", "unspool.baselines.statistics", "unspool.plots.zipf"]
)
def test_heavy_packages_are_imported_only_when_used(module: str) -> None:
    code = f"import sys, {module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


@pytest.mark.parametrize(
    ("package", "act", "extra"),
    [
        (
            "rjieba",
            "from unspool.data.tokens.registry import make_tokenizer; make_tokenizer('jieba')",
            "chinese",
        ),
        (
            "tokenizers",
            "from unspool.data.tokens.registry import make_tokenizer; make_tokenizer('subword:300')",
            "subword",
        ),
        ("matplotlib.figure", "from unspool.plots.figure import new_axes; new_axes()", "plot"),
    ],
)
def test_a_missing_package_is_named_with_the_extra_that_brings_it(package: str, act: str, extra: str) -> None:
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from unspool.errors import MissingExtra\n"
        f"try:\n    exec({act!r})\nexcept MissingExtra as error:\n    print(error)"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert f"pip install unspool[{extra}]" in printed
