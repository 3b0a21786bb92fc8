"""What the README and the pages print is what the code prints, in both languages."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    "README.md",
    "docs/walk.md",
    "docs/notation.md",
    "docs/engine.md",
    "docs/data-files.md",
    "docs/commands.md",
    "docs/forecast.md",
    "docs/language-model.md",
    "docs/compress.md",
    "docs/sequences.md",
    "docs/unfolding.md",
    "docs/inspect.md",
    "docs/patterns.md",
    "docs/bptt.md",
    "docs/truncation.md",
    "docs/vanishing.md",
    "docs/turing.md",
]
BOTH = PAGES + [page.replace(".md", ".zh-CN.md") for page in PAGES]
PROSE = [*BOTH, "CHANGELOG.md", "CONTRIBUTING.md"]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[str]:
    return BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES)
def test_a_page_prints_what_it_says(page: str) -> None:
    test = doctest.DocTestParser().get_doctest("\n".join(blocks(page)), {}, page, page, 0)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("page", PAGES)
def test_both_languages_show_the_same_code(page: str) -> None:
    english, chinese = blocks(page), blocks(page.replace(".md", ".zh-CN.md"))
    assert english == chinese
    assert english


@pytest.mark.parametrize("page", PROSE)
def test_links_and_pictures_of_a_page_are_there(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in target]
    missing = [target for target in targets if not ((ROOT / page).parent / target).exists()]
    assert missing == []


@pytest.mark.parametrize("page", BOTH)
def test_files_that_a_page_names_are_there(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = re.findall(r"`((?:src|csrc|tests|bench|examples)/[\w./]+\.(?:py|h|cpp))`", text)
    missing = [name for name in named if not (ROOT / name).exists()]
    assert missing == []


def test_the_modules_of_the_file_map_are_there() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    tree = text[text.index("src/unspool/\n") :].split("```")[0]
    names = [
        name for line in tree.splitlines()[1:-1] for name in re.split(r"\s{2,}", line.strip())[0].split()
    ]
    assert len(names) > 20
    missing = [
        name
        for name in names
        if not (ROOT / "src/unspool" / name).is_dir() and not (ROOT / f"src/unspool/{name}.py").exists()
    ]
    assert missing == []
