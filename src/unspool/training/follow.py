"""Train a model with other processes: rank 0 begins (`lead`), the others follow its messages (`follow`) until the end.

begin      the model, the optimiser, and the states of the rows of this process
update     rows of a batch: gradients, their sum over all processes, one update here as on rank 0
collect    the states of the rows of this process, for a checkpoint of rank 0
end        the exit code
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import numpy as np

from unspool.cluster.group import END, Group
from unspool.cluster.message import Message
from unspool.errors import Diverged
from unspool.gradients.truncation import CarriedState, Truncation
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.model.parameters import Parameters, shapes_of
from unspool.model.sequence_config import SequenceConfig
from unspool.model.sequence_layout import shapes_of_network
from unspool.model.sequence_network import Network
from unspool.model.values import State, join_rows, rows_of
from unspool.optimisers import make_optimiser
from unspool.optimisers.base import Optimiser
from unspool.training.hand_out import batch_of, segment_of, state_arrays, state_of
from unspool.training.objectives import SequenceObjective, TextObjective
from unspool.training.shards import Shards

BEGIN, COLLECT = "begin", "collect"
Teamed = TextObjective | SequenceObjective


def lead(objective: Any, optimiser: Optimiser, schedule: Callable[[int], float]) -> None:
    """Give the other processes the model, the optimiser and their rows of the state; do nothing where there are none."""
    if not isinstance(objective, Teamed) or objective.shards.group.size == 1:
        return
    shards, state = objective.shards, optimiser.state()
    shards.schedule = schedule
    values = {
        "optimiser": optimiser.name,
        "settings": asdict(optimiser),
        "step": state.pop("step"),
        "seed": objective.seed,
        "shards": shards.count,
    }
    arrays = {f"optimiser.{name}": array for name, array in state.items()}
    arrays["parameters"] = objective.parameters.flat
    if isinstance(objective, SequenceObjective):
        shards.group.tell_all(
            Message(BEGIN, values | {"network": objective.network.config.to_json()}, arrays)
        )
        return
    carried = objective.carried
    values |= {
        "model": objective.model.config.to_json(),
        "recompute": objective.recompute,
        "bptt": str(carried.truncation),
    }
    begin, B = carried.begin, 0 if carried.begin is None else len(carried.begin[0][0])
    parts = [
        state_arrays(rows_of(begin or [], shards.rows_of_rank(B, rank))) for rank in range(shards.group.size)
    ]
    shards.group.lead([Message(BEGIN, values, arrays | part) for part in parts[1:]])
    carried.begin = state_of(parts[0])

    def collect(own: State) -> State:
        with shards.group.conversation():
            shards.group.tell_all(Message(COLLECT))
            found = shards.group.collect(Message(COLLECT).to_bytes())
        states = [state_of(Message.from_bytes(content).arrays) for content in found[1:]]
        return join_rows([own, *(state for state in states if state is not None)])

    carried.collect = collect


class Follower:
    """A process that computes some shards of every batch."""

    def __init__(self, message: Message, group: Group) -> None:
        values, arrays = message.values, message.arrays
        self.optimiser = make_optimiser(values["optimiser"], **values["settings"])
        state = {name.removeprefix("optimiser."): array for name, array in arrays.items()}
        self.optimiser.restore(state | {"step": values["step"]})
        shards, seed = Shards(values["shards"], group), values["seed"]
        self.objective: Teamed
        if "network" in values:
            of_network = SequenceConfig.from_json(values["network"])
            network = Network(of_network, _filled(Parameters(shapes_of_network(of_network)), arrays))
            self.objective = SequenceObjective(network, seed, shards)
        else:
            config = ModelConfig.from_json(values["model"])
            model = Model(config, _filled(Parameters(shapes_of(config)), arrays))
            carried = CarriedState(Truncation.parse(values["bptt"]), state_of(arrays))
            self.objective = TextObjective(model, carried, seed, values["recompute"], shards=shards)

    def update(self, message: Message) -> None:
        """Compute the own shards of a batch, take part in the sum, and update the parameters."""
        values = message.values
        batch = {name: values[name] for name in ("step", "B", "targets")}
        if isinstance(self.objective, SequenceObjective):
            found = self.objective.compute(batch_of(message), **batch)
        else:
            own = segment_of(message, self.objective.carried.begin)
            found = self.objective.compute(own, own, message.arrays.get("sampled"), **batch)
        if math.isfinite(found.loss.sum):
            with suppress(Diverged):  # rank 0 raises it too, and ends the training
                self.optimiser.update(self.objective.parameters, found.gradient, rate=values["rate"])

    def state(self) -> State:
        """Return the states of the own rows."""
        assert isinstance(self.objective, TextObjective)
        return self.objective.carried.begin or []


def follow(group: Group) -> int:
    """Follow the messages of rank 0; return the exit code that it ends with."""
    follower: Follower | None = None
    while True:
        message = group.follow()
        match message.kind:
            case "begin":
                follower = None  # its memory is free before that of the next one is allocated
                follower = Follower(message, group)
            case "update" if follower is not None:
                follower.update(message)
            case "collect" if follower is not None:
                group.collect(Message(COLLECT, {}, state_arrays(follower.state())).to_bytes())
            case kind:
                assert kind == END
                return int(message.values["code"])


def _filled(parameters: Parameters, arrays: Any) -> Parameters:
    parameters.flat[:] = np.asarray(arrays["parameters"])
    return parameters
