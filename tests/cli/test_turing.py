"""`unspool turing` as people use it."""

import json
import math
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from unspool.cli.commands import turing as command
from unspool.cli.main import main
from unspool.turing.builtin import AUTOMATA, MACHINES, find
from unspool.turing.compile import compile_machine
from unspool.turing.machine import Machine, simulate
from unspool.turing.run import StepPair


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["turing", *map(str, arguments)])
    return code, *capsys.readouterr()


@pytest.fixture
def turing(capsys: pytest.CaptureFixture[str]):
    return lambda *arguments: run(capsys, *arguments)


def test_both_are_shown_side_by_side(turing) -> None:
    code, out, _ = turing("builtin:increment", "1011")
    rows = [line.split() for line in out.splitlines()]
    assert code == 0
    assert ["0", "right", "[1]011", "right", "[1]011", "0", "0.4244"] in rows
    assert ["8", "done", "1[1]00", "done", "1[1]00", "0.4", "0.422"] in rows
    for part in (
        "24 units, base 8",
        "halted in done after 8 steps",
        "5 updates",
        "after each of 8 steps",
        "4 digits",
        "float32   correct",
    ):
        assert part in out  # fmt: skip


def test_a_machine_that_does_not_halt_is_stopped_and_said(turing) -> None:
    code, out, _ = turing("builtin:wolfram", "--steps", 60)
    assert code == 0
    assert "not halted within 60 steps, which is all that --steps allows" in out
    assert "float32   wrong: a part of the tape after step 35, its state after step 49" in out
    assert "\n   …\n" in out and "\n  60  " in out and "\n  30  " not in out


def test_no_step_at_all(turing) -> None:
    code, out, _ = turing("builtin:bb2", "--steps", 0)
    assert code == 0 and "not halted within 0 steps" in out


def test_json_has_every_step(turing) -> None:
    code, out, _ = turing("builtin:bb4", "--json")
    found = json.loads(out)
    assert (code, found["halted"], found["agree"], found["steps"], len(found["run"])) == (
        0,
        True,
        True,
        107,
        108,
    )
    machine = find("builtin:bb4")
    assert isinstance(machine, Machine)
    for row, true in zip(found["run"], simulate(machine, ""), strict=True):
        assert row["machine"] == row["network"] == true._asdict()
    assert found["float32"] == {"tape": 105, "state": None} and found["float64"] == {
        "tape": None,
        "state": None,
    }
    assert found["updates"] == {"reading": 1, "each_step": 1} and found["units"] == 29
    assert Fraction(found["run"][2]["r"]) == Fraction(5, 8)


def test_an_automaton(turing) -> None:
    code, out, _ = turing("builtin:thirds", "11110")
    assert code == 0 and "accepted: in r0 after 5 symbols" in out and "the same at the start" in out
    code, out, _ = turing("builtin:parity", "1" * 501, "--json")
    found = json.loads(out)
    assert (code, found["accepted"], found["agree"], len(found["states"])) == (0, False, True, 502)
    assert "not accepted: in odd after 0" not in out and found["states"] == found["network"]


def test_alone_it_shows_what_is_built_in(turing) -> None:
    _, out, _ = turing()
    assert all(f"builtin:{name} " in out for name in MACHINES | AUTOMATA)
    _, out, _ = turing("--json")
    assert [each["machine"] for each in json.loads(out)] == [
        f"builtin:{name}" for name in MACHINES | AUTOMATA
    ]


def test_a_machine_of_ones_own(turing, tmp_path: Path) -> None:
    path = tmp_path / "flip.json"
    table = {"go": {"0": ["1", "R", "go"], "1": ["0", "R", "go"], "_": ["_", "S", "done"]}}
    path.write_text(json.dumps({"blank": "_", "start": "go", "halting": ["done"], "transitions": table}))
    code, out, _ = turing(path, "1001")
    assert code == 0 and "halted in done after 5 steps: 0110[_]" in out


def test_a_machine_that_has_halted_before_it_begins(turing, tmp_path: Path) -> None:
    path = tmp_path / "nothing.json"
    path.write_text('{"blank": "_", "start": "H", "halting": ["H"], "transitions": {}}')
    code, out, _ = turing(path, "__", "--picture", tmp_path / "nothing.svg")
    assert code == 0 and "halted in H after 0 steps: [_]" in out and "base 2" in out
    assert (tmp_path / "nothing.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["builtin:increment", "12"],
            "tape: symbol '2' at position 2 is not in the alphabet of 'increment'; expected only _ 0 1",
        ),
        (
            ["builtin:parity", "1a"],
            "word: symbol 'a' at position 2 is not in the alphabet of 'parity'; expected only 0 1",
        ),
        (["builtin:none"], "no machine builtin:none; expected one of increment"),
        (["nowhere.json"], "nowhere.json: no such file or folder"),
        (["builtin:bb2", "--steps", "-1"], "steps is -1; expected a whole number of 0 or more"),
        (["builtin:bb2", "--picture", "bb2.png"], "bb2.png: expected a name that ends with .svg"),
        (["builtin:bb2", "--picture", "nowhere/bb2.svg"], "there is no folder nowhere"),
        (["builtin:bb2", "--weights", "bb2.txt"], "expected a name that ends with .json"),
        (["builtin:parity", "--weights", "p.json"], "--weights requires a Turing machine"),
    ],
)
def test_a_slip_is_one_line_and_exit_code_two(turing, arguments: list[str], message: str) -> None:
    code, out, error = turing(*arguments)
    assert (code, out) == (2, "")
    assert error.startswith("unspool: ") and message in error and len(error.splitlines()) == 1


