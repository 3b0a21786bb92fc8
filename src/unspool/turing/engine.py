"""Convert automata and machines to models: an Elman layer with relu, in float32.

An automaton needs only units that are 0 or 1, which floats represent exactly (Minsky 1967). The unit e[q,a] is 1 if the last symbol
was a and led to state q:

    e[q,a] ← relu(Σ_{p: δ(p,a) = q} s[p] + x_a(t) - 1),   s[q] = Σ_a e[q,a],   o(t) = s                                    (1)

and one more unit is 1 in h(0) only, for the start state. So words of any length are read exactly.

A Turing machine needs σ(a) = relu(a) - relu(a - 1), so H units with σ become 2H units h⁺, h¹ with relu:

    h⁺(t) = relu(W (h⁺ - h¹)(t-1) + U x(t) + b),   h¹(t) = relu(W (h⁺ - h¹)(t-1) + U x(t) + b - 1)                         (2)

The weights are exact; long stacks exceed the precision of a float (see `floating`).
"""

from __future__ import annotations

import numpy as np

from unspool.cells import PLAIN
from unspool.kernels.arrays import Floats, Ids
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.turing.automaton import Automaton
from unspool.turing.network import MachineNetwork, Rationals


def automaton_model(automaton: Automaton) -> Model:
    """Return an automaton as a model: tokens are its symbols, outputs its states, one of them 1 and the others 0.

    >>> from unspool.turing.builtin import find
    >>> thirds = find("builtin:thirds")
    >>> model = automaton_model(thirds)
    >>> model.config.hidden, model.config.activation
    (7, 'relu')
    >>> model.logits(model.forward(word_ids(thirds, "110")))[:, 0].tolist()  # 1, 3, 6: remainders 1, 0, 0
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    """
    states, symbols, rules = automaton.states, automaton.symbols, automaton.rules
    units = _entered(automaton)
    H = len(units) + 1  # and the unit of the start state
    model = _empty(ModelConfig(inputs=len(symbols), outputs=len(states), cell=PLAIN, activation="relu", hidden=H, learn_h0=True))  # fmt: skip
    U, W, b, h0 = (model.parameters[f"layer0.{name}"] for name in ("U", "W", "b", "h0"))
    leads_to = [*(q for q, _ in units), automaton.start]
    for i, (q, a) in enumerate(units):  # (1)
        W[i] = [rules[p, a] == q for p in leads_to]
        U[i] = [x == a for x in symbols]
        b[i] = -1
    h0[-1] = 1
    model.parameters["V"][:] = [[q == p for p in leads_to] for q in states]
    return model


def unit_labels(automaton: Automaton) -> list[str]:
    """Return the names of an automaton's units."""
    return [*(f"e[{q},{a}]" for q, a in _entered(automaton)), "start"]


def _entered(automaton: Automaton) -> list[tuple[str, str]]:
    """Return the pairs of a state and a symbol that leads to it."""
    states, rules = automaton.states, automaton.rules
    return [(q, a) for q in states for a in automaton.symbols if any(rules[p, a] == q for p in states)]


def word_ids(automaton: Automaton, word: str) -> Ids:
    """Return a word as token ids, int32 (tau, 1)."""
    automaton.check(word)
    return np.array([[automaton.symbols.index(symbol)] for symbol in word], np.int32).reshape(-1, 1)


def read_states(automaton: Automaton, model: Model, word: str) -> list[str | None]:
    """Return the states of an automaton according to a model, before the first symbol and after each; None if it is not one-hot."""
    start = model.parameters["V"] @ model.parameters["layer0.h0"]
    o = np.vstack([start, model.logits(model.forward(word_ids(automaton, word)))[:, 0]])
    one_hot = (o.max(axis=1) == 1) & (np.count_nonzero(o, axis=1) == 1)
    return [automaton.states[k] if sure else None for k, sure in zip(o.argmax(axis=1), one_hot, strict=True)]


def machine_model(network: MachineNetwork) -> Model:
    """Return a network as a model: tokens are its inputs and one empty input; outputs are its states."""
    H, inputs = len(network.units), network.U.shape[1]
    states = network.machine.states
    model = _empty(ModelConfig(inputs=inputs + 1, outputs=len(states), cell=PLAIN, activation="relu", hidden=2 * H))  # fmt: skip
    U, W, b = (model.parameters[f"layer0.{name}"] for name in ("U", "W", "b"))
    W[:] = np.block([[as_floats(network.W), -as_floats(network.W)]] * 2)  # (2)
    U[:, :inputs] = np.vstack([as_floats(network.U)] * 2)
    b[:] = np.concatenate([as_floats(network.b), as_floats(network.b) - 1])
    V = np.array([[u.is_control and u.state == q for u in network.units] for q in states], float)
    model.parameters["V"][:] = np.hstack([V, -V])
    return model


def as_floats(exact: Rationals) -> Floats:
    """Return rationals as float64."""
    return exact.astype(np.float64)


def _empty(config: ModelConfig) -> Model:
    model = Model.initialise(config, seed=0)
    model.parameters.flat[:] = 0
    return model
