"""What the documents print is what the code prints; for those who have the book."""

import doctest
import os
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ["data.md", "data.zh-CN.md", "counting.md", "counting.zh-CN.md"]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_prints_what_it_says(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = os.environ.get("UNSPOOL_DATA")
    if not folder:
        pytest.skip("UNSPOOL_DATA does not name a folder with timemachine.txt")
    monkeypatch.chdir(folder)
    session = "\n".join(BLOCK.findall((DOCS / page).read_text(encoding="utf-8")))
    test = doctest.DocTestParser().get_doctest(session, {}, page, page, 0)
    assert len(test.examples) > 20
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("page", PAGES[::2])
def test_both_languages_show_the_same_code(page: str) -> None:
    english, chinese = (DOCS / page, DOCS / page.replace(".md", ".zh-CN.md"))
    blocks = [BLOCK.findall(path.read_text(encoding="utf-8")) for path in (english, chinese)]
    assert blocks[0] == blocks[1]
    assert len(blocks[0]) > 4


@pytest.mark.parametrize("page", PAGES)
def test_links_and_pictures_of_a_page_are_there(page: str) -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", (DOCS / page).read_text(encoding="utf-8"))
    assert targets
    assert all((DOCS / target).exists() for target in targets)
