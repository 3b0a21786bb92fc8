"""Language models of independent lines: every line is a sequence of its own, for the network and for n-grams."""

import json
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unspool.baselines.kneser_ney_smoothing import estimate_discount, kneser_ney
from unspool.baselines.mixture import fit_mixture
from unspool.baselines.mixture_stream import MixtureReader
from unspool.baselines.ngram_counts import count_ngrams
from unspool.cli.main import main
from unspool.data.batches.lines import LineBatches
from unspool.data.text.corpus import prepare
from unspool.data.text.source import text_source
from unspool.errors import EmptyInput, InputError
from unspool.evaluation.language import log_prob, validated_targets, validation_loss
from unspool.evaluation.metrics import measure
from unspool.evaluation.surprise import DetailedScorer
from unspool.kernels.arrays import Ids
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.tasks.language.estimator import LanguageModel
from unspool.tasks.language.run import resume, run
from unspool.tasks.language.text_model import TextModel
from unspool.training.events import WHOLE, Evaluated, RunConfig, StepDone

K, END = 5, 0
LINES = st.lists(st.lists(st.integers(1, K - 1), min_size=1, max_size=6), min_size=2, max_size=12)
NAMES = [
    a + b + c for a in ("An", "Be", "Cor", "Di", "El") for b in ("na", "ri", "to") for c in ("", "n", "s")
]
SMALL = {"hidden": 12, "steps": 30, "learning_rate": 0.02}


def stream(lines: list[list[int]]) -> Ids:
    return np.array([END, *(token for line in lines for token in [*line, END])], np.int32)


@pytest.fixture(scope="module")
def model() -> Model:
    made = Model.initialise(ModelConfig(cell="lstm", inputs=K, outputs=K, hidden=8), seed=1)
    made.parameters["V"][:] *= 4
    return made


@pytest.fixture(scope="module")
def fitted() -> LanguageModel:
    return LanguageModel(lines=True, **SMALL).fit("\n".join(NAMES * 3))


def test_every_line_that_is_not_blank_is_in_one_part_and_is_read_after_a_line_end() -> None:
    text = "one\r\ntwo\n\n \nthree\rfour"
    corpus = prepare(
        [text_source(text), text_source("five\nsix\n")], lines=True, tokens="byte", split=(0.5, 0.25, 0.25)
    )
    found = [corpus.decode(part.ids) for part in corpus.parts]
    assert all(part[0] == part[-1] == "\n" for part in found)
    assert sorted("".join(found).split()) == ["five", "four", "one", "six", "three", "two"]
    assert [len(part.split()) for part in found] == [3, 1, 2]
    assert [part.widths_after_first()[0] for part in corpus.parts] == [len(part) - 1 for part in found]


@pytest.mark.parametrize("tokens", ["char", "byte", "word", "space"])
def test_the_split_does_not_depend_on_the_tokens(tokens: str) -> None:
    corpus = prepare(text_source("\n".join(NAMES)), lines=True, tokens=tokens, split=(0.8, 0.1, 0.1))
    usual = prepare(text_source("\n".join(NAMES)), lines=True, split=(0.8, 0.1, 0.1))
    lines = [usual.decode(part.ids) for part in usual.parts]
    if tokens in ("char", "byte"):
        assert [corpus.decode(part.ids) for part in corpus.parts] == lines
    assert [int((part.ids == corpus.end).sum()) - 1 for part in corpus.parts] == [36, 4, 5]
    assert [part.widths_after_first() for part in corpus.parts] == [
        part.widths_after_first() for part in usual.parts
    ]


def _kneser_ney(lines: list[list[int]], context: list[int], order: int) -> np.ndarray:
    """Return the interpolated Kneser-Ney probabilities after a context within a line, from dictionaries."""
    counts = [Counter[tuple[int, ...]]() for _ in range(order + 1)]
    for line in lines:
        whole = [END, *line, END]
        for n in range(1, order + 1):
            counts[n].update(tuple(whole[i : i + n]) for i in range(len(whole) - n + 1))
    replaced = [counts[order]]
    for n in range(order - 1, 0, -1):
        before = defaultdict(set)
        for ngram in counts[n + 1]:
            before[ngram[1:]].add(ngram[0])
        replaced.insert(0, Counter({each: len(before[each]) or counts[n][each] for each in counts[n]}))
    p = np.full(K, 1 / K)
    for n in range(1, order + 1):
        if len(context) < n - 1:
            break
        D, here = (
            estimate_discount(np.array(list(replaced[n - 1].values()))),
            tuple(context[len(context) - n + 1 :]),
        )
        after = {ngram[-1]: number for ngram, number in replaced[n - 1].items() if ngram[:-1] == here}
        if total := sum(after.values()):
            p = np.array(
                [max(after.get(w, 0) - D, 0) / total + D * len(after) / total * p[w] for w in range(K)]
            )
    return p


