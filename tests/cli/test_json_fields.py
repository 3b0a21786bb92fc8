"""docs/commands.md is true: every command prints the fields that the page names, and no command is left out."""

import contextlib
import io
import json
import re
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import App

from unspool.cli.main import app

DOCS = Path(__file__).parents[2] / "docs"
PAGE, TWIN = DOCS / "commands.md", DOCS / "commands.zh-CN.md"
OPTIONAL = ("only ", "只在")


def sections(page: Path) -> dict[str, str]:
    """The part of the page about each command."""
    parts = page.read_text(encoding="utf-8").split("\n### `unspool ")[1:]
    return {part.split("`")[0]: part for part in parts}


def fields(section: str) -> tuple[set[str], set[str]]:
    """The fields that a section names: those that are always there, and those that may be."""
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.MULTILINE)
    sometimes = {name for name, what in rows if what.startswith(OPTIONAL)}
    return {name for name, _ in rows} - sometimes, sometimes


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the page's examples."""
    folder = tmp_path_factory.mktemp("commands")
    page = PAGE.read_text(encoding="utf-8")
    lines = re.findall(r"^(?:>>> |\.\.\. )(.*)", page.split("```python\n")[1].split("```")[0], re.MULTILINE)
    with contextlib.chdir(folder):
        exec("\n".join(lines), {})
    return folder


@pytest.fixture
def _signals() -> Iterator[None]:
    """Trainings heed signals; the tests after them should not."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("_signals")
def test_every_example_has_the_fields_that_the_page_names(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    done = []
    for name, section in sections(PAGE).items():
        line = section.split("```console\n$ unspool ")[1].split("\n")[0]
        assert line.startswith(name) and line.endswith(" --json")
        if name == "demo":  # half a minute at its usual length: see test_demo
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            app(shlex.split(line), exit_on_error=False, print_error=False, result_action="return_value")
        assert printed.getvalue().count("\n") == 1
        always, sometimes = fields(section)
        found = set(json.loads(printed.getvalue()))
        assert always <= found <= always | sometimes, (name, found ^ always)
        example = section.split("```console\n")[1].split("```")[0]
        assert all(f'"{field}":' in example for field in always), name
        done.append(name)
    assert len(done) > 14


def with_json(command: App, name: str = "") -> Iterator[str]:
    """The names of all commands that have --json."""
    for each in command:
        if each.startswith("-"):
            continue
        inner = command[each]
        called = f"{name} {each}".strip()
        if list(filter(lambda n: not n.startswith("-"), inner)):
            yield from with_json(inner, called)
        elif any("--json" in argument.names for argument in inner.assemble_argument_collection()):
            yield called


def test_no_command_is_left_out() -> None:
    known = set(sections(PAGE))
    missing = set(with_json(app)) - known
    assert not missing, f"docs/commands.md and its twin do not tell the fields of --json of {sorted(missing)}"
    assert known <= set(with_json(app))


def test_both_languages_name_the_same_fields_and_show_the_same_examples() -> None:
    one, two = sections(PAGE), sections(TWIN)
    assert list(one) == list(two)
    for name in one:
        assert fields(one[name]) == fields(two[name])
        assert re.findall(r"```console\n.*?```", one[name], re.DOTALL) == re.findall(
            r"```console\n.*?```", two[name], re.DOTALL
        )
