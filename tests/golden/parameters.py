"""SHA-256 of the parameters after 20 updates, for every cell and task: no change of the source may change one.

The runs are made by the command line, and the parameters read from the file that it leaves, so nothing here
depends on how the source is arranged. A hash covers the shapes and bytes of the tensors in the order of the file;
their names stand beside it for information and may change. What no command reaches is trained through public names of
the package (`golden.python_api`). Where a bit is meant to change, write them again:

    PYTHONPATH=tests python -m golden.parameters --write
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from command_line import must
from golden.inputs import write_inputs
from golden.python_api import FROM_PYTHON
from golden.window import trained_on_numbers, trained_on_tokens

STORED = Path(__file__).with_name("parameters.json")
CELLS = ("elman", "gru", "lstm", "lnlstm")
STEPS = ["--steps", "20", "--seed", "3"]
SMALL = ["--hidden", "9", "--batch", "5"]
EACH = "--no-bidirectional --dropout 0"

LANGUAGE = {
    "plain": "--dropout 0",
    "dropout": "--dropout 0.3",
    "dropout in the recurrence": "--dropout 0.2 --recurrent-dropout 0.2",
    "truncated:5": "--dropout 0.1 --bptt truncated:5",
    "truncated:4,9": "--dropout 0 --bptt truncated:4,9",
    "random:0.8": "--dropout 0.1 --bptt random:0.8",
    "sqrt": "--dropout 0.1 --memory sqrt",
    "sqrt, random:0.8": "--dropout 0 --memory sqrt --bptt random:0.8",
    "two layers": "--layers 2 --dropout 0.2",
    "embedding": "--embedding 6 --dropout 0.1",
    "tied": "--embedding 9 --tied --dropout 0.1",
    "learned h0, random batches": "--h0 learned --batches random --dropout 0",
    "sgd": "--optimiser sgd --learning-rate 0.05 --dropout 0",
    "sgd, decay, two layers": "--optimiser sgd --learning-rate 0.05 --decay 0.01 --layers 2 --dropout 0.1",
    "adam, decay, no clipping": "--decay 0.01 --clip 0 --warmup 3 --dropout 0",
    "tight clipping": "--clip 0.05 --dropout 0",
    "backward, words": "--backward --tokens word --dropout 0.1",
}
ELMAN = {
    "relu": "--activation relu --dropout 0",
    "sigmoid": "--activation sigmoid --dropout 0",
    "identity": "--activation identity --learning-rate 0.002 --dropout 0",
    "pattern 10.4, token": "--pattern 10.4 --feedback token --dropout 0.1",
    "pattern 10.4, logits": "--pattern 10.4 --feedback logits --dropout 0.1",
}
SEQUENCES = {
    "plain": EACH,
    "dropout": "--no-bidirectional --dropout 0.3",
    "bidirectional": "--dropout 0.2",
    "two layers": "--layers 2 --dropout 0.2",
    "embedding": "--embedding 5 --dropout 0.1",
    "last parameters": "--validation 0 --dropout 0.1",
}
OF_STATES = {
    "dropout in the recurrence": "--recurrent-dropout 0.2 --dropout 0",
    "remember": f"--remember 12 {EACH}",
    "mean of the states": "--pool mean --dropout 0.1",
}
ATTENDED = {
    "no attention": f"--attention none {EACH}",
    "additive attention": "--attention additive --dropout 0.1",
    "two layers, additive": "--attention additive --layers 2 --dropout 0.2",
}
GENERATED = {
    "plain": "--dropout 0",
    "dropout": "--dropout 0.3",
    "two layers": "--layers 2 --dropout 0.2",
    "embedding, last parameters": "--embedding 5 --validation 0",
    "of vectors": "@vectors.csv --features a b --dropout 0.1",
}
REGRESSED = {
    "vectors": "@flats.csv --dropout 0.1",
    "vectors, spread": "@flats.csv --spread",
    "plain": f"{EACH}",
    "dropout": "--no-bidirectional --dropout 0.3",
    "bidirectional": "--dropout 0.2",
    "two layers, spread": "--layers 2 --spread --dropout 0.2",
    "last parameters": "--validation 0",
    "of texts": "@lengths.csv --target length --text text --embedding 4",
}
FORECAST = {
    "one column": "",
    "two columns": "@two.csv",
    "two members": "--members 2",
    "no season, no change": "--season 1 --power none --differences 0,0",
    "log, window 10": "--power log --window 10 --season 12",
}
FILES = {
    "classify": "names.csv",
    "regress": "waves.csv --target low high --series",
    "tag": "tags.conll",
    "translate": "pairs.tsv",
    "generate-from": "names.csv",
}
WAYS: dict[str, dict[str, str]] = {
    "classify": SEQUENCES | OF_STATES | {"balance": "--balance 0.5"},
    "tag": SEQUENCES,
    "translate": SEQUENCES | ATTENDED,
    "generate-from": GENERATED,
    "regress": REGRESSED | {name: way for name, way in OF_STATES.items() if name != "remember"},
}
COMPARED = ("classify", "regress", "tag")
"""The tasks whose network is compared with baselines; their recipes name it and the rows that are set aside."""
WINDOWS = {
    "window network, numbers": trained_on_numbers,
    "window network, tokens": trained_on_tokens,
}
ON_OTHER_MACHINES = (
    *(f"language, {cell}, dropout in the recurrence" for cell in CELLS),
    "language, lstm, sqrt, random:0.8",
    "classify, gru, two layers",
    "regress, gru, two layers, spread",
    "tag, elman, bidirectional",
    "translate, lstm, two layers, additive",
    "generate-from, gru, dropout",
    "forecast, gru, one column",
    "window network, numbers",
    "window network, tokens",
    "scheduled sampling, half of the steps",
    "from Python, lstm, both directions, two layers",
    "from Python, gru, many tokens",
)
"""The cases that are repeated with another number of threads and on other instruction sets."""


class Tensors(NamedTuple):
    """The hash of a model's parameters, and what they are called."""

    sha256: str
    names: dict[str, list[int]]


