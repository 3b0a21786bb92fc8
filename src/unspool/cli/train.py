"""`unspool train`: a language model from a text, in minutes, kept in a run."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console

from unspool import checkpoint
from unspool.cli.follow import follow
from unspool.cli.options import NETWORK, OUTPUT, TEXT, TIME, TRAINING, Flag
from unspool.cli.sources import Reading, Sources
from unspool.cli.stopping import Stop
from unspool.cli.view import View
from unspool.data.settings import Settings
from unspool.errors import InputError
from unspool.events import RunConfig
from unspool.keeping import Keeping
from unspool.kernel.ops import set_threads
from unspool.run import run
from unspool.schedule import Plans


def train(
    text: Sources,
    /,
    *,
    out: Annotated[Path, Parameter(group=OUTPUT)],
    minutes: Annotated[float | None, Parameter(group=TIME)] = None,
    steps: Annotated[int | None, Parameter(group=TIME)] = None,
    reading: Reading = Reading(),
    backward: Annotated[Flag, Parameter(group=TEXT)] = False,
    cell: Annotated[Literal["elman", "gru", "lstm"] | None, Parameter(group=NETWORK)] = None,
    hidden: Annotated[int | None, Parameter(group=NETWORK)] = None,
    layers: Annotated[int | None, Parameter(group=NETWORK)] = None,
    embedding: Annotated[int | None, Parameter(group=NETWORK)] = None,
    tied: Annotated[bool | None, Parameter(group=NETWORK)] = None,
    dropout: Annotated[float | None, Parameter(group=NETWORK)] = None,
    recurrent_dropout: Annotated[float | None, Parameter(group=NETWORK)] = None,
    batch: Annotated[int | None, Parameter(group=TRAINING)] = None,
    window: Annotated[int | None, Parameter(group=TRAINING)] = None,
    batches: Annotated[Literal["sequential", "random"], Parameter(group=TRAINING)] = "sequential",
    bptt: Annotated[str, Parameter(group=TRAINING)] = "full",
    memory: Annotated[Literal["full", "sqrt"], Parameter(group=TRAINING)] = "full",
    optimiser: Annotated[Literal["adam", "sgd"], Parameter(group=TRAINING)] = "adam",
    learning_rate: Annotated[float | None, Parameter(group=TRAINING)] = None,
    warmup: Annotated[int | None, Parameter(group=TRAINING)] = None,
    plans: Annotated[str, Parameter(group=TRAINING)] = "",
    clip: Annotated[float | None, Parameter(group=TRAINING)] = None,
    decay: Annotated[float | None, Parameter(group=TRAINING)] = None,
    seed: Annotated[int, Parameter(group=TRAINING)] = 0,
    validations: Annotated[int, Parameter(group=TRAINING)] = 12,
    validation_tokens: Annotated[int, Parameter(group=TRAINING)] = 0,
    threads: Annotated[int | None, Parameter(group=TIME)] = None,
    save_every: Annotated[int | None, Parameter(group=OUTPUT)] = None,
    json: Annotated[Flag, Parameter(group=OUTPUT)] = False,
    plot: Annotated[Path | None, Parameter(group=OUTPUT)] = None,
    tensorboard: Annotated[Flag, Parameter(group=OUTPUT)] = False,
) -> None:
    """Train a language model on your text.

    Parameters
    ----------
    text
        Files, folders, - for standard input, builtin:python-docs or builtin:python-source.
    out
        The folder to make: model, vocabulary, settings, log, and all that is needed to go on later.
    minutes
        How long it is to take [default: 3]. Size, updates and schedule are chosen to end well by then.
    steps
        How many updates, instead of minutes: with the other numbers that a run prints, it is repeated to the bit.
    backward
        Learn the text in reverse time.
    cell
        The recurrence.
    hidden
        H, the units of a layer.
    layers
        Layers on each other.
    embedding
        The width of the token table; 0: one-hot tokens.
    tied
        Use the token table as the output's matrix.
    dropout
        The share of a layer's outputs that is dropped.
    recurrent_dropout
        The share of the state that is dropped inside the recurrence.
    batch
        B, rows side by side.
    window
        tau, steps in a window.
    batches
        sequential carries the state from window to window; random starts each window anew.
    bptt
        How far back gradients reach: full (the window), truncated:K (an update every K steps), truncated:K1,K2 (an
        update every K1 steps that looks back K2) or random:P (cut at each step with probability 1-P, unbiased).
    memory
        sqrt keeps every √tau-th state and computes the others again: less memory, the same bits.
    optimiser
        adam (AdamW where there is decay) or sgd (with momentum 0.9).
    learning_rate
        The highest; it rises over the first updates and ends at zero with the last.
    warmup
        Over how many updates it rises.
    plans
        To repeat a run whose number of updates was changed on the way: 0:STEPS,AFTER:STEPS,… as it printed them.
    clip
        The largest norm of a gradient; 0: no limit.
    decay
        Weight decay on matrices.
    seed
        Where all random numbers come from.
    validations
        How often to look at the validation part on the way.
    validation_tokens
        How much of it to look at then; 0: as much as costs little.
    threads
        How many threads; it changes no bit of the result.
    save_every
        Save the state after every so many updates [default: every half minute].
    json
        Print the result as JSON, and nothing else.
    plot
        Draw the learning curve against the baselines into this file (.png, .svg, .pdf).
    tensorboard
        Write curves for TensorBoard into the run as well (extra `tensorboard`).
    """
    if minutes is not None and steps is not None:
        raise InputError("give --minutes or --steps, not both")
    checkpoint.check_free(out)
    if threads is not None:
        set_threads(threads)
    wanted = {
        "cell": cell, "hidden": hidden, "layers": layers, "embedding": embedding, "tied": tied, "dropout": dropout,
        "recurrent_dropout": recurrent_dropout, "B": batch, "tau": window, "learning_rate": learning_rate,
        "warmup": warmup, "clip": clip, "decay": decay, "steps": steps,
        "plans": _plans(plans),
    }  # fmt: skip
    config = RunConfig(
        sources=tuple(text),
        valid=None if reading.valid is None else (reading.valid,),
        settings=Settings(
            tokens=reading.tokens,
            clean=reading.clean,
            split=reading.split,
            min_freq=reading.min_freq,
            errors=reading.errors,
            newlines=reading.newlines,
        ),
        minutes=3.0 if minutes is None else minutes,
        given={name: value for name, value in wanted.items() if value is not None},
        batches=batches,
        bptt=bptt,
        memory=memory,
        optimiser=optimiser,
        backward=backward,
        validations=validations,
        validation_tokens=validation_tokens,
        seed=seed,
    )
    view, stop = View(Console(highlight=False, quiet=json)), Stop()
    events = run(
        config, out=out, keeping=Keeping(steps=save_every, stop=stop, told=stop.heeded(view.judging))
    )
    follow(events, out, view, stop, json=json, plot=plot, tensorboard=tensorboard)


def _plans(text: str) -> Plans | None:
    if not text:
        return None
    try:
        pairs = [pair.split(":") for pair in text.split(",")]
        return tuple((int(at), int(steps)) for at, steps in pairs)
    except ValueError:
        raise InputError(f"plans are {text!r}; expected 0:STEPS,AFTER:STEPS,… in whole numbers") from None
