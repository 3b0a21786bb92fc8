"""Several processes train one model to the bits of one process: here they are threads, with queues as their transport."""

import queue
import threading
from itertools import islice

import numpy as np
import pytest

from cases import CELLS
from unspool.cluster import group as groups
from unspool.cluster.group import ALONE, Group
from unspool.cluster.message import Message
from unspool.cluster.tree import Node, nodes_inside, postorder, shards_of
from unspool.data.batches.text_windows import Batch
from unspool.errors import Diverged, InputError, ProcessLost
from unspool.gradients.truncation import CarriedState, Truncation
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.optimisers import make_optimiser
from unspool.tasks import SequenceClassifier, SequenceTranslator
from unspool.training.follow import follow
from unspool.training.loop import train


class Queues:
    """A transport between threads."""

    name = "threads"

    def __init__(self, rank, boxes, seconds=20):
        self.rank, self.size, self.boxes, self.seconds = rank, len(boxes), boxes, seconds

    def exchange(self, parts, sizes):
        for p, part in enumerate(parts):
            self.boxes[self.rank][p].put(np.array(part))
        try:
            found = [self.boxes[p][self.rank].get(timeout=self.seconds) for p in range(self.size)]
        except queue.Empty:
            raise ProcessLost("no answer") from None
        assert [len(part) for part in found] == list(sizes)
        return found

    def gather(self, part):
        return np.stack(self.exchange([part] * self.size, [len(part)] * self.size))

    def close(self):
        pass


class Processes:
    """P threads, the first of which is the test."""

    def __init__(self, P, seconds=20):
        boxes = [[queue.Queue() for _ in range(P)] for _ in range(P)]
        self.group, *others = [Group(Queues(rank, boxes, seconds), patience=60) for rank in range(P)]
        self.codes = []
        self.threads = [threading.Thread(target=self._follow, args=(each,), daemon=True) for each in others]

    def _follow(self, group):
        self.codes.append(follow(group))

    def __enter__(self):
        groups.use(self.group)
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *error):
        groups.use(ALONE)
        self.group.end(0)
        for thread in self.threads:
            thread.join(10)
        assert self.codes == [0] * len(self.threads) or error[0] is not None


def windows_of(seed, B=12, tau=6, n=5):
    ids = np.random.default_rng(seed).integers(9, size=(n, tau + 1, B)).astype(np.int32)
    return [Batch(each[:-1], each[1:], i in (0, 3)) for i, each in enumerate(ids)]


def trained(config, P, S, bptt="full", optimiser="adam", seed=0):
    model, carried = Model.initialise(config, seed=seed), CarriedState(Truncation.parse(bptt))
    with Processes(P):
        made = make_optimiser(optimiser)
        reports = list(
            train(model, windows_of(seed), made, seed=3, carried=carried, bptt=carried.truncation, restart=0.2,
                  shards=S, schedule=lambda step: 1 / (step + 1))
        )  # fmt: skip
        state = {name: array.tobytes() for name, array in carried.state().items()}
    return [report.loss for report in reports], model.parameters.flat.tobytes(), state


@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("cell", CELLS)
def test_the_parameters_and_all_states_are_the_same_for_any_number_of_processes(cell, precision):
    more = {} if cell == "elman" else {"recurrent_dropout": 0.2}
    config = ModelConfig(
        cell=cell, inputs=9, outputs=9, hidden=8, dropout=0.3, precision=precision, learn_h0=True, **more
    )
    for S, counts, bptt, optimiser in (
        (4, (2, 3, 4), "truncated:2,5", "adam"),
        (6, (4,), "random:0.8", "sgd"),
    ):
        one = trained(config, 1, S, bptt, optimiser)
        for P in counts:
            assert trained(config, P, S, bptt, optimiser) == one


def test_scheduled_sampling_takes_the_same_steps_in_every_process():
    config = ModelConfig(cell="elman", inputs=9, outputs=9, hidden=8, pattern="output", feedback="token")
    ends = []
    for P in (1, 2):
        model = Model.initialise(config, seed=1)
        with Processes(P):
            list(
                train(
                    model, windows_of(4), make_optimiser("adam"), scheduled_sampling=lambda _: 0.5, shards=2
                )
            )
        ends.append(model.parameters.flat.tobytes())
    assert ends[0] == ends[1]


