"""What the README and the pages print is what the code prints, in both languages."""

import re
import sys
from pathlib import Path

import pytest
import reprint
from blocks import normalised, shortened

ROOT = Path(__file__).parents[2]
PAGES = [str(page.relative_to(ROOT)) for page in reprint.pages()]
ENGLISH = ["README.md", *(f"docs/{page.name}" for page in sorted((ROOT / "docs").glob("*.md")))]
ENGLISH = [page for page in ENGLISH if ".zh-CN." not in page and page != "docs/log.md"]
CHINESE = [page.replace(".md", ".zh-CN.md") for page in ENGLISH]
BOTH = ENGLISH + CHINESE
PROSE = [*BOTH, "CHANGELOG.md", "CONTRIBUTING.md"]
FENCED = re.compile(r"^```([\w ]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TRAINING = re.compile(r"unspool (train|\w+ fit)\b")


def content(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def commands(page: str) -> list[str]:
    blocks = [block for block in reprint.blocks_of(ROOT / page) if block.kind == "console"]
    return [example.source for block in blocks for example in block.examples]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_prints_what_it_says(page: str) -> None:
    # Every command of docs/commands.md is run by test_command_fields.
    kinds = ["python"] if page == "docs/commands.md" else ["python", "console"]
    assert reprint.differences(ROOT / page, quick=True, kinds=kinds) == []


@pytest.mark.parametrize("page", PAGES)
def test_both_languages_show_the_same_examples_and_commands(page: str) -> None:
    english, chinese = (FENCED.findall(content(each)) for each in (page, page.replace(".md", ".zh-CN.md")))
    kinds = ("python", "console", "console slow")
    assert [each for each in english if each[0] in kinds] == [each for each in chinese if each[0] in kinds]


def test_the_quick_test_repeats_commands_too() -> None:
    quick = [
        example
        for page in PAGES
        for block, can_run in zip(
            reprint.blocks_of(ROOT / page), reprint.runnable(ROOT / page, quick=True), strict=True
        )
        for example in block.examples
        if can_run and block.kind == "console" and page != "docs/commands.md"
    ]
    assert len(quick) > 5


@pytest.mark.parametrize("page", BOTH)
def test_every_printed_run_can_be_repeated(page: str) -> None:
    untyped = [block for kind, block in FENCED.findall(content(page)) if not kind.startswith("console")]
    assert not [block for block in untyped if re.search(r"^\s*\$ ", block, re.MULTILINE)]
    for command in commands(page):
        if command != "$ unspool demo --seconds 1 --json":  # only its fields are compared
            assert not re.search(r"--(minutes|seconds)|builtin:python", command), command
        assert "--steps" in command or not TRAINING.search(command), command


def test_every_named_text_of_a_page_is_one_that_the_tool_finds() -> None:
    named = {
        name
        for page in PAGES
        for command in commands(page)
        for name in re.findall(r"\w+\.(?:txt|ts)\b", command)
    }
    assert {"timemachine.txt", "tinyshakespeare.txt", "JapaneseVowels_TRAIN.ts"} <= named & set(reprint.TEXTS)


@pytest.fixture
def small_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(reprint, "ROOT", tmp_path)
    for name in reprint.SCRIPTS:
        (tmp_path / name).mkdir()
    text = (
        "# Page\n\n```python\n>>> n = 3\n>>> n + 1\n4\n```\n\n```console\n"
        "$ echo one; echo 7 tokens/s\none\n9 tokens/s\n$ echo two >&2\ntwo\n```\n"
    )
    for name in ("page.md", "page.zh-CN.md"):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path / "page.md"


def test_a_wrong_output_is_found_and_a_speed_is_not_compared(small_page: Path) -> None:
    assert reprint.differences(small_page) == []
    text = small_page.read_text(encoding="utf-8")
    for right, wrong in (("\n4\n", "\n5\n"), ("\ntwo\n", "\nthree\n"), ("\none\n", "\n")):
        small_page.write_text(text.replace(right, wrong, 1), encoding="utf-8")
        assert reprint.differences(small_page)


def test_writing_corrects_both_languages_and_leaves_speeds(small_page: Path) -> None:
    right = small_page.read_text(encoding="utf-8")
    twin = reprint.chinese(small_page)
    small_page.write_text(right.replace("\n4\n", "\n5\n").replace("\ntwo\n", "\nthree\n"), encoding="utf-8")
    twin.write_text(right.replace("one\n", "wrong\n"), encoding="utf-8")
    reprint.write(small_page)
    assert small_page.read_text(encoding="utf-8") == twin.read_text(encoding="utf-8") == right


@pytest.mark.parametrize("write_it", [False, True])
def test_an_exception_that_no_page_expects_is_reported_and_never_written(
    small_page: Path, write_it: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    text = small_page.read_text(encoding="utf-8").replace(">>> n + 1\n4", ">>> n / 0\n4")
    small_page.write_text(text, encoding="utf-8")
    assert not reprint.done(small_page, write_it=write_it, quick=False)
    assert "page.md: ZeroDivisionError: division by zero\n>>> n / 0" in capsys.readouterr().out
    assert small_page.read_text(encoding="utf-8") == text


def test_blocks_without_their_text_are_not_run(small_page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = small_page.read_text(encoding="utf-8")
    small_page.write_text(text.replace("echo two >&2", "cat timemachine.txt"), encoding="utf-8")
    monkeypatch.delenv("UNSPOOL_DATA", raising=False)
    assert reprint.missing(small_page) == ["timemachine.txt"]
    assert reprint.runnable(small_page) == [True, False]
    assert reprint.differences(small_page) == []


def test_json_is_shortened_and_its_line_breaks_are_not_compared() -> None:
    record = {
        "a": 1 / 3,
        "b": [1, 2, 3, 4],
        "c": [{"d": 1, "e": 2, "f": 3, "g": 4, "h": 5}, {}],
        "s": "x" * 50,
    }
    text = shortened(record)
    assert (
        text
        == '{"a": 0.3333, "b": [1, 2, …], "c": [{"d": 1, "e": 2, "f": 3, "g": 4, …}, …], "s": "'
        + "x" * 40
        + ' …"}'
    )
    one = normalised("$ x --json", [text])
    assert one == normalised("$ x --json", text.replace(", ", ",\n ").split("\n"))
    assert one != normalised("$ x --json", [text.replace("0.3333", "0.3334")])


@pytest.mark.parametrize("page", ["README.md", "docs/reliability.md", "docs/engine.md"])
def test_figures_are_filled_in_between_their_marks(page: str, tmp_path: Path) -> None:
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        from table import fill_page, markdown
    finally:
        sys.path.pop(0)
    name = re.findall(r"<!-- figures:(\w+) -->", content(page))[0]
    for each in (page, page.replace(".md", ".zh-CN.md")):
        made = tmp_path / "page.md"
        made.write_text(content(each), encoding="utf-8")
        for figure in ("1", "2"):
            fill_page(made, name, markdown(["what", "how many"], [["commands", figure]]))
        text = made.read_text(encoding="utf-8")
        assert "| what | how many |\n| --- | --- |\n| commands | 2 |\n<!-- /figures -->" in text
        assert "| commands | 1 |" not in text
        assert text.split("<!-- figures")[0] == content(each).split("<!-- figures")[0]
        with pytest.raises(SystemExit):
            fill_page(made, "nothing", "")


@pytest.mark.parametrize("page", PROSE)
def test_links_and_pictures_of_a_page_are_there(page: str) -> None:
    targets = [target for target in re.findall(r"\]\(([^)#]+)\)", content(page)) if "://" not in target]
    missing = [target for target in targets if not ((ROOT / page).parent / target).exists()]
    assert missing == []


@pytest.mark.parametrize("page", BOTH)
def test_files_that_a_page_names_are_there(page: str) -> None:
    named = re.findall(r"`((?:src|csrc|tests|bench|examples|docs)/[\w./-]+\.(?:py|h|cpp))`", content(page))
    missing = [name for name in named if not (ROOT / name).exists()]
    assert missing == []


def test_the_modules_of_the_file_map_are_there() -> None:
    text = content("README.md")
    tree = text[text.index("\nsrc/unspool/") + 1 :].split("```")[0]
    names = [
        name for line in tree.splitlines()[1:-1] for name in re.split(r"\s{2,}", line.strip())[0].split()
    ]
    assert len(names) > 17
    missing = [
        name
        for name in names
        if not (ROOT / "src/unspool" / name).is_dir() and not (ROOT / f"src/unspool/{name}.py").exists()
    ]
    assert missing == []