def commands() -> dict[str, list[str]]:
    """Give the command of every case that has one; it writes its run to RUN."""
    found = {}
    for cell in CELLS:
        ways = LANGUAGE | (ELMAN if cell == "elman" else {})
        for name, way in ways.items():
            told = [
                *SMALL,
                "--cell",
                cell,
                *["--validations", "2", "--order", "1", "--restart", "0", "--input-scale", "0"],
            ]
            told += [] if "learning-rate" in way else ["--learning-rate", "0.006"]
            told += [] if "truncated" in way else ["--window", "12"]  # a truncation says it itself
            found[f"language, {cell}, {name}"] = ["train", "story.txt", *told, *way.split()]
        for task, ways in WAYS.items():
            for name, way in ways.items():
                if name == "remember" and cell == "elman":  # it has no gates
                    continue
                told = [*SMALL, "--cell", cell]
                if task in COMPARED:
                    told += [
                        "--model",
                        "network",
                        *([] if "--validation" in way else ["--validation", "0.1"]),
                    ]
                told += ["--no-subwords"] if task == "tag" else []
                found[f"{task}, {cell}, {name}"] = [task, "fit", *_with_file(FILES[task], way), *told]
        for name, way in FORECAST.items():
            told = ["--hidden", "9", "--cell", cell, "--horizon", "4", "--model", "network"]
            told += [] if "--members" in way else ["--members", "1"]
            found[f"forecast, {cell}, {name}"] = ["forecast", "fit", *_with_file("sales.csv", way), *told]
    return {name: [*told, *STEPS, "--out", "RUN", "--json"] for name, told in found.items()}


def _with_file(file: str, way: str) -> list[str]:
    """Put the file first: that of the task, or the one that the way names."""
    words = way.split()
    return [words[0][1:], *words[1:]] if way.startswith("@") else [*file.split(), *words]


def hash_of(case: str, **machine: Any) -> Tensors:
    """Make a case's run in a new folder, and hash its parameters."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_inputs(Path())
        if case not in commands():
            return _hash_from_python(case, **machine)
        must(*commands()[case], **machine)
        return read_tensors(Path("RUN/model.safetensors"))


def _hash_from_python(case: str, threads: int = 2, isa: str | None = None) -> Tensors:
    must("--version", threads=threads, isa=isa)  # sets both
    digest, names = hashlib.sha256(), {}
    for name, array in (WINDOWS | FROM_PYTHON)[case]().items():
        names[name] = list(array.shape)
        digest.update(json.dumps([array.dtype.str, names[name]]).encode() + array.tobytes())
    return Tensors(digest.hexdigest(), names)


def read_tensors(path: Path) -> Tensors:
    """Hash shapes and bytes of the tensors of a safetensors file, in their order; it needs no package."""
    content = path.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:begin])
    header.pop("__metadata__", None)
    digest, names = hashlib.sha256(), {}
    for name, about in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        first, last = about["data_offsets"]
        names[name] = about["shape"]
        digest.update(json.dumps([about["dtype"], about["shape"]]).encode())
        digest.update(content[begin + first : begin + last])
    return Tensors(digest.hexdigest(), names)


def all_cases() -> list[str]:
    """Name every case."""
    return [*commands(), *WINDOWS, *FROM_PYTHON]


def stored() -> dict[str, Tensors]:
    """Read the frozen values."""
    return {case: Tensors(**each) for case, each in json.loads(STORED.read_text("utf-8")).items()}


def main() -> None:
    """Print the cases whose hash is another than the frozen one; with --write, freeze what there is now."""
    found = {case: hash_of(case) for case in all_cases()}
    if sys.argv[1:] == ["--write"]:
        content = {case: each._asdict() for case, each in found.items()}
        lines = ",\n".join(f"{json.dumps(case)}: {json.dumps(each)}" for case, each in content.items())
        STORED.write_text(f"{{\n{lines}\n}}\n", "utf-8")
    before = stored()
    for case, each in found.items():
        if case not in before or before[case].sha256 != each.sha256:
            print(f"{case}: {each.sha256}")


if __name__ == "__main__":
    main()
