"""Draw a recurrent network folded and unfolded, or write the graph as JSON, DOT or Mermaid.

With a run and a text, the nodes hold the values and gradients that the network computes for that text.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from cyclopts import Parameter

from unspool.cells import CELLS, PLAIN
from unspool.cli.options import ConfigFile, Flag, Own, Replacing, option_class
from unspool.cli.output_files import check_outputs, output, write_output
from unspool.errors import InputError
from unspool.inspect.graph.build import fold
from unspool.inspect.graph.export import to_dot, to_json, to_mermaid
from unspool.inspect.graph.picture import save_graph, save_graphs
from unspool.inspect.graph.structure import At, Folded, Unfolded
from unspool.inspect.graph.systems import driven, plain
from unspool.inspect.graph.trace import Trace, trace
from unspool.inspect.reading import pieces_of, visible
from unspool.kernels.arrays import Activation
from unspool.model import options as network
from unspool.model.config import ModelConfig
from unspool.options import build
from unspool.tasks.language.text_model import TextModel

SYSTEMS: dict[str, Callable[[], Folded]] = {"plain": plain, "driven": driven}
OF_SYSTEMS = "a dynamical system: plain, s(t) = f(s(t-1); θ), or driven, s(t) = f(s(t-1), x(t); θ)."
FEEDBACK = (
    "Input that pattern 10.4 feeds back: logits, the output o(t-1) as in the textbook; token, the previous target y(t-1) "
    "(teacher forcing); argmax, the most probable output k(t-1) (free-running) [default: logits; a picture shows logits and token]."
)
RENAMED = {
    "target": "is now --feedback token, as in train",
    "token": "now means teacher forcing, as in train; for the most probable output, use --feedback argmax",
}
"""Hints for the values of --feedback that have changed."""
SUFFIXES = (".svg", ".json", ".dot", ".gv", ".mmd", ".md")


@option_class
class Options(ConfigFile):
    """What `graph` is given."""

    out: Path | None = None
    """Output file; the ending gives the format: .svg (picture), .json, .dot or .gv (Graphviz), .mmd or .md (Mermaid) [default: print Mermaid]."""
    tau: int | None = None
    """Number of unfolded steps [default: 3, or the length of the text]."""
    text: str | None = None
    """Text for the network to read; requires RUN."""
    cell: Annotated[str | None, Parameter(help=f"{', '.join(CELLS)}; or {OF_SYSTEMS}")] = None
    hidden: int = 128
    inputs: Own[int] = 65
    """Vocabulary size."""
    layers: int = 1
    bidirectional: Flag = network.BIDIRECTIONAL.field(False)
    embedding: int = 0
    activation: Activation = "tanh"
    pattern: Own[Literal["10.3", "10.4", "10.5"]] = "10.3"
    """Recurrence, numbered as the figures in Goodfellow et al., Deep Learning: 10.3, hidden to hidden; 10.4, output to hidden; 10.5, one output at the end."""
    feedback: Annotated[
        Literal["logits", "token", "argmax", "target"] | None, Parameter(help=FEEDBACK, show_choices=False)
    ] = None
    folded: Flag = False
    """In JSON, DOT and Mermaid: the folded graph instead of the unfolded one. A picture shows both."""


def graph(
    run: Annotated[Path | None, Parameter(negative="")] = None,
    /,
    *,
    options: Options = Options(),
    replacing: Replacing = Replacing(),
) -> None:
    """Run `unspool graph`.

    Parameters
    ----------
    run
        The folder of a run [default: a network that the options describe].
    """
    out, tau = options.out, options.tau
    if out is not None and out.suffix.lower() not in SUFFIXES:
        raise InputError(f"{out}: expected a name that ends with {', '.join(SUFFIXES)}")
    check_outputs(out, force=replacing.force)
    if options.feedback in RENAMED:
        hint = f"--feedback {options.feedback} {RENAMED[options.feedback]} (this hint ends with 0.2)"
        print(f"unspool: {hint}", file=sys.stderr)
    labels: dict[At, str] = {}
    made: Folded | Trace
    if run is not None:
        made, labels = _of_run(run, options.text, tau)
    else:
        made = _described(options)
    steps = 3 if tau is None else tau
    unfolded = made.unfold(steps) if isinstance(made, Folded) else made
    if out is not None and out.suffix.lower() == ".svg":
        with output(out, force=replacing.force) as path:
            if run is None and options.pattern == "10.4" and options.feedback is None:
                forced = _described(replace(options, feedback="token"))
                save_graphs([each.unfold(steps) for each in (_described(options), forced)], path)
            else:
                save_graph(unfolded, path, labels=labels)
        return
    words = _words(unfolded, out, options.folded)
    if out is None:
        print(words)
    else:
        write_output(out, (words + "\n").encode("utf-8"), force=replacing.force)


def _described(options: Options) -> Folded:
    """Give the network that the options describe, or a dynamical system."""
    if options.text is not None:
        raise InputError("--text requires RUN: a network without a vocabulary cannot read")
    if options.cell in SYSTEMS:
        return SYSTEMS[options.cell]()
    if options.cell not in (None, *CELLS):
        raise InputError(f"cell is {options.cell!r}; expected one of {', '.join((*CELLS, *SYSTEMS))}")
    if options.feedback is not None and options.pattern != "10.4":
        raise InputError(
            f"--feedback {options.feedback} requires --pattern 10.4: other patterns feed no output back"
        )
    fed = options.feedback or "logits"
    return fold(
        build(
            ModelConfig,
            options,
            cell=options.cell or PLAIN,
            outputs=options.inputs,
            feedback="logits" if options.pattern == "10.4" and fed == "logits" else "token",
        ),
        forced=fed != "argmax",
    )


def _of_run(run: Path, text: str | None, tau: int | None) -> tuple[Folded | Trace, dict[At, str]]:
    source = TextModel.load(run)
    if text is None:
        return fold(source.model.config), {}
    ids = source.encode(text)
    if len(ids) < 2:
        raise InputError(
            f"--text has {len(ids)} tokens; expected two or more: each is the target of the one before"
        )
    steps = min(len(ids) - 1, tau or len(ids) - 1)
    found = pieces_of(source.tokenizer, source.tokenizer.encode_text(text))
    pieces = [visible(piece)[:6] for piece in found]
    labels = {At("x", t + 1): pieces[t] for t in range(steps)}
    labels |= {At("y", t + 1): pieces[t + 1] for t in range(steps)}
    column = np.ascontiguousarray(ids[:, None])
    return trace(source.model, column[:steps], column[1 : steps + 1], gradients=True), labels


def _words(made: Unfolded | Trace, out: Path | None, folded: bool) -> str:
    unfolded = made.graph if isinstance(made, Trace) else made
    suffix = ".mmd" if out is None else out.suffix.lower()
    if suffix == ".json":
        return to_json(unfolded.folded if folded else made)
    shown = unfolded.folded if folded else unfolded
    if suffix in (".dot", ".gv"):
        return to_dot(shown)
    mermaid = to_mermaid(shown)
    return f"```mermaid\n{mermaid}\n```" if suffix == ".md" else mermaid