TEXTS = ["ab" * (1 + i % 4) + "cd"[i % 2] for i in range(23)]
FITS = {
    "classify": (lambda: SequenceClassifier(hidden=6, batch_size=8, shards=4, epochs=3, dropout=0.2, validation=0.2), [t[-1] for t in TEXTS]),
    "translate": (lambda: SequenceTranslator(hidden=6, batch_size=8, shards=8, epochs=2, attention="general"), [t.upper() for t in TEXTS]),
}  # fmt: skip


@pytest.mark.parametrize("name", FITS)
def test_a_fit_goes_on_with_another_number_of_processes_to_the_same_bits(name, tmp_path):
    make, y = FITS[name]
    whole, run = make().fit(TEXTS, y), tmp_path / "run"
    for P in (4, 3):
        with Processes(P):
            reports = make().fit_iter(TEXTS, y, run=run)
            assert groups.current().cost.P == P
            next(islice(reports, 1, None))
            reports.close()
    again = make().fit(TEXTS, y, run=run)
    assert (again.network_.parameters.flat == whole.network_.parameters.flat).all()


def test_a_loss_that_is_not_finite_ends_the_training_on_rank_0_alone():
    model = Model.initialise(ModelConfig(cell="gru", inputs=9, outputs=9, hidden=8), seed=0)
    model.parameters["V"][:] = np.inf
    with Processes(2), pytest.raises(Diverged), np.errstate(all="ignore"):
        list(train(model, windows_of(0), make_optimiser("adam"), shards=2))


def test_a_process_that_does_not_answer_ends_the_training_with_one_line():
    processes = Processes(2, seconds=0.2)
    model = Model.initialise(ModelConfig(cell="gru", inputs=9, outputs=9, hidden=8), seed=0)
    groups.use(processes.group)  # the other thread is never started
    try:
        with pytest.raises(
            ProcessLost, match=r"rank 0 of 2 lost another process.*resume the run from its last checkpoint"
        ):
            list(train(model, windows_of(0), make_optimiser("adam"), shards=2))
        assert processes.group.lost
    finally:
        groups.use(ALONE)


def test_more_processes_than_shards_are_refused():
    with Processes(3), pytest.raises(InputError, match="there are 3 processes, and shards is 2"):
        SequenceClassifier(shards=2).fit(TEXTS, TEXTS)


def test_nodes_of_all_processes_make_up_the_tree():
    for S in range(1, 20):
        for P in range(1, S + 1):
            known = {node: str(node) for p in range(P) for node in nodes_inside(shards_of(p, P, S), S)}
            covered = [i for node in sorted(known) for i in range(node.begin, node.end)]
            assert covered == list(range(S))
            inner = [node for node in postorder(Node(0, S), known) if node not in known]
            assert len(inner) == len(known) - 1


def test_messages_keep_values_and_arrays():
    arrays = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3).T,
        "none": np.zeros((0, 4), np.int64),
        "b": np.array([True]),
    }
    again = Message.from_bytes(Message("x", {"rate": 0.1 + 0.2, "text": "é"}, arrays).to_bytes())
    assert again.values == {"rate": 0.1 + 0.2, "text": "é"}
    for name, array in arrays.items():
        assert again.arrays[name].dtype == array.dtype and (again.arrays[name] == array).all()
        assert again.arrays[name].shape == array.shape


def test_a_batch_of_fewer_rows_than_shards_leaves_some_of_them_empty():
    config = ModelConfig(cell="lstm", inputs=9, outputs=9, hidden=8, dropout=0.2)
    ends = []
    for P in (1, 2, 4):
        model = Model.initialise(config, seed=1)
        windows = [
            Batch(each.x[:, :rows], each.y[:, :rows], True)
            for each, rows in zip(windows_of(4), (12, 3, 1, 12), strict=False)
        ]
        with Processes(P):
            list(train(model, windows, make_optimiser("adam"), shards=4))
        ends.append(model.parameters.flat.tobytes())
    assert ends[0] == ends[1] == ends[2]
