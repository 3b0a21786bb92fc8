"""`unspool train`, `resume`, `evaluate`, `generate` as people use them: as processes, stopped and killed too."""

import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from stopping import stop_after
from unspool.cli.follow import Stop, follow
from unspool.cli.main import main
from unspool.cli.options import OutputOptions
from unspool.cli.views.training import View
from unspool.data.text.settings import TextConfig
from unspool.data.text.source import text_source
from unspool.data.tokens.characters import ByteTokenizer
from unspool.data.tokens.registry import make_tokenizer
from unspool.evaluation.metrics import measure
from unspool.model.generate import Sampling
from unspool.storage.log import read_log
from unspool.storage.run_folder import MIXTURE, MODEL, TRAINING
from unspool.storage.tensors import read_arrays, read_json, write_json
from unspool.tasks.language.estimator import LanguageModel
from unspool.tasks.language.run import run
from unspool.tasks.language.text_model import TextModel
from unspool.training.events import Event, RunConfig, Scoring

TEXT = "the time traveller spoke of time and space, and space and time listened. — été 時\n" * 60
SIZES = ["--hidden", "20", "--batch", "4", "--window", "16", "--dropout", "0.1", "--validations", "4"]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "story.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def unspool(*arguments: object, threads: int = 1, check: int | None = 0) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"UNSPOOL_THREADS": str(threads)}
    command = [sys.executable, "-m", "unspool", *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", env=environment, check=False, input=""
    )
    if check is not None:
        assert done.returncode == check, done.stderr
    return done


