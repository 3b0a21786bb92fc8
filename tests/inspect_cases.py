"""A model and a text to look at."""

import json
import re

import numpy as np

from unspool.data.batches.text_windows import sequential_batches
from unspool.data.text.settings import TextConfig
from unspool.data.tokens.registry import make_tokenizer
from unspool.data.tokens.vocab import Vocab
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.optimisers.adam import Adam
from unspool.tasks.language.text_model import TextModel
from unspool.training.loop import train

TEXT = (
    'He said: "Go home, TOM!" and went (it was 7 o\'clock).\n  Then she, laughing, answered: "No."\n'
    "红楼梦第一回。甄士隐梦幻识通灵！\n<b>bold & brave</b>\n"
) * 8


def made(
    cell: str = "gru", kind: str = "char", *, steps: int = 0, backward: bool = False, **more
) -> TextModel:
    tokenizer = make_tokenizer(kind)
    tokens = tokenizer.encode_text(TEXT)
    vocab = Vocab(tokens)
    config = ModelConfig(cell=cell, inputs=len(vocab), outputs=len(vocab), hidden=10, **more)
    model = Model.initialise(config, seed=1)
    if steps:
        ids = np.array(vocab[tokens], np.int32)
        batches = sequential_batches(ids, 2, 16, np.random.default_rng(0), epochs=1000)
        reports = train(model, batches, Adam(learning_rate=0.01))
        for _ in range(steps):
            next(reports)
    return TextModel(model, vocab, tokenizer, TextConfig(tokens=kind), backward)


def frozen_in(text):
    """The numbers in a page, which has two scripts: the numbers and the program."""
    assert text.count("<script") == text.count("</script>") == 2
    return json.loads(
        re.search(r'<script type="application/json" id="frozen">(.*?)</script>', text, re.DOTALL)[1]
    )