@settings(max_examples=60, deadline=None)
@given(lines=LINES, order=st.integers(1, 5), test=LINES)
def test_ngrams_of_lines_are_those_of_counting_line_by_line(
    lines: list[list[int]], order: int, test: list[list[int]]
) -> None:
    ids = stream(lines)
    ngrams = kneser_ney(count_ngrams(ids, K, min(order, len(ids)), END))
    expected, order = [], ngrams.counts.order
    for line in test:
        whole = [END, *line, END]
        # the unigram of the very first line end has no predecessor: it is counted once more than line by line
        expected += (
            [_kneser_ney(lines, whole[:at], order)[whole[at]] for at in range(1, len(whole))]
            if order > 1
            else [ngrams.next_probs([])[token] for token in whole[1:]]
        )
    np.testing.assert_allclose(np.exp(ngrams.log_prob(stream(test))), expected, rtol=1e-12)
    np.testing.assert_allclose(ngrams.next_probs([1, END]).sum(), 1, rtol=1e-12)
    assert (ngrams.next_probs([1, END]) == ngrams.next_probs([END])).all()


@settings(max_examples=40, deadline=None)
@given(lines=LINES, test=LINES)
def test_a_mixture_forgets_the_line_before_to_the_bit(
    model: Model, lines: list[list[int]], test: list[list[int]]
) -> None:
    ids = stream(lines)
    ngrams = kneser_ney(count_ngrams(ids, K, min(4, len(ids)), END))
    mixture = fit_mixture(ngrams, ids, log_prob(model, ids, end=END))
    whole, uniform = stream(test), np.full(K, 1 / K)
    at_once = mixture.log_prob(whole, log_prob(model, whole, end=END))
    alone = [mixture.log_prob(stream([line]), log_prob(model, stream([line]), end=END)) for line in test]
    assert (at_once == np.concatenate(alone)).all()
    reader, fresh = MixtureReader(mixture, whole.tolist()), MixtureReader(mixture, [END])
    assert (reader.next_probs(uniform) == fresh.next_probs(uniform)).all()


@settings(max_examples=40, deadline=None)
@given(lines=LINES, window=st.integers(1, 9))
def test_the_score_of_a_line_is_that_of_the_line_alone(
    model: Model, lines: list[list[int]], window: int
) -> None:
    whole = stream(lines)
    expected = np.concatenate([log_prob(model, stream([line])) for line in lines])
    assert (log_prob(model, whole, end=END, window=window) == expected).all()
    detailed, alone = DetailedScorer(model, window, end=END), DetailedScorer(model)
    assert (detailed.log_prob(whole) == expected).all()
    entropy = []
    for line in lines:
        alone.log_prob(stream([line]))
        entropy.append(alone.entropy)
    assert (detailed.entropy == np.concatenate(entropy)).all()
    targets = validated_targets(whole, 8, END)
    assert validation_loss(model, whole, 8, end=END) == measure(expected[targets]).nats


@settings(max_examples=40, deadline=None)
@given(lines=LINES, B=st.integers(1, 5), seed=st.integers(0, 9))
def test_an_epoch_reads_every_line_once(lines: list[list[int]], B: int, seed: int) -> None:
    ids, read = stream(lines), []
    batches = LineBatches(ids, END, B, np.random.default_rng(seed), epochs=1)
    for batch in batches:
        assert batch.reset.all() and batch.lengths is not None
        for x, y, n in zip(batch.x.T, batch.y.T, batch.lengths, strict=True):
            assert x[0] == END == y[n - 1] and (x[1:n] == y[: n - 1]).all() and (y[n:] == -1).all()
            read.append(y[: n - 1].tolist())
    assert sorted(read) == sorted(lines)


