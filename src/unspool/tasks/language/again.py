"""Recognise the run that a training which was started again has begun before."""

from dataclasses import fields
from pathlib import Path

from unspool.data.text.source import resolve, stamps
from unspool.errors import UnspoolError
from unspool.gradients.truncation import AUTO
from unspool.storage import run_folder
from unspool.tasks.language.texts import hashes
from unspool.training.events import RunConfig

CHOSEN = ("given", "recipe", "settings", "validation_tokens")
"""Fields that change when a run is planned."""


def began_as(out: Path, config: RunConfig) -> bool:
    """Return whether the run in a folder was begun with this config, on texts with the same bytes, and can be resumed."""
    if not (out / run_folder.TRAINING).exists():
        return False
    try:
        content = run_folder.read_config(out, "language")
        begun = RunConfig.from_json(content.get("run"), out / run_folder.CONFIG)
    except UnspoolError:
        return False
    names = [field.name for field in fields(RunConfig) if field.name not in CHOSEN]
    if config.bptt == AUTO:
        names.remove("bptt")
    if any(getattr(begun, name) != getattr(config, name) for name in names):
        return False
    if any(value not in (AUTO, getattr(begun.fixed, name)) for name, value in config.given.items()):
        return False
    return bool(_texts(config).items() <= content.get("provenance", {}).items())


def _texts(config: RunConfig) -> dict[str, str | None]:
    sources, valid = resolve(config.sources), None if config.valid is None else resolve(config.valid)
    return hashes(sources, valid, stamps([*sources, *(valid or [])]))
