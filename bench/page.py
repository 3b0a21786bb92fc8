"""Measure the processor time of a browser to load a report, compared with an empty page.

    unspool inspect RUN TEXT --out report
    python bench/page.py report/report.html

The time is the user and system time of all processes of the browser, which depends less on other load than wall time.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

EMPTY = "<!doctype html><title>empty</title><p>empty"


def spent(browser: str, page: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,900", "--dump-dom"]
    subprocess.run([browser, *options, page.resolve().as_uri()], capture_output=True, check=True, timeout=120)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("page", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("needs chromium")
    with tempfile.TemporaryDirectory() as place:
        empty = Path(place) / "empty.html"
        empty.write_text(EMPTY, encoding="utf-8")
        rounds = [(spent(browser, empty), spent(browser, given.page)) for _ in range(given.rounds)]
    for name, i in (("empty page", 0), ("report", 1)):
        print(f"{name:12} {statistics.median(each[i] for each in rounds):.2f} s of processor time")
    more = statistics.median(report - nothing for nothing, report in rounds)
    print(f"{'more':12} {more:.2f} s, {given.page.stat().st_size / 2**20:.2f} MiB")


if __name__ == "__main__":
    main()
