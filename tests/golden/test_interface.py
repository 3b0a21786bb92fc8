"""Commands, options and the fields of --json are the frozen ones; `golden.interface` says how to freeze them again."""

from __future__ import annotations

import json
import re

import pytest

from golden.interface import CALLS, FIELDS, HELP, difference, helps, json_fields

FILES = {path.stem.replace("_", " "): path.read_text("utf-8") for path in sorted(HELP.glob("*.txt"))}
FROZEN = json.loads(FIELDS.read_text("utf-8"))


@pytest.fixture(scope="module")
def printed() -> dict[str, str]:
    return helps()


@pytest.fixture(scope="module")
def found() -> dict[str, list[str]]:
    return json_fields()


def test_no_command_is_lost_and_none_is_new(printed: dict[str, str]) -> None:
    assert sorted(printed) == sorted(FILES)


@pytest.mark.parametrize("command", FILES)
def test_the_help_is_the_frozen_one(command: str, printed: dict[str, str]) -> None:
    said = difference(FILES[command], printed[command])
    assert not said, f"the help of {command} is another:\n{said}"


@pytest.mark.parametrize("call", FROZEN)
def test_json_has_the_frozen_fields(call: str, found: dict[str, list[str]]) -> None:
    said = difference("\n".join(FROZEN[call]), "\n".join(found[call]))
    assert not said, f"{call}: unspool {CALLS[call]} --json has other fields:\n{said}"


def test_every_command_with_json_is_called(printed: dict[str, str]) -> None:
    with_json = {command for command, text in printed.items() if re.search(r"--json\b", text)}
    assert with_json == {call.split(",")[0] for call in CALLS}
