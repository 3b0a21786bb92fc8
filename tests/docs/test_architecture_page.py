"""The page on the architecture lists the modules of the source tree, in both languages."""

import subprocess
import sys
from pathlib import Path

import make_architecture as lists

SCRIPT = Path(__file__).parents[2] / "docs" / "make_architecture.py"


def test_the_pages_list_every_package_with_its_modules() -> None:
    made = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr


def test_both_languages_show_the_same_lists() -> None:
    english, chinese = (page.read_text("utf-8") for page in lists.PAGES)
    for pattern, groups in ((lists.ROW, (1, 3)), (lists.TRACE, (2,))):
        found = [[each.group(*groups) for each in pattern.finditer(page)] for page in (english, chinese)]
        assert found[0] == found[1]
        assert found[0]


def test_a_module_that_does_not_exist_is_found() -> None:
    page = "**`unspool train`**, 3 modules: `cli/{main, nothing}` → `options` → `kernels/gone`."
    assert lists.absent(page) == ["cli/nothing", "kernels/gone"]
    traces = {"train": ["cli/main", "cli/streams", "options"]}
    assert (
        lists.with_traces(page, traces)
        == "**`unspool train`**, 3 modules: `cli/{main, streams}` → `options`."
    )
