"""Free memory and threads: the limits of the machine, of control groups and of the process."""

import os
import resource
import subprocess
import sys

import numpy as np
import pytest

from unspool import Model, ModelConfig
from unspool.errors import InputError
from unspool.gradients.bptt import backpropagate, bytes_of_model_tape
from unspool.kernels import cgroup, memory
from unspool.kernels.memory import available, require_memory


def group(tmp_path, membership, **files):
    """Write the files of control groups, given as path=text with __ for /; return where they are."""
    (tmp_path / "self").write_text(membership)
    for name, text in files.items():
        path = tmp_path / "fs" / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "self", tmp_path / "fs"


def test_version_2_leaves_the_limit_without_what_is_used_but_for_file_cache(tmp_path):
    places = group(
        tmp_path,
        "0::/app/job\n",
        app__job__memory_DOT_max="1000\n",
        app__job__memory_DOT_current="700\n",
        app__job__memory_DOT_stat="anon 500\ninactive_file 150\n",
        app__memory_DOT_max="max\n",
        app__memory_DOT_current="800\n",
    )
    assert cgroup.free_memory(*places) == 1000 - 700 + 150


def test_the_tightest_group_above_counts(tmp_path):
    places = group(
        tmp_path,
        "0::/app/job\n",
        app__job__memory_DOT_max="1000\n",
        app__job__memory_DOT_current="100\n",
        app__memory_DOT_max="500\n",
        app__memory_DOT_current="450\n",
    )
    assert cgroup.free_memory(*places) == 50


def test_version_1_is_read_as_well_and_a_host_path_falls_back_to_the_mount(tmp_path):
    places = group(
        tmp_path,
        "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n",
        memory__memory_DOT_limit_in_bytes="2000\n",
        memory__memory_DOT_usage_in_bytes="1500\n",
        memory__memory_DOT_stat="total_inactive_file 100\n",
        **{"cpu,cpuacct__cpu_DOT_cfs_quota_us": "150000\n", "cpu,cpuacct__cpu_DOT_cfs_period_us": "100000\n"},
    )
    assert cgroup.free_memory(*places) == 600
    assert cgroup.cpus(*places) == 2, "a quota of one and a half is rounded up"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("max 100000\n", None), ("50000 100000\n", 1), ("400000 100000\n", 4), ("rubbish", None)],
)
def test_the_quota_of_cpu_time(tmp_path, text, expected):
    assert cgroup.cpus(*group(tmp_path, "0::/\n", cpu_DOT_max=text)) == expected


def test_without_control_groups_there_is_no_limit(tmp_path):
    places = (tmp_path / "none", tmp_path / "nowhere")
    assert cgroup.free_memory(*places) is None
    assert cgroup.cpus(*places) is None


def test_the_least_of_all_limits_counts(monkeypatch):
    monkeypatch.setattr(cgroup, "free_memory", lambda: 12_345)
    assert available() == 12_345
    monkeypatch.setattr(cgroup, "free_memory", lambda: None)
    monkeypatch.setattr(memory, "_of_machine", lambda: 99_999)
    assert available() == 99_999


