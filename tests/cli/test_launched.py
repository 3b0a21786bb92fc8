"""unspool under torchrun and mpiexec, over loopback: the bits of one process, whatever happens to a worker."""

import hashlib
import json
import sys

import pytest

import launched
from command_line import must
from launched import lines_of, mpi, mpiexec, torchrun
from unspool.cli.launched import refuse_command
from unspool.cluster import start
from unspool.cluster.cost import Cost, bytes_moved
from unspool.cluster.group import timeout
from unspool.errors import InputError, UnspoolError
from unspool.kernels.machine import kernel_info
from unspool.storage import run_folder

ISAS = [name for name in kernel_info()["available"] if name in ("plain", "avx2", "avx512", "neon")]
needs_mpi = pytest.mark.skipif(mpi() is None, reason="mpi4py and mpich are not installed")
TEXT = "the river falls over the green hill and the quick fox sees the sun. " * 120


def sha_of(run):
    return hashlib.sha256((run / run_folder.MODEL).read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    place = tmp_path_factory.mktemp("data")
    (place / "text.txt").write_text(TEXT)
    rows = "".join(f"{'ab' * (1 + i % 4)}{'cd'[i % 2]},{'cd'[i % 2]}\n" for i in range(40))
    (place / "table.csv").write_text("text,label\n" + rows)
    return place


def train(data, cell, out, steps=12):
    more = [
        "--dropout",
        0.2,
        "--precision",
        "float32",
        "--order",
        1,
        "--validations",
        3,
        "--validation-tokens",
        200,
    ]
    return ["train", data / "text.txt", "--shards", 4, "--batch", 8, "--window", 16, "--steps", steps, "--hidden", 12, "--cell", cell,
            *more, "--quiet", "--out", out]  # fmt: skip


def classify(data, out):
    return [
        "classify",
        "fit",
        data / "table.csv",
        "--shards",
        4,
        "--batch",
        8,
        "--steps",
        12,
        "--hidden",
        8,
        "--quiet",
        "--out",
        out,
    ]


def alone(arguments):
    must(*map(str, arguments))


def test_workers_that_are_killed_are_started_again_and_the_run_ends_in_the_same_bits(data, tmp_path):
    command = [*train(data, "lstm", tmp_path / "killed", steps=16), "--save-every", 2]
    faults = [{"rank": 1 + i, "restart": i, "update": 9, "signal": "SIGKILL"} for i in range(2)]
    done = torchrun(3, *command, restarts=2, faults=faults, ISAS=" ".join(ISAS))
    assert done.returncode == 0, done.stderr
    said = lines_of(done)
    assert len(said) == 4 and all(
        "lost another process" in line for line in said
    )  # on both others, each time
    alone(train(data, "lstm", tmp_path / "alone", steps=16))
    assert sha_of(tmp_path / "killed") == sha_of(tmp_path / "alone")


def test_a_frozen_worker_ends_the_job_and_the_run_goes_on_with_another_number_of_processes(data, tmp_path):
    out = tmp_path / "frozen"
    fault = {"rank": 1, "restart": 0, "update": 9, "signal": "SIGSTOP"}
    done = torchrun(
        2, *train(data, "gru", out), "--save-every", 1, faults=[fault], UNSPOOL_CLUSTER_TIMEOUT="4"
    )
    assert done.returncode == 1
    (line,) = lines_of(done)
    assert "rank 0 of 2 lost another process" in line and "set UNSPOOL_CLUSTER_TIMEOUT" in line
    if mpi() is None:
        alone(["resume", out, "--quiet"])
    else:
        done = mpiexec(3, "resume", out, "--quiet", isas=ISAS)
        assert done.returncode == 0, done.stderr
    alone(train(data, "gru", tmp_path / "alone"))
    assert sha_of(out) == sha_of(tmp_path / "alone")


def test_a_signal_to_a_worker_saves_and_stops_the_run(data, tmp_path):
    out = tmp_path / "stopped"
    fault = {"rank": 1, "restart": 0, "update": 10, "signal": "SIGTERM"}
    done = torchrun(2, *classify(data, out), faults=[fault])
    assert done.returncode == 1 and (out / run_folder.TRAINING).exists()
    (line,) = lines_of(done)
    assert "everything is saved; resume with: unspool resume" in line
    alone(["resume", out, "--quiet"])
    alone(classify(data, tmp_path / "alone"))
    assert sha_of(out) == sha_of(tmp_path / "alone")


@needs_mpi
@pytest.mark.parametrize(("cell", "P"), [("elman", 4), ("lnlstm", 2)])
def test_mpiexec_trains_to_the_bits_of_one_process_on_different_instruction_sets(cell, P, data, tmp_path):
    done = mpiexec(P, *train(data, cell, tmp_path / "many"), isas=ISAS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str(tmp_path / "many")]
    alone([*train(data, cell, tmp_path / "alone"), "--threads", 2])
    assert sha_of(tmp_path / "many") == sha_of(tmp_path / "alone")


@needs_mpi
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (["--shards", "2"], "there are 3 processes, and shards is 2"),
        (["--shards", "3", "--batch", "8"], "shards is 3 and the batch has 8 rows"),
        (["--shards", "x"], "--shards"),
    ],
)
def test_bad_input_is_one_line_of_rank_0_and_nothing_is_written(change, said, data, tmp_path):
    out = tmp_path / "run"
    done = mpiexec(3, "train", data / "text.txt", "--steps", 3, "--quiet", "--out", out, *change)
    (line,) = lines_of(done)
    assert said in line and done.returncode == 2 and done.stdout == "" and list(tmp_path.iterdir()) == []


