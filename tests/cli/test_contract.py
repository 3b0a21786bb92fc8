"""What every command promises: a help page, exit code 2 in one line for a mistake, no colour outside a terminal."""

import ast
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import App

from command_line import call, must
from unspool.cli import commands
from unspool.cli.default_out import default_report, default_run
from unspool.cli.main import app, main


def walk(command: App, name: str = "") -> Iterator[str]:
    for each in command:
        if not each.startswith("-"):
            called = f"{name} {each}".strip()
            inner = [*walk(command[each], called)]
            yield from inner or [called]


COMMANDS = list(walk(app))
QUIET = {
    name for name in COMMANDS
    if name.split()[-1] in ("fit", "predict", "backtest", "train", "resume", "evaluate", "compress", "decompress", "inspect", "demo", "turing", "check-gradients", "sweep")
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_help_names_its_options_and_ends_well(name: str) -> None:
    done = call(*name.split(), "--help")
    assert done.code == 0 and not done.err and done.out.startswith(f"Usage: unspool {name}")
    assert ("--quiet" in done.out) == (name in QUIET)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_mistake_is_one_line_and_exit_code_two(name: str) -> None:
    done = call(*name.split(), "--no-such-option")
    assert done.code == 2 and not done.out
    assert done.err.startswith("unspool: ") and done.err.count("\n") == 1


def test_every_module_of_a_command_is_registered_and_its_docstring_is_the_help() -> None:
    folder = Path(commands.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert modules == {commands.module_of(name) for name in commands.COMMANDS}
    listed = " ".join(must("--help", columns=200).replace("│", " ").split())
    for name in commands.COMMANDS:
        source = (folder / f"{commands.module_of(name)}.py").read_text(encoding="utf-8")
        docstring = ast.get_docstring(ast.parse(source))
        assert docstring is not None
        assert commands.help_of(name).split() == docstring.split()
        assert f"{name} {docstring.splitlines()[0]}" in listed


def test_the_help_imports_neither_numpy_nor_a_command() -> None:
    program = (
        "import sys; from unspool.cli.main import main; main(['--help']);"
        "print([n for n in sys.modules if n == 'numpy' or n.startswith('unspool.cli.commands.')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("\n[]\n")


# ── main as a function ─────────────────────────────────────────────────────────────────────────────────────


def test_main_returns_the_exit_code_and_leaves_the_process_as_it_was(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = dict(os.environ)
    assert main(["turing", "builtin:parity", "11", "--quiet"]) == 0
    assert "accepted" in capsys.readouterr().out
    assert main(["stats", "nowhere.txt"]) == 2
    assert capsys.readouterr().err.startswith("unspool: nowhere.txt")
    assert os.environ == before


def test_main_without_arguments_takes_those_of_the_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["unspool", "--version"])
    assert main() == 0
    assert capsys.readouterr().out.startswith("unspool ")


# ── --out and --quiet ──────────────────────────────────────────────────────────────────────────────────────

FIT = ["--steps", "2", "--hidden", "4", "--quiet"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("story.txt").write_text("she sells sea shells by the sea shore.\n" * 20)
    Path("names.csv").write_text("text,label\n" + "Adamou,Greek\nO'Neal,Irish\n" * 20)
    return tmp_path


def test_a_folder_is_chosen_that_is_free_and_it_is_all_that_quiet_prints(place: Path) -> None:
    train = ["train", "story.txt", *FIT, "--batch", "2", "--window", "8"]
    for name in ("story-train", "story-train-2", "story-train-3"):
        done = call(*train)
        assert (done.code, done.out, done.err) == (0, f"runs/{name}\n", "")
        assert (place / "runs" / name / "config.json").exists()
    assert must("classify", "fit", "names.csv", *FIT) == "runs/names-classify\n"
    report = must("inspect", "runs/story-train", "story.txt", "--quiet")
    assert report == "reports/story-train-story/report.html\n" and (place / report.strip()).exists()


def test_without_quiet_the_folder_is_named(place: Path) -> None:
    printed = must("classify", "fit", "names.csv", "--steps", "2", "--hidden", "4")
    assert (
        "\nsaved in runs/names-classify; try: unspool classify predict runs/names-classify FILE\n" in printed
    )


@pytest.mark.parametrize(
    ("inputs", "folder"),
    [
        (["a/book.txt"], "book-train"),
        (["book.txt.gz"], "book-train"),
        (["-"], "stdin-train"),
        (["builtin:python-docs"], "python-docs-train"),
        (["a.txt", "b.txt", "c.txt"], "a-and-2-more-train"),
        (["war & peace (1).txt"], "war-peace-1-train"),
        ([".hidden"], "hidden-train"),
        (["時間.txt"], "時間-train"),
        (["x" * 300], f"{'x' * 60}-train"),
    ],
)
def test_the_folder_is_named_after_the_input(inputs: list[str], folder: str, place: Path) -> None:
    assert default_run(inputs, "train") == Path("runs") / folder
    Path("runs").mkdir()
    (Path("runs") / folder).symlink_to("nowhere")  # a broken link is there too
    assert default_run(inputs, "train") == Path("runs") / f"{folder}-2"
    assert default_report(Path("runs/a"), "b.txt") == Path("reports/a-b")


def test_quiet_prints_only_the_result(place: Path) -> None:
    must("train", "story.txt", *FIT, "--batch", "2", "--window", "8", "--out", "run")
    printed = must("evaluate", "run", "--order", "1", "--quiet")
    assert printed.split()[:2] == ["perplexity", "nats"]
    assert must("compress", "run", "story.txt", "--quiet") == "story.txt.unspool\n"
    assert must("decompress", "story.txt.unspool", "--out", "again.txt", "--quiet") == "again.txt\n"
    assert must("check-gradients", "--hidden", "3", "--values", "2", "--quiet").startswith("all ")
    must("classify", "fit", "names.csv", *FIT, "--out", "who")
    predicted = call("classify", "predict", "who", "names.csv", "--quiet")
    assert predicted.out.count("\n") == 40 and not predicted.err


# ── colour ─────────────────────────────────────────────────────────────────────────────────────────────────

COLOUR = re.compile(r"\x1b\[[0-9;]*(3[0-7]|9[0-7]|38)[0-9;]*m")


def in_a_terminal(*arguments: str, **environment: str) -> str:
    """Run a command whose output is a terminal."""
    master, slave = pty.openpty()
    clean = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS")}
    command = [sys.executable, "-m", "unspool", *arguments]
    with subprocess.Popen(
        command, stdout=slave, stderr=slave, env=clean | {"TERM": "xterm-256color"} | environment
    ) as done:
        os.close(slave)
        printed = b""
        while True:
            try:
                block = os.read(master, 65536)
            except OSError:  # the terminal is closed
                break
            if not block:
                break
            printed += block
    os.close(master)
    assert done.returncode == 0, printed
    return printed.decode()


@pytest.mark.skipif(os.name != "posix", reason="opens a POSIX terminal")
def test_colours_and_bars_are_for_terminals_and_can_be_turned_off(place: Path) -> None:
    command = ["classify", "fit", "names.csv", "--steps", "3", "--hidden", "4"]
    machine = ["turing", "builtin:parity", "11"]
    assert COLOUR.search(in_a_terminal(*machine))
    assert not COLOUR.search(in_a_terminal(*machine, NO_COLOR="1"))
    assert "\x1b" not in in_a_terminal(*machine, TERM="dumb")
    assert "━" in in_a_terminal(*command)
    assert not COLOUR.search(in_a_terminal(*command, NO_COLOR="1"))
    plain = in_a_terminal(*command, TERM="dumb")
    assert "\x1b" not in plain and "━" not in plain and "update 3 of 3" in plain
    assert in_a_terminal(*command, "--quiet").startswith("runs/names-classify")
    assert "\x1b" not in must(*command) + must(*machine)


# ── completion ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_with_every_command(shell: str) -> None:
    script = must("completion", shell)
    for word in (*commands.COMMANDS, "hold-out", "learning-rate"):
        assert word in script
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_an_unknown_shell_is_refused() -> None:
    done = call("completion", "tcsh")
    assert done.code == 2 and "tcsh" in done.err