@pytest.mark.skipif(sys.platform != "linux", reason="sizes of a process are read from /proc")
@pytest.mark.parametrize("limit", [resource.RLIMIT_AS, resource.RLIMIT_DATA])
def test_the_limits_of_the_process_count_without_what_it_uses(limit):
    code = f"""
import resource
from unspool.kernels.memory import available
resource.setrlimit({limit}, (2**32, 2**32))
print(available())"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 2**32


def test_what_does_not_fit_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 2**30)
    require_memory(2**30, "this", "choose less")
    with pytest.raises(
        InputError, match=r"this needs about 2\.0 GiB of memory, and 1\.0 GiB are free: choose less"
    ):
        require_memory(2**31, "this", "choose less")
    with pytest.raises(InputError, match=r"needs about 10\^"):
        require_memory(10**4000, "this", "choose less")


def threads(prefix=(), **environment):
    clean = {k: v for k, v in os.environ.items() if k not in ("UNSPOOL_THREADS", "OMP_NUM_THREADS")}
    code = "from unspool.kernels.native import kernel_info; print(kernel_info()['threads'])"
    command = [*prefix, sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=clean | environment)
    return int(done.stdout)


def test_threads_follow_our_variable_then_openmps_then_the_affinity_mask():
    assert threads(UNSPOOL_THREADS="3", OMP_NUM_THREADS="5") == 3
    assert threads(OMP_NUM_THREADS="5,1") == 5
    pinned = "import os, sys; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]); os.execv(sys.argv[1], sys.argv[1:])"
    assert threads([sys.executable, "-c", pinned], OMP_NUM_THREADS="a,b") == 1, (
        "rubbish is not ours to refuse"
    )


def test_a_quota_of_cpu_time_limits_the_threads(monkeypatch):
    from unspool.kernels import machine

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(cgroup, "cpus", lambda: 3)
    assert machine.default_threads() == 3
    monkeypatch.setattr(cgroup, "cpus", lambda: None)
    assert machine.default_threads() == 8


DAEMONS = """
import threading, time
import numpy as np
from unspool.kernels import native
a = np.ones((300, 300), np.float32)
def work():
    while True:
        native.matmul(a, a)
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
"""


def test_a_daemon_thread_inside_a_kernel_lets_the_interpreter_end_cleanly():
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", DAEMONS], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")


RACE = """
import threading, time
import numpy as np
from unspool.cells.elman import CELL
from unspool.errors import InputError
from unspool.kernels import native
from unspool.kernels.tape import Lookup
R = 400_000
given = np.zeros(R, np.int32)
wrong, right = np.full(R, 2**31 - 1, np.int32), np.zeros(R, np.int32)
table, rows = np.ones((4, 8), np.float32), np.ones((R, 8), np.float32)
V, c = np.ones((4, 8), np.float32), np.zeros(4, np.float32)
h0, W, p = np.zeros((R // 4, 2), np.float32), np.eye(2, dtype=np.float32), np.zeros((4, R // 4, 2), np.float32)
window = Lookup(np.ones((4, 2), np.float32), given.reshape(4, -1))
calls = [
    lambda: native.gather(table, given),
    lambda: native.scatter_add(table, given, rows),
    lambda: native.sum_over_time(rows, rows, np.zeros((8, 8), np.float32), accumulate=False, lookup=Lookup(table, given)),
    lambda: native.softmax_cross_entropy(rows, V, c, given),
    lambda: native.window_forward(CELL, window, W, h0),
    lambda: native.window_forward(CELL, p, W, h0, lengths=given[: R // 4]),
]
over = threading.Event()
def change():
    while not over.is_set():
        given[:] = wrong
        given[:] = right
changer = threading.Thread(target=change)
changer.start()
for i in range(60):
    try:
        calls[i % len(calls)]()
    except InputError:
        pass
over.set()
changer.join()
"""


def test_ids_that_another_thread_changes_during_a_call_are_refused_or_used_as_they_were():
    done = subprocess.run([sys.executable, "-c", RACE], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_window_that_fitted_once_is_not_refused_for_memory_that_the_process_holds(monkeypatch):
    model = Model.initialise(ModelConfig(cell="elman", inputs=3, outputs=3, hidden=512), seed=0)
    x = np.zeros((700, 30), np.int32)
    assert bytes_of_model_tape(model.config, 700, 30) > memory.UNCHECKED
    backpropagate(model, x, x, None, model.gradient())
    monkeypatch.setattr(memory, "available", lambda: 2**20)
    backpropagate(model, x, x, None, model.gradient())
    longer = np.zeros((701, 30), np.int32)
    with pytest.raises(InputError, match="the tape of 701 steps"):
        backpropagate(model, longer, longer, None, model.gradient())
