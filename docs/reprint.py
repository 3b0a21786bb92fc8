"""Check what the pages print, or print it anew.

    python docs/reprint.py                        run the blocks of all pages; exit code 1 if an output differs
    python docs/reprint.py --write docs/walk.md   run the blocks of a page; write new outputs, in both languages

A ```python block holds doctest examples; a ```console block holds shell commands after "$ ", each followed by its
output. The blocks of a page run in order, in one new folder per page. The Chinese page shows the same blocks.
Blocks marked ```console slow take more than a few seconds: `--quick`, and so the test, leaves them out.

Texts that are not part of the project come from the folder that UNSPOOL_DATA names; the blocks of a page whose texts are
missing are skipped, in one line. Times, speeds, thread counts and paths are not compared (`blocks.normalised`), and an output that
differs in them alone is left as it is. Read the difference before you commit it.
"""

import argparse
import contextlib
import difflib
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from blocks import BLOCK, Block, Example, normalised

ROOT = Path(__file__).resolve().parents[1]
TEXTS = {
    "timemachine.txt": "timemachine.txt",
    "tinyshakespeare.txt": "tinyshakespeare.txt",
    "JapaneseVowels_TRAIN.ts": "japanese_vowels/JapaneseVowels_TRAIN.ts",
    "JapaneseVowels_TEST.ts": "japanese_vowels/JapaneseVowels_TEST.ts",
    "names/": "names",
}
"""What a page may use by name, and where it is in the folder that UNSPOOL_DATA names."""
SCRIPTS = ("bench", "examples")
"""Folders of the project that commands of a page may use."""


def pages() -> list[Path]:
    """Return the README and all English pages that have blocks."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [page for page in found if ".zh-CN." not in page.name and blocks_of(page)]


def chinese(page: Path) -> Path:
    """Return the Chinese page of an English one."""
    return page.with_name(page.name.replace(".md", ".zh-CN.md"))


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks of a page that can be run."""
    return [Block.parse(match) for match in BLOCK.finditer(page.read_text(encoding="utf-8"))]


def used(blocks: list[Block], names: Iterable[str] = TEXTS) -> list[str]:
    """Return those of the named texts that the commands and examples of some blocks use."""
    sources = [example.source for block in blocks for example in block.examples]
    return [name for name in names if any(name in source for source in sources)]


def missing(page: Path) -> list[str]:
    """Return the texts of a page that are not in the folder that UNSPOOL_DATA names."""
    data = os.environ.get("UNSPOOL_DATA")
    return [name for name in used(blocks_of(page)) if data is None or not Path(data, TEXTS[name]).exists()]


def runnable(page: Path, *, quick: bool = False) -> list[bool]:
    """Return for every block of a page whether it can be run with the texts that are there."""
    blocks = blocks_of(page)
    absent = used(blocks) if quick else missing(page)
    python = [block for block in blocks if block.kind == "python"]
    return [
        not (used(python, absent) if block.kind == "python" else absent or (quick and block.slow))
        for block in blocks
    ]


@contextlib.contextmanager
def prepared_folder(page: Path) -> Iterator[Path]:
    """Make a folder with what a page's blocks use, and work in it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for script in SCRIPTS:
            (folder / script).symlink_to(ROOT / script)
        for text in set(used(blocks_of(page))) - set(missing(page)):
            source = Path(os.environ["UNSPOOL_DATA"], TEXTS[text])
            if source.is_dir():
                shutil.copytree(source, folder / text)
            else:
                shutil.copyfile(source, folder / text)
        with contextlib.chdir(folder):
            yield folder


def run(
    page: Path, *, quick: bool = False, kinds: Sequence[str] = ("python", "console")
) -> Iterator[tuple[Block, list[list[str]]]]:
    """Run the blocks of a page in order; yield each with the lines that its examples print."""
    names: dict[str, object] = {"__name__": "__main__"}
    with prepared_folder(page):
        for block, can_run in zip(blocks_of(page), runnable(page, quick=quick), strict=True):
            if can_run and block.kind in kinds:
                yield block, [block.run(example, names) for example in block.examples]


def differences(
    page: Path, *, quick: bool = False, kinds: Sequence[str] = ("python", "console")
) -> list[str]:
    """Return the lines of a comparison of what a page prints with what its blocks print now."""
    found = list[str]()
    for block, printed in run(page, quick=quick, kinds=kinds):
        for example, now in zip(block.examples, printed, strict=True):
            if not same(example, now):
                found += [f"{page.relative_to(ROOT)}: {example.source.splitlines()[0]}"]
                found += list(difflib.unified_diff(example.output, now, "page", "now", lineterm="", n=1))
    return found


def same(example: Example, now: list[str]) -> bool:
    """Return whether an example prints what the page says, times and the like left out."""
    return normalised(example.source, example.output) == normalised(example.source, now)


def write(page: Path) -> list[str]:
    """Run the blocks of a page, write what differs, show the same blocks on the Chinese page; return what went wrong."""
    made = [
        block.text(
            [e.output if same(e, now) else now for e, now in zip(block.examples, printed, strict=True)]
        )
        for block, printed in run(page)
    ]
    for each in (page, chinese(page)):
        content = each.read_text(encoding="utf-8")
        if len(BLOCK.findall(content)) != len(made):
            raise SystemExit(
                f"{each}: {len(BLOCK.findall(content))} blocks; expected {len(made)} as in {page}"
            )
        blocks = iter(made)
        each.write_text(BLOCK.sub(lambda _, rest=blocks: next(rest), content), encoding="utf-8")
    return []


def main() -> None:
    """Check or write the pages that are named, or all of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "pages", nargs="*", type=Path, help="English pages [default: README.md and docs/*.md]"
    )
    parser.add_argument("--write", action="store_true", help="write new outputs into the pages")
    parser.add_argument("--quick", action="store_true", help="leave out slow blocks and named texts")
    given = parser.parse_args()
    if given.write and given.quick:
        parser.error("--write prints whole pages; leave out --quick")
    chosen = [each.resolve() for each in given.pages] or pages()
    sys.exit(0 if all([done(page, write_it=given.write, quick=given.quick) for page in chosen]) else 1)


def done(page: Path, *, write_it: bool, quick: bool) -> bool:
    """Check or write one page, print what came of it, and return whether all is well."""
    name, absent = page.relative_to(ROOT), [] if quick else missing(page)
    if absent:
        what = "not written" if write_it else "blocks without their text are skipped"
        print(f"{name}: {what}: UNSPOOL_DATA does not name a folder with {', '.join(absent)}", flush=True)
    if write_it and absent:
        return False
    try:
        found = write(page) if write_it else differences(page, quick=quick)
    except Exception as error:  # the other pages are still worth a run
        found = [f"{name}: {''.join(traceback.format_exception_only(error)).strip()}"]
    if found or not absent:
        print("\n".join(found) or f"{name}: {'written' if write_it else 'as printed'}", flush=True)
    return not found


if __name__ == "__main__":
    main()
