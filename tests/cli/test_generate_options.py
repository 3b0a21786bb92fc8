"""`unspool generate --stop`, `--min-p` and `--repetition-penalty` as people use them."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from unspool.cli.main import main
from unspool.data.text.settings import TextConfig
from unspool.data.tokens.registry import make_tokenizer
from unspool.data.tokens.vocab import Vocab
from unspool.model.config import ModelConfig
from unspool.model.generate import Sampling
from unspool.model.network import Model
from unspool.storage.run_folder import new_run
from unspool.storage.tensors import read_arrays, write_arrays
from unspool.tasks.language.text_model import TextModel

PROMPT = ["--prompt", "the cat ", "--seed", "3"]


def saved_model(place: Path, *, backward: bool) -> tuple[TextModel, str]:
    vocab = Vocab(list("the cat sat on the mat\n"))
    config = ModelConfig(cell="gru", inputs=len(vocab), outputs=len(vocab), hidden=8)
    made = TextModel(Model.initialise(config, seed=1), vocab, make_tokenizer("char"), TextConfig(), backward)
    run = place / "run"
    with new_run(run) as folder:
        made.save(folder)
    return made, str(run)


@pytest.fixture(scope="module", params=[False, True], ids=["forward", "backward"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[TextModel, str]:
    return saved_model(tmp_path_factory.mktemp("runs"), backward=request.param)


@pytest.fixture
def forward_run(tmp_path: Path) -> str:
    return saved_model(tmp_path, backward=False)[1]


def generated(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["generate", *arguments]) == 0
    return capsys.readouterr().out


def test_the_text_ends_before_the_stop_text_and_json_names_it(
    model: tuple[TextModel, str], capsys: pytest.CaptureFixture[str]
) -> None:
    made, run = model
    length = ["--length", "90"]
    whole = json.loads(generated(capsys, run, *PROMPT, *length, "--json"))
    assert whole["stopped"] == [None]
    text = whole["texts"][0]
    stop = text[30:32]
    found = json.loads(generated(capsys, run, *PROMPT, *length, "--stop", "@@", "--stop", stop, "--json"))
    ended = text[text.rindex(stop) + 2 :] if made.backward else text[: text.index(stop)]
    assert found["texts"] == [ended] and found["stopped"] == [stop]
    printed = generated(capsys, run, *PROMPT, *length, "--stop", stop)
    assert printed == (ended + "the cat \n" if made.backward else f"the cat {ended}\n")
    two = json.loads(generated(capsys, run, *PROMPT, *length, "--stop", stop, "--samples", "2", "--json"))
    assert two["texts"][0] == ended and len(two["stopped"]) == 2


def test_a_saved_state_goes_on_after_the_stop_text(
    forward_run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = forward_run
    state = str(tmp_path / "state")
    penalty = ["--repetition-penalty", "1.5", "--repetition-window", "9"]
    whole = generated(capsys, run, *PROMPT, "--length", "60", *penalty)
    stop = whole[20:22]
    first = generated(capsys, run, *PROMPT, "--length", "60", "--stop", stop, *penalty, "--save-state", state)
    begun = first.rstrip("\n") + stop
    assert whole.startswith(begun)
    again = ["--state", state, "--length", "30", *penalty]
    assert whole.startswith(begun + generated(capsys, run, *again).removesuffix("\n"))
    arrays, metadata = read_arrays(state)  # a state of an older version has no history
    write_arrays(
        state, {name: each for name, each in arrays.items() if name[0] in "hs" and "." in name}, metadata
    )
    assert not whole.startswith(begun + generated(capsys, run, *again).removesuffix("\n"))
    write_arrays(state, arrays | {"recent": np.array([99], np.int32)}, metadata)
    assert main(["generate", run, "--state", state]) == 2
    assert "recent" in capsys.readouterr().err


def test_options_are_those_of_the_python_api(
    model: tuple[TextModel, str], capsys: pytest.CaptureFixture[str]
) -> None:
    made, run = model
    how = Sampling(1.1, 6, 0.95, 0.05, 1.3, 12)
    options = ["--temperature", "1.1", "--top-k", "6", "--top-p", "0.95", "--min-p", "0.05"]
    options += ["--repetition-penalty", "1.3", "--repetition-window", "12", "--length", "50", "--json"]
    (text,) = json.loads(generated(capsys, run, *PROMPT, *options))["texts"]
    assert text == made.generate("the cat ", 50, seed=3, sampling=how)
    assert list(islice(made.tokens("the cat ", seed=3, sampling=how), 50)) != list(
        islice(made.tokens("the cat ", seed=3, sampling=Sampling(1.1, 6, 0.95)), 50)
    )


def test_the_prompt_is_decoded_before_the_first_token_is_drawn(model: tuple[TextModel, str]) -> None:
    """So that the time of a token does not contain the length of the prompt."""
    taken = list[str]()

    def noted(name: str, ids: list[int]) -> Iterator[int]:
        for index in ids:
            taken.append(name)
            yield index

    class Prompt(list[int]):
        def __iter__(self) -> Iterator[int]:
            return noted("prompt", list(self[:]))

    pieces = model[0].decode_stream(noted("token", [1, 2, 3]), Prompt([1, 2, 1, 2]))
    assert taken == ["prompt"] * 4
    assert next(pieces) == model[0].vocab.to_tokens(1) and taken == ["prompt"] * 4 + ["token"]


@pytest.mark.parametrize("name", ["text", "model"])
def test_a_file_that_is_no_state_is_called_so(
    name: str, forward_run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_text("not a state")
    file = tmp_path / "text" if name == "text" else Path(forward_run, "model.safetensors")
    assert main(["generate", forward_run, "--state", str(file)]) == 2
    printed = capsys.readouterr().err
    assert f"{file}: not a saved state" in printed and "--save-state" in printed and printed.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"the \n\xe9", "line 2: byte 0xe9 is not UTF-8"), (None, "no such file"), (b"", None)],
)
def test_a_prompt_file_that_cannot_be_read_is_one_line_without_pythons_words(
    content: bytes | None,
    message: str | None,
    forward_run: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "prompt.txt"
    if content is not None:
        file.write_bytes(content)
    code = main(["generate", forward_run, "--prompt-file", str(file), "--length", "3"])
    printed = capsys.readouterr().err
    assert code == (2 if message else 0) and printed.count("\n") == bool(message)
    assert (message or "") in printed and "codec" not in printed and "Errno" not in printed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--stop", ""], "at least one character"),
        (["--min-p", "1.5"], "min_p is 1.5"),
        (["--repetition-penalty", "0"], "repetition_penalty is 0"),
        (["--repetition-window", "5000"], "repetition_window is 5,000"),
    ],
)
def test_what_has_no_meaning_is_refused_in_one_line(
    options: list[str], message: str, model: tuple[TextModel, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", model[1], *PROMPT, *options]) == 2
    printed = capsys.readouterr().err
    assert message in printed and printed.count("\n") == 1