@pytest.fixture(scope="module")
def trained(story: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    unspool("train", story, "--out", out, "--steps", 120, "--learning-rate", 0.01, *SIZES)
    return out


def test_training_shows_the_walk_and_leaves_a_run(story: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    printed = unspool("train", story, "--out", out, "--steps", 30, *SIZES).stdout
    for stage in (
        "text",
        "tokens",
        "vocabulary",
        "counting",
        "minibatches",
        "model",
        "training",
        "result",
        "saved",
    ):
        assert f"\n{stage} " in printed
    for word in ("s left", "tokens/s", "perplexity", "uniform", "3-grams", "sample:", "unspool generate"):
        assert word in printed
    names = {path.name for path in out.iterdir()}
    assert names == {"config.json", "vocab.json", MODEL, TRAINING, MIXTURE, "log.jsonl", "text"}
    assert [e["step"] for e in read_log(out / "log.jsonl") if "valid" in e][-1] == 30


def test_the_printed_command_repeats_a_run_of_minutes_to_the_bit(story: Path, tmp_path: Path) -> None:
    made = unspool("train", story, "--out", tmp_path / "one", "--minutes", 0.02, "--json", "--seed", 3)
    content = json.loads(made.stdout)
    assert content["config"]["recipe"]["steps"] >= 1
    command = shlex.split(content["repeat"])
    assert command[:2] == ["unspool", "train"] and "--steps" in command and command[-1] == "AGAIN"
    unspool(*command[1:-1], tmp_path / "two", threads=2)
    assert (tmp_path / "one" / MODEL).read_bytes() == (tmp_path / "two" / MODEL).read_bytes()


@pytest.mark.parametrize("cell", ["elman", "gru", "lstm"])
def test_whatever_ends_the_process_the_run_goes_on_to_the_same_bits(
    cell: str, story: Path, tmp_path: Path
) -> None:
    settings = ["--steps", 60, "--cell", cell, "--save-every", 1, "--recurrent-dropout", "0.1", *SIZES]
    unspool("train", story, "--out", tmp_path / "whole", *settings)
    out, rng = tmp_path / "run", random.Random(cell)
    for number, kind in enumerate([signal.SIGINT, signal.SIGTERM, signal.SIGKILL]):
        arguments = ["resume", out] if number else ["train", story, "--out", out]
        arguments += ["--save-every", 1] if number else settings
        command = [sys.executable, "-m", "unspool", *map(str, arguments)]
        environment = os.environ | {"UNSPOOL_THREADS": str(1 + number % 2)}
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        wait_for_steps(out, step_of(out) + rng.randrange(2, 8), process)
        process.send_signal(kind)
        _, error = process.communicate()
        if process.returncode != 0:  # else it was quicker than the signal
            assert process.returncode == {signal.SIGKILL: -9, signal.SIGINT: 130, signal.SIGTERM: 143}[kind]
            assert kind == signal.SIGKILL or f"unspool resume {out}" in error
        TextModel.load(out)
    unspool("resume", out, threads=2)
    assert (out / MODEL).read_bytes() == (tmp_path / "whole" / MODEL).read_bytes()
    one, two = (read_arrays(place / TRAINING)[0] for place in (out, tmp_path / "whole"))
    assert one.keys() == two.keys() and all((one[name] == two[name]).all() for name in one)
    assert not list(out.glob("*unfinished*"))


def step_of(out: Path) -> int:
    return read_arrays(out / TRAINING)[1]["step"] if (out / TRAINING).exists() else 0


def wait_for_steps(out: Path, step: int, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 60
    while process.poll() is None and step_of(out) < step:
        assert time.monotonic() < until
        time.sleep(0.002)


def test_evaluate_gives_the_figures_of_the_protocol(trained: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text(TEXT[:900] + "Ωx", encoding="utf-8")
    found = json.loads(unspool("evaluate", trained, other, "--json", "--order", 3).stdout)
    model = TextModel.load(trained)
    own = model.measure(other)
    assert found["network"]["nats"] == own.nats and found["network"]["perplexity"] == own.perplexity
    assert found["targets"] == 901 and found["unknown"] == 2
    assert found["baselines"][0]["perplexity"] == found["vocabulary"] == len(model.vocab)
    assert [each["name"] for each in found["baselines"]] == ["uniform", "1-grams", "2-grams", "3-grams"]
    windows = [
        json.loads(unspool("evaluate", trained, other, "--json", "--window", w).stdout) for w in (1, 7)
    ]
    assert all(each["network"] == found["network"] for each in windows)
    printed = unspool("evaluate", trained, other).stdout
    for word in ("901 targets", "2 tokens", "<unk>", "bits/byte", "± error", "6-grams", "network"):
        assert word in printed
    assert "valid: " in unspool("evaluate", trained).stdout


def test_an_n_gram_is_judged_as_brute_force_judges_it(trained: Path, tmp_path: Path) -> None:
    """The unigram line of `evaluate`, from counts made here: Kneser-Ney's unigrams are those of continuations."""
    found = json.loads(unspool("evaluate", trained, "--json", "--order", 2).stdout)
    content = json.loads((trained / "config.json").read_text())
    assert found["baselines"][1]["nats"] == content["baselines"][1]["valid"]["nats"]
    train = TEXT[: int(len(TEXT) * 0.9)]
    K, n = found["vocabulary"], len(train)
    counts = {c: train.count(c) for c in set(train)}
    D = discount(counts)
    left = D * len(counts) / n
    p = {c: (counts[c] - D) / n + left / K for c in counts}
    valid = TEXT[int(len(TEXT) * 0.9) :]
    nats = -np.mean([np.log(p[c]) for c in valid[1:]])
    assert found["baselines"][1]["nats"] == pytest.approx(nats, rel=1e-9)


def discount(counts: dict[str, int]) -> float:
    n1, n2 = (sum(count == times for count in counts.values()) for times in (1, 2))
    return n1 / (n1 + 2 * n2) if n1 and n2 else 0.75


def test_generation_is_the_same_in_every_process_and_streams(trained: Path) -> None:
    arguments = [
        "generate",
        trained,
        "--prompt",
        "the time",
        "--length",
        80,
        "--seed",
        5,
        "--temperature",
        0.7,
    ]
    one, two = (unspool(*arguments, threads=threads).stdout for threads in (1, 2))
    assert one == two and one.startswith("the time") and len(one) == len("the time") + 80 + 1
    assert one.rstrip("\n") == "the time" + TextModel.load(trained).generate(
        "the time", 80, seed=5, sampling=Sampling(0.7)
    )
    texts = json.loads(unspool(*arguments, "--json", "--samples", 2).stdout)["texts"]
    assert "the time" + texts[0] + "\n" == one and texts[0] != texts[1]


def test_a_saved_state_goes_on_as_if_it_had_never_stopped(trained: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    whole = unspool("generate", trained, "--prompt", "the time", "--length", 50, "--seed", 5).stdout
    first = unspool(
        "generate", trained, "--prompt", "the time", "--length", 20, "--seed", 5, "--save-state", state
    ).stdout.rstrip("\n")
    second = unspool("generate", trained, "--state", state, "--length", 30).stdout
    assert first + second == whole
    # A text that was only read, and the rest of it read later.
    unspool("generate", trained, "--prompt", "the ", "--length", 0, "--save-state", state, "--force")
    later = unspool(
        "generate", trained, "--state", state, "--prompt", "time", "--length", 50, "--seed", 5
    ).stdout
    assert "the " + later == whole
    damaged = bytearray(state.read_bytes())
    damaged[-3] ^= 1
    state.write_bytes(damaged)
    assert "damaged" in unspool("generate", trained, "--state", state, check=2).stderr


def test_unknown_characters_of_a_prompt_are_said(trained: Path) -> None:
    done = unspool("generate", trained, "--prompt", "Ωthe ΩX", "--length", 5, "--seed", 1)
    assert "not in the vocabulary, read as <unk>: 'Ω' 'X'" in done.stderr
    assert done.stdout.startswith("Ωthe ΩX")


def test_generate_reports_its_speed_to_a_terminal_and_in_json(
    trained: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["generate", trained, "--prompt", "the ", "--length", 30, "--samples", 2, "--seed", 1]
    piped = unspool(*arguments)
    assert piped.stderr == ""
    assert json.loads(unspool(*arguments, "--json").stdout)["tokens_per_second"] > 0
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(arguments) == 0
    printed = capsys.readouterr()
    assert printed.out == piped.stdout
    assert re.fullmatch(r"unspool: 60 tokens, [\d,]+ tokens/s\n", printed.err)


def test_a_model_of_reverse_time_reads_and_writes_backwards(story: Path, tmp_path: Path) -> None:
    out = tmp_path / "back"
    unspool("train", story, "--out", out, "--steps", 150, "--learning-rate", 0.01, "--backward", *SIZES)
    assert "--backward" in unspool("evaluate", out, story, check=2).stderr
    found = json.loads(unspool("evaluate", out, story, "--backward", "--json").stdout)
    model = TextModel.load(out)
    assert (
        model.backward
        and found["network"]["nats"] == model.measure(story).nats < found["baselines"][1]["nats"]
    )
    written = unspool("generate", out, "--prompt", " listened.", "--length", 12, "--greedy").stdout
    assert written.rstrip("\n").endswith(" listened.") and len(written) == 23


@pytest.mark.parametrize("tokens", ["byte", "word", "space"])
def test_other_tokens_train_evaluate_and_write(tokens: str, story: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    unspool("train", story, "--out", out, "--steps", 40, "--tokens", tokens, *SIZES)
    found = json.loads(unspool("evaluate", out, story, "--json", "--order", 1).stdout)
    assert found["characters"] == len(TEXT) and found["bytes"] == len(TEXT.encode())
    assert unspool("generate", out, "--prompt", "the time", "--length", 12, "--seed", 1).stdout.startswith(
        "the time"
    )


@pytest.mark.parametrize("tokens", ["char", "byte", "word"])
def test_text_spelled_as_it_comes_is_the_text(tokens: str, story: Path) -> None:
    model = LanguageModel(tokens=tokens, steps=1, hidden=4, batch_size=2, window=8).fit(story).text_model_
    ids = model.encode(TEXT[:1500]).tolist()
    pieces = list(model.decode_stream(iter(ids)))
    assert "".join(pieces) == model.decode(ids)
    assert len(pieces) == len(ids) + 1
    assert model.decode(ids[:7]) + "".join(model.decode_stream(ids[7:], before=ids[:7])) == model.decode(ids)
    assert model.decode_before(ids[:7], ids[7:]) + model.decode(ids[7:]) == model.decode(ids)


def test_what_is_written_stands_apart_from_the_prompt(story: Path, tmp_path: Path) -> None:
    """Words are joined to a prompt as in a text; line ends and cleaning are those of the run."""
    out = tmp_path / "run"
    words = (
        LanguageModel(tokens="word", steps=1, hidden=4, batch_size=2, window=8, out=out)
        .fit(story)
        .text_model_
    )
    texts = [words.generate("the time", 3, seed=seed) for seed in range(20)]
    seed = next(seed for seed, text in enumerate(texts) if text.startswith(" "))
    written = texts[seed]
    drawn = list(islice(words.tokens("the time", seed=seed), 3))
    assert words.encode("the time" + written)[2:].tolist() == drawn
    for prompt in ("the time", "the time "):
        shown = unspool("generate", out, "--prompt", prompt, "--length", 3, "--seed", seed).stdout
        assert shown == "the time" + written + "\n"
    cleaned = replace(
        words, settings=TextConfig(clean=True), tokenizer=make_tokenizer("word", newlines=False)
    )
    assert cleaned.unknown("The TIME!") == []
    lines = replace(words, settings=TextConfig(tokens="word", newlines="lf"))
    assert lines.encode("the\r\ntime").tolist() == words.encode("the\ntime").tolist()


@pytest.mark.parametrize("cut", [b"\xe6\x97\xb6", b"\xff\xff\xff\xc3\xa9", b"\xe6\xe6\x97\xb6a\xf0\x9f"])
def test_bytes_are_spelled_when_a_character_is_complete(cut: bytes) -> None:
    tokens = list(cut.decode("latin-1"))
    assert "".join(ByteTokenizer().decode_stream(tokens)) == cut.decode("utf-8", "replace")
    assert len(list(ByteTokenizer().decode_stream(tokens))) == len(tokens) + 1


def test_the_short_way_trains_judges_and_writes(tmp_path: Path) -> None:
    model = LanguageModel(
        cell="gru", hidden=24, batch_size=4, window=16, steps=120, learning_rate=0.01, out=tmp_path / "run"
    )
    assert model.fit(TEXT) is model
    assert model.perplexity(TEXT[:400]) == model.text_model_.measure(text_source(TEXT[:400])).perplexity < 8
    assert model.score(TEXT[:400]) < 0
    assert model.config_.fixed.hidden == 24 and model.curve_[-1][0] == 120
    again = LanguageModel.load(tmp_path / "run")
    assert again.generate("the ", 30, seed=2) == model.generate("the ", 30, seed=2)
    assert LanguageModel(**model.get_params()).get_params() == model.get_params()
    assert model.set_params(seed=4, hidden=8).get_params()["hidden"] == 8


def test_a_model_without_knowledge_scores_exactly_the_size_of_its_vocabulary() -> None:
    for K in (2, 3, 65, 71, 4447):
        assert measure(np.full(997, -np.log(K))).perplexity == K


def test_a_full_disk_is_one_line_and_leaves_what_was_there(story: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = [
        sys.executable,
        "-m",
        "unspool",
        "train",
        str(story),
        "--out",
        str(out),
        "--steps",
        "9",
        *SIZES,
    ]
    whole = subprocess.run([*command, "--save-every", "1"], check=True, capture_output=True)
    assert whole.returncode == 0
    room = (out / TRAINING).stat().st_size
    command[command.index(str(out))] = str(tmp_path / "small")
    limited = f"ulimit -f {room // 1024 // 8}; exec {shlex.join(command)}"
    failed = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, check=False)
    assert failed.returncode == 2 and len(failed.stderr.splitlines()) == 1
    assert "cannot be written" in failed.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]
    # The disk fills up later: what was saved before is whole.
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    again = f"ulimit -f {room // 1024 // 2}; exec {shlex.join([*command[:3], 'resume', str(out)])}"
    unfinished(out)
    failed = subprocess.run(["bash", "-c", again], capture_output=True, text=True, check=False)
    assert failed.returncode == 2 and "cannot be written" in failed.stderr, failed.stderr
    assert {path.name for path in out.iterdir()} >= {TRAINING, MODEL}
    TextModel.load(out)
    assert read_arrays(out / TRAINING)[1]["step"] == 3 and before


def unfinished(out: Path) -> None:
    """Take a finished run back to its third update."""
    saved = out.parent / "saved"
    shutil.move(out, saved)
    config = RunConfig.from_json(json.loads((saved / "config.json").read_text())["run"])
    stop_after(3, run(config, out=out))
    shutil.rmtree(saved)


def test_curves_for_tensorboard_are_written_on_request(story: Path, tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    unspool("train", story, "--out", tmp_path / "run", "--steps", 5, "--tensorboard", *SIZES)
    (file,) = (tmp_path / "run" / "tensorboard").iterdir()
    assert b"loss/valid" in file.read_bytes() and b"loss/train" in file.read_bytes()


MISTAKES = {
    "no text": (["train", "{nowhere}", "--out", "{new}"], "no such file"),
    "run exists": (["train", "{story}", "--out", "{run}"], "unspool resume"),
    "no permission": (["train", "{story}", "--out", "/proc/run"], "cannot be written"),
    "short text": (["train", "{story}", "--out", "{new}", "--window", "90000", "--steps", "1"], "too short"),
    "too large": (["train", "{story}", "--out", "{new}", "--hidden", "3000000", "--steps", "1"], "GiB"),
    "both": (["train", "{story}", "--out", "{new}", "--steps", "1", "--minutes", "1"], "not both"),
    "cell": (["train", "{story}", "--out", "{new}", "--cell", "transformer"], "elman"),
    "hidden": (["train", "{story}", "--out", "{new}", "--hidden", "0", "--steps", "1"], "hidden is 0"),
    "dropout": (["train", "{story}", "--out", "{new}", "--dropout", "1.5", "--steps", "1"], "dropout is 1.5"),
    "rate": (
        ["train", "{story}", "--out", "{new}", "--learning-rate", "-1", "--steps", "1"],
        "learning_rate",
    ),
    "no run": (["resume", "{nowhere}"], "no such run"),
    "not a run": (["evaluate", "{folder}"], "not a run"),
    "part": (["evaluate", "{run}", "--part", "test"], "nothing to predict"),
    "part of a text": (["evaluate", "{run}", "{story}", "--part", "valid"], "leave it out"),
    "empty": (["evaluate", "{run}", "{empty}"], "empty"),
    "temperature": (["generate", "{run}", "--temperature", "-1"], "temperature"),
    "length": (["generate", "{run}", "--length", "-1"], "length is -1"),
    "top-p": (["generate", "{run}", "--top-p", "0"], "top_p"),
    "state": (["generate", "{run}", "--state", "{story}"], "not a saved state"),
    "restart": (
        ["train", "{story}", "--out", "{new}", "--batches", "random", "--restart", "0.1"],
        "leave restart out",
    ),
    "folders": (["train", "{nowhere}", "--out", "{new}/deep/run"], "no such file"),
    "bptt": (["train", "{story}", "--out", "{new}", "--bptt", "truncated:9,4", "--steps", "1"], "K2 is 4"),
    "random": (["train", "{story}", "--out", "{new}", "--bptt", "random:0", "--steps", "1"], "P is 0"),
    "look": (["train", "{story}", "--out", "{new}", "--validation-tokens", "1"], "validation_tokens is 1"),
    "nan": (["train", "{story}", "--out", "{new}", "--learning-rate", "nan"], "learning-rate is nan"),
    "all unknown": (["train", "{story}", "--out", "{new}", "--min-freq", "99999"], "<unk>"),
    "twice": (["train", "-", "--valid=-", "--out", "{new}"], "only once"),
    "save-every": (["resume", "{run}", "--save-every", "0"], "save_every is 0"),
    "order": (["evaluate", "{run}", "--order", "500"], "order is 500"),
    "threads": (["generate", "{run}", "--threads", "0"], "threads"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_one_line_and_nothing_is_lost(
    name: str, trained: Path, story: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty.txt").write_text("")
    before = {path: path.read_bytes() for path in trained.rglob("*") if path.is_file()}
    locations = {"nowhere": tmp_path / "nowhere", "new": tmp_path / "new", "story": story, "run": trained}
    locations |= {"folder": tmp_path, "empty": tmp_path / "empty.txt"}
    arguments, expected = MISTAKES[name]
    done = unspool(*(argument.format(**locations) for argument in arguments), check=2)
    assert len(done.stderr.splitlines()) == 1 and expected in done.stderr, done.stderr
    assert not (tmp_path / "new").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["empty.txt"]
    assert before == {path: path.read_bytes() for path in trained.rglob("*") if path.is_file()}


def test_a_command_that_fails_leaves_no_default_folder(
    tmp_path: Path, story: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    unspool("train", "nofile", check=2)
    assert not list(tmp_path.iterdir())
    (tmp_path / "runs").mkdir()
    unspool("train", story, "--window", "90000", "--steps", "1", check=2)
    assert [path.name for path in tmp_path.rglob("*")] == ["runs"]  # it was there before


def test_random_windows_have_no_restarts(story: Path) -> None:
    made = LanguageModel(batches="random", steps=2, hidden=8, order=1).fit(story)
    assert made.config_.fixed.restart == 0.0


def test_the_mixture_is_advised_where_ngrams_are_better_than_the_network(story: Path, tmp_path: Path) -> None:
    for steps, wanted in ((3, True), (150, False)):
        out = tmp_path / str(steps)
        train = ["train", story, "--out", out, "--order", 2, "--steps", steps, "--learning-rate", 0.02]
        printed = [unspool(*train, *SIZES).stdout, unspool("show", out).stdout]
        for each in printed:
            assert (f"unspool generate {out} --model mixture --prompt" in each) == wanted
            assert (f"unspool generate {out} --prompt" in each) != wanted


def test_a_closed_pipe_ends_a_command_quietly(trained: Path) -> None:
    command = shlex.join([sys.executable, "-m", "unspool", "evaluate", str(trained), "--order", "0"])
    script = f"{{ {command}; echo $? >&2; }} | true"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr == "141\n"


def test_a_journal_that_was_deleted_begins_anew(story: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    unspool("train", story, "--out", out, "--steps", 5, *SIZES)
    (out / "log.jsonl").unlink()
    unspool("resume", out)
    assert ["judged" in entry for entry in read_log(out / "log.jsonl")] == [True]


def test_a_run_is_loaded_that_was_made_before_a_setting_existed(trained: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    shutil.copytree(trained, old)
    content = read_json(old / "config.json")
    del content["model"]["learn_h0"]
    write_json(old / "config.json", content)
    assert TextModel.load(old).generate("the", 9) == TextModel.load(trained).generate("the", 9)


def test_an_update_of_few_steps_reads_few_tokens(story: Path, tmp_path: Path) -> None:
    sizes = ["--steps", 14, "--batch", 4, "--hidden", 4, "--bptt", "truncated:2"]
    printed = unspool("train", story, "--out", tmp_path / "run", *sizes).stdout
    assert f"{14 * 4 * 2 / (0.9 * len(TEXT)):.1f} epochs" in printed


def test_a_stop_while_the_model_is_judged_is_at_once_and_says_how_to_go_on(
    story: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, scoring = tmp_path / "run", list[Event]()
    given = {"hidden": 8, "B": 4, "tau": 16, "steps": 3}
    monkeypatch.setattr(View, "show", lambda _, event: scoring.extend([event] * isinstance(event, Scoring)))
    monkeypatch.setattr(Stop, "__call__", lambda _: bool(scoring))
    monkeypatch.setattr(Stop, "listen", lambda _: None)
    events = run(RunConfig((str(story),), given=given), out=out)
    with pytest.raises(SystemExit, match="130"):
        follow(events, out, OutputOptions(quiet=True), tensorboard=False)
    assert len(scoring) == 1 and f"unspool resume {out}" in capsys.readouterr().err
    assert read_arrays(out / TRAINING)[1]["step"] == 3