def test_a_run_that_is_stopped_is_resumed_to_the_bit(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("\n".join(NAMES))
    given = {"hidden": 12, "steps": 9, "dropout": 0.2, "batch_size": 4}
    config = RunConfig(
        (str(tmp_path / "names.txt"),),
        settings=WHOLE.__class__(split=(0.8, 0.1, 0.1), lines=True),
        given=given,
    )
    results = []
    for _ in run(config, out=tmp_path / "whole"):
        pass
    events = run(config, out=tmp_path / "stopped")
    for event in events:
        if isinstance(event, StepDone) and event.step == 5:
            events.close()
            break
    for event in resume(tmp_path / "stopped"):
        if isinstance(event, Evaluated):
            results.append(event.measure)
    whole, stopped = (TextModel.load(tmp_path / name) for name in ("whole", "stopped"))
    assert (whole.model.parameters.flat == stopped.model.parameters.flat).all()
    assert whole.settings.lines and whole.measure(tmp_path / "names.txt").targets == sum(
        len(n) + 1 for n in NAMES
    )


def test_lines_are_learned_generated_and_scored(fitted: LanguageModel, tmp_path: Path) -> None:
    made = [fitted.generate(seed=seed) for seed in range(20)]
    assert all("\n" not in name and len(name) < 200 for name in made)
    assert all(fitted.generate("An", seed=seed, mixture=True).isprintable() for seed in range(5))
    known, strange = fitted.score_lines(["Annan", "zzzzz"])
    assert known.perplexity < strange.perplexity and known.targets == 6
    scores = fitted.score_lines(NAMES)
    np.testing.assert_allclose(
        sum(score.log_prob for score in scores) / sum(score.targets for score in scores),
        -np.log(fitted.perplexity("\n".join(NAMES))), rtol=1e-12,
    )  # fmt: skip
    assert [each.log_prob for each in fitted.score_lines(NAMES[::-1])] == [
        each.log_prob for each in scores[::-1]
    ]
    assert fitted.score_lines([]) == [] and fitted.score_lines([""])[0].targets == 1
    fitted.save(tmp_path / "run")
    again = LanguageModel.load(tmp_path / "run")
    assert again.score_lines(NAMES, mixture=True) == fitted.score_lines(NAMES, mixture=True)


def test_a_line_can_be_read_from_its_end_and_a_final_model_trained(tmp_path: Path) -> None:
    made = LanguageModel(lines=True, backward=True, final=True, **SMALL).fit("\n".join(NAMES))
    assert "\n" not in made.generate("n", seed=1)
    scores = made.score_lines(NAMES)
    total = sum(score.log_prob for score in scores) / sum(score.targets for score in scores)
    np.testing.assert_allclose(np.exp(-total), made.perplexity("\n".join(NAMES)), rtol=1e-12)


def test_a_model_of_a_text_scores_lines_from_a_new_state() -> None:
    made = LanguageModel(hidden=8, steps=5).fit("\n".join(NAMES * 4))
    ids = made.text_model_.encode("\nAnna\n")
    expected = log_prob(made.text_model_.model, ids).sum()
    assert made.score_lines(["Anna"])[0].log_prob == pytest.approx(expected, rel=1e-12)
    with pytest.raises(InputError, match="lines=True"):
        made.score_lines(["Anna"], mixture=True)


def test_what_cannot_be_done_with_lines_is_refused(fitted: LanguageModel) -> None:
    for wrong in ({"window": 9}, {"restart": 0.1}, {"bptt": "truncated:4"}, {"batches": "random"}):
        with pytest.raises(InputError, match="lines"):
            LanguageModel(lines=True, **wrong).fit("a\nb")
    for wrong in ({"clean": True}, {"tokens": "subword:300"}):
        with pytest.raises(InputError, match="lines"):
            LanguageModel(lines=True, **wrong).fit("a\nb")
    with pytest.raises(EmptyInput, match="no line"):
        LanguageModel(lines=True).fit("\n \n")
    with pytest.raises(InputError, match="min_freq"):
        LanguageModel(lines=True, min_freq=10**6, steps=1).fit("\n".join(NAMES))
    with pytest.raises(InputError, match="learn"):
        fitted.perplexity("Anna\n", learn=True)
    with pytest.raises(InputError, match="one line"):
        fitted.generate("An\nBe")
    with pytest.raises(InputError, match="list of strings"):
        fitted.score_lines("Anna")
    with pytest.raises(InputError, match="line 2"):
        fitted.score_lines(["Anna", "An\nna"])


def test_the_commands_train_generate_and_score_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, out = tmp_path / "names.txt", tmp_path / "run"
    text.write_text("\n".join(NAMES * 2))
    assert (
        main(["train", str(text), "--lines", "--steps", "20", "--hidden", "12", "--json", "--out", str(out)])
        == 0
    )
    printed = json.loads(capsys.readouterr().out)
    assert "--lines" in printed["repeat"] and "--window" not in printed["repeat"]
    assert main(["generate", str(out), "--samples", "3", "--seed", "1", "--json"]) == 0
    texts = json.loads(capsys.readouterr().out)["texts"]
    assert len(texts) == 3 and not any("\n" in each for each in texts)
    assert main(["evaluate", str(out), str(text), "--per-line", str(tmp_path / "rows")]) == 0
    rows = (tmp_path / "rows").read_text().splitlines()[1:]
    assert len(rows) == len(NAMES) * 2 and sorted(int(row.split(",")[0]) for row in rows) == [
        *range(1, len(rows) + 1)
    ]
    assert main(["evaluate", str(out), str(text), "--learn"]) == 2
    assert "independent lines" in capsys.readouterr().err
    again = [*printed["repeat"].split()[1:-1], str(tmp_path / "again")]
    assert main(again) == 0
    flat = [TextModel.load(each).model.parameters.flat for each in (out, tmp_path / "again")]
    assert all((a == b).all() for a, b in pairwise(flat))
