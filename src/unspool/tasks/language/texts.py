"""Read the texts of a run: ids into its folder, and the hashes of what was read."""

from pathlib import Path

from unspool.data.text.corpus import Corpus, prepare
from unspool.data.text.decoding import iter_bytes
from unspool.data.text.source import Source, stamps
from unspool.storage import run_folder
from unspool.tasks.language.warm_start import WarmStart
from unspool.training.events import RunConfig
from unspool.training.provenance import sha256_of


def prepared(
    config: RunConfig,
    sources: list[Source],
    valid: list[Source] | None,
    folder: Path | None,
    start: WarmStart | None = None,
) -> Corpus:
    """Read the text: into the run's folder, where there is one, with the vocabulary of the model that it starts from."""
    into = None if folder is None else folder / run_folder.TEXT
    if into is not None:
        into.mkdir()
    settings = {name: value for name, value in vars(config.settings).items()}
    extends = None if start is None else (start.model.vocab, start.model.tokenizer)
    return prepare(sources, valid=valid, into=into, extends=extends, **settings)


def hashes(
    sources: list[Source], valid: list[Source] | None, before: list[tuple[int, int] | None]
) -> dict[str, str | None]:
    """Return the SHA-256 of the text, and of a separate validation text; None if a file has changed since it was read."""
    found = {"data_sha256": sha256_of(iter_bytes(sources))}
    found |= {} if valid is None else {"valid_sha256": sha256_of(iter_bytes(valid))}
    same = stamps([*sources, *(valid or [])]) == before
    return {name: digest if same else None for name, digest in found.items()}
