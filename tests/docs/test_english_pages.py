"""The English pages use the field's terms, one per concept."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES += [
    page
    for page in sorted((ROOT / "docs").glob("*.md"))
    if ".zh-CN." not in page.name and page.name != "log.md"
]
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)

NOT_USED = {
    "resume, resumed": ["gone on with", "goes on with", "go on with"],
    "bit-identical": ["to the same bits", "to the bit"],
    "forward pass": ["the way there"],
    "backward pass": ["the way back"],
    "backpropagate through K steps": ["looks back", "look back"],
    "detached": ["cut from the gradient"],
    "reference implementation": ["twin"],
    "checksum": ["a seal", "sealed"],
    "log": ["the journal"],
    "fast validation pass": ["glance"],
    "evaluate, score": ["judge"],
    "segment": ["stretch"],
    "untrained model": ["fresh model", "fresh network"],
    "reset": ["anew"],
    "orthogonal": ["begins as a rotation", "begin as rotations"],
    "perturb": ["nudge"],
    "unbiased": ["right in the mean"],
    "split": ["training part", "validation part", "test part", "held-out part"],
    "n-gram baselines": ["only count", "counting model"],
    "pipeline": ["the whole walk"],
    "code layout": ["the house"],
    "a named subject": ["whoever", "nobody", "somebody"],
    "per": ["nats a ", "tokens a second", "updates a second"],
    "except": [" but for "],
}
"""Each term of the field, and the wordings that stand for the same concept and are not used."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_uses_the_terms_of_the_field(page: Path) -> None:
    text = " ".join(CODE.sub(" ", page.read_text(encoding="utf-8")).lower().split())
    found = [
        (variant, term) for term, variants in NOT_USED.items() for variant in variants if variant in text
    ]
    assert found == []
