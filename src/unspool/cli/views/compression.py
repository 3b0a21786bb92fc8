"""What `unspool compress` prints: sizes beside those of other programs, as a table or as JSON."""

import math
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from unspool.cli.output import plain_table
from unspool.compress.coding import Coded
from unspool.compress.container import Container


class Written(NamedTuple):
    """A compressed file."""

    run: Path | None
    file: Path
    out: Path
    container: Container
    coded: Coded | None
    """None if bytes were coded, not the tokens of a run."""
    size: int
    """Its bytes."""
    others: dict[str, int]
    """The bytes that other programs need."""

    @property
    def header(self) -> int:
        """The bytes that are neither tokens nor the model."""
        return self.size - len(self.container.payload) - len(self.container.model)


def compression_json(written: Written, sha256: str) -> dict[str, Any]:
    """Return the fields of --json."""
    kept = written.container
    content: dict[str, Any] = {"run": None if written.run is None else str(written.run)}
    content |= {"file": str(written.file), "out": str(written.out), "way": kept.mode, "bytes": kept.length}
    if written.coded is not None:
        content |= _coded_json(written.coded, kept)
    else:
        content |= {"coded_bytes": len(kept.payload), "model_bytes": len(kept.model), "hidden": kept.hidden}
        content |= {"run_used": kept.needs_model} | _used(kept)
    return content | {
        "header_bytes": written.header,
        "written_bytes": written.size,
        "bits_per_byte": 8 * written.size / kept.length if kept.length else None,
        "sha256": sha256,
        **({"model": kept.identity.hex()} if written.coded is not None or kept.needs_model else {}),
        "others": written.others,
    }


def _coded_json(coded: Coded, kept: Container) -> dict[str, Any]:
    return {
        "tokens": coded.tokens,
        "unknown": coded.unknown,
        "nats": coded.nats,
        "promised_bits": coded.expected_bits,
        "first_token_bits": coded.first_bits,
        "spelled_bits": coded.spelled_bits,
        "coded_bytes": len(coded.payload),
        "model_bytes": len(kept.model),
        **_used(kept),
    }


def _used(kept: Container) -> dict[str, Any]:
    return {name: True for name, used in (("mixture", kept.mixture), ("learning", kept.learning)) if used}


def print_compression(console: Console, written: Written, *, as_evaluated: bool) -> None:
    """Print the sizes; `as_evaluated`: whether `unspool evaluate` prints the same loss."""
    kept, coded = written.container, written.coded
    sizes = {"the file": kept.length, **written.others}
    title = f"{written.file}: {kept.length:,} bytes"
    if coded is not None:
        title += f", {coded.tokens:,} tokens"
        sizes[f"{_predictor(kept)}'s cross-entropy"] = math.ceil(coded.expected_bits / 8)
    console.print(title)
    if coded is not None and coded.tokens > 1:
        says = ", as unspool evaluate prints" if as_evaluated else ""
        console.print(f"{coded.nats:.4f} nats per token{says}", style="dim")
    table = plain_table("", right=("bytes", "bits/byte", "of the file"))
    for name, size in (sizes | {"written": written.size}).items():
        shares = (f"{8 * size / kept.length:.4f}", f"{size / kept.length:.2%}") if kept.length else ("", "")
        table.add_row(name, f"{size:,}", *shares, style="bold green" if name == "written" else None)
    console.print("", table, "", sep="\n")
    console.print(_adaptive_line(written) if coded is None else _model_line(written, coded), style="dim")
    console.print(f"saved        {written.out}")


def _predictor(kept: Container) -> str:
    return ("learning " if kept.learning else "") + ("mixture" if kept.mixture else "network")


def _adaptive_line(written: Written) -> str:
    """Say what predicted the bytes of a file, and whether its run did."""
    kept, header = written.container, f"{written.header:,} of header"
    if kept.mode == "stored":
        return f"written: {kept.length:,} bytes stored uncompressed, {header}"
    model = f"; {len(kept.model):,} of model" if kept.model else ""
    unused = (
        ""
        if written.run is None or kept.needs_model
        else f"; {written.run} was not used: it would not make the file smaller"
    )
    if kept.mode != "adaptive":
        predictors = f"the run's {'mixture' if kept.mixture else 'network'}, which"
    elif kept.learning is not None:
        predictors = f"the run's network{' and n-grams' if kept.mixture else ''} and counts, which"
    else:
        predictors = f"{f'a GRU of {kept.hidden} hidden units and ' if kept.hidden else ''}counts that"
    return f"written: {len(kept.payload):,} bytes coded by {predictors} learned from this file, {header}{model}{unused}"


def _model_line(written: Written, coded: Coded) -> str:
    """Say what the bytes of a file coded by a run are."""
    kept, header = written.container, f"{written.header:,} of header"
    if kept.mode == "stored":
        return (
            f"written: {kept.length:,} bytes stored uncompressed (the network would need {len(coded.payload):,}), "
            f"{header}"
        )
    parts = [f"{math.ceil(coded.token_bits / 8):,} bytes for the tokens{_excess(coded)}"]
    if coded.unknown:
        parts.append(f"{coded.spelled_bits / 8:,.0f} to spell the {coded.unknown:,} unknown tokens")
    parts += [header, *[f"{len(kept.model):,} of model"] * bool(kept.model)]
    return f"written: {', '.join(parts)}"


def _excess(coded: Coded) -> str:
    if not coded.expected_bits or coded.mode == "counted":  # what was promised counts <unk> by the network
        return ""
    excess = coded.token_bits / coded.expected_bits - 1
    return f" ({abs(excess):.3%} {'more' if excess > 0 else 'less'} than the cross-entropy)"