def test_other_commands_are_refused_in_several_processes():
    for tokens in (["stats", "x"], ["classify", "predict"], []):
        with pytest.raises(UnspoolError, match="runs in one process"):
            refuse_command(tokens)
    for tokens in (["train", "x"], ["resume", "x"], ["translate", "fit"]):
        refuse_command(tokens)


def test_processes_with_other_versions_arguments_or_texts_are_refused(tmp_path):
    first = {"version": "0.1.0 (aa)", "arguments": ["train", "x"], "files": {"x": "1"}}
    differences = {
        "rank 1 unspool 0.2.0": {"version": "0.2.0"},
        "rank 1 was started with other arguments": {"arguments": ["train", "y"]},
        "x: rank 1 has another file": {"files": {"x": "2"}},
    }
    for said, change in differences.items():
        assert said in start._difference([first, first | change])
    assert start._difference([first, first | {"files": {}}]) == ""


def test_a_timeout_that_is_not_a_number_of_seconds_is_refused(monkeypatch):
    for text in ("0", "soon", "1e9"):
        monkeypatch.setenv("UNSPOOL_CLUSTER_TIMEOUT", text)
        with pytest.raises(InputError, match="UNSPOOL_CLUSTER_TIMEOUT is"):
            timeout()


def test_a_missing_transport_is_one_line(data, tmp_path):
    environment = launched.environment(PMI_RANK="0", PMI_SIZE="2", MPI4PY_LIBMPI="/nowhere/libmpi.so")
    done = launched._run(
        [sys.executable, "-m", "unspool", *map(str, train(data, "gru", tmp_path / "x"))], environment
    )
    assert done.returncode == 2 and lines_of(done) == [
        "unspool: mpiexec needs mpi4py and an MPI library: pip install 'unspool[mpi]'"
    ]


def test_the_cost_model_counts_shards_bytes_and_advises_a_batch_that_pays():
    cost = Cost(4, 8, 64, shard=0.01, rest=0.001, latency=5e-5, bandwidth=1e9, moved=9e6)
    assert cost.alone == pytest.approx(0.081) and cost.together == pytest.approx(0.021 + 0.00915)
    B = cost.batch_for(0.8)
    assert B % 8 == 0 and B > 64
    larger = Cost(4, 8, B, shard=0.01 * B / 64, rest=0.001, latency=5e-5, bandwidth=1e9, moved=9e6)
    assert larger.speedup >= 0.8 * 4 and "--batch" not in larger.line()
    assert bytes_moved(100, S=4, P=4) == 4 * 100 * 2 * 3 / 4  # the volume of a ring all-reduce
    assert json.dumps(cost.line())