def test_bad_json_as_a_process(tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text('{"blank": "_",')
    done = subprocess.run(
        [sys.executable, "-m", "unspool", "turing", path], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"unspool: {path}: not JSON: Expecting property name enclosed in double quotes at line 1, column 15\n"  # fmt: skip


def test_where_they_differ_it_says_so_and_fails(turing, monkeypatch: pytest.MonkeyPatch) -> None:
    true = command.side_by_side

    def broken(*arguments):
        for t, pair in enumerate(true(*arguments)):
            yield (
                pair
                if t < 3
                else StepPair(pair.machine, pair.network._replace(head=99), pair.hidden, pair.truth)
            )

    monkeypatch.setattr(command, "side_by_side", broken)
    code, out, _ = turing("builtin:bb2")
    assert code == 1
    assert "DISAGREE  from step 3 on" in out and "agree  " not in out


@pytest.mark.parametrize(
    ("machine", "word", "steps"),
    [("bb3", "", 21), ("anbncn", "abc", 5), ("wolfram", "", 200), ("thirds", "1101", 4)],
)
def test_the_picture_shows_each_step(turing, tmp_path: Path, machine: str, word: str, steps: int) -> None:
    path = tmp_path / "picture.svg"
    given = ["--steps", steps] if machine in MACHINES else []
    code, _, _ = turing(f"builtin:{machine}", word, "--picture", path, *given)
    assert code == 0
    texts = [each.text for each in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]
    assert f"{min(steps, 120) // 5 * 5 if steps > 20 else steps}" in texts
    assert any("more are not drawn" in (text or "") for text in texts) == (steps > 120)
    heads = [r for r in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}rect") if r.get("stroke-width") == "1.6"]  # fmt: skip
    assert len(heads) == (min(steps, 120) + 1 if machine in MACHINES else 0)


def test_the_weights_can_be_taken_away_and_run_by_hand(turing, tmp_path: Path) -> None:
    """Only the file: fractions, σ and the labels of the units."""
    path = tmp_path / "weights.json"
    turing("builtin:increment", "111", "--weights", path)
    found = json.loads(path.read_text(encoding="utf-8"))
    W, U = (np.array([[Fraction(w) for w in row] for row in found[name]], object) for name in "WU")
    b = np.array([Fraction(w) for w in found["b"]], object)
    made = find("builtin:increment")
    assert isinstance(made, Machine) and (compile_machine(made).W == W).all()
    h = 0 * b
    for x in ("1", "1", "1", "start", *[None] * 8):
        a = W @ h + b + (0 if x is None else U[:, found["inputs"].index(x)])
        h = np.array([min(1, max(0, each)) for each in a], object)
    value = dict(zip(found["units"], h, strict=True))
    assert value["e[done,S,0]"] == 1 and value["l[S]"] == 0
    assert value["r[S]"] == Fraction(4, 8) + Fraction(2, 64) + Fraction(2, 512) + Fraction(2, 4096)  # 1000


def test_a_machine_is_not_written_over(turing, tmp_path: Path) -> None:
    path = tmp_path / "flip.json"
    path.write_text(
        '{"blank": "_", "start": "go", "halting": [], "transitions": {"go": {"_": ["_", "S", "go"]}}}'
    )
    before = path.read_bytes()
    code, _, err = turing(path, "--weights", path)
    assert code == 2 and "the command reads this file" in err and path.read_bytes() == before
    code, _, err = turing(path, "--weights", tmp_path / "no" / "a.json")
    assert code == 2 and f"{tmp_path / 'no' / 'a.json'}: cannot be written" in err


def test_a_long_tape_is_written_with_all_its_digits(turing) -> None:
    code, out, _ = turing("builtin:increment", "1" * 4800, "--steps", 1, "--json")
    denominator = json.loads(out)["run"][0]["r"].split("/")[
        1
    ]  # 2 ** 14398: the last 4 of base 8 has two bits less
    assert code == 0 and len(denominator) == int(14398 * math.log10(2)) + 1 > sys.get_int_max_str_digits()
