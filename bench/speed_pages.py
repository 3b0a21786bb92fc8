"""Write the figures of `bench/train_step.py` into README and docs/engine.md, in both languages.

    python bench/train_step.py
    python bench/speed_pages.py [bench/results/train_step.json …]

README gets the whole step with tokens and the layer alone with dense inputs; docs/engine.md gets the recurrent part with tokens and
rows of different lengths too, and bf16 for every table. Pass several files if the benchmark was run in parts.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from table import RESULTS, fill_page, markdown

ROOT = Path(__file__).parents[1]
CELLS = {"elman": "Elman", "gru": "GRU", "lstm": "LSTM"}
Figures = dict[str, Any]
ENGLISH = {
    "mean": "mean (by medians)",
    "lowest": "lowest",
    "jax": "mean vs JAX (without update)",
    "peak": "fraction of the CPU's peak FLOP/s",
    "cell": "cell",
    "torch bf16": "bf16 vs PyTorch's bf16: mean (by medians), lowest",
    "how": "Speed-ups: the time of PyTorch {torch} divided by that of unspool, both in float32, best of at least {rounds} alternating "
    "repetitions; geometric means over B = {B} and tau = {tau}; two threads, separate processes.",
    "tokens step": "**Tokens, whole step** with K = {K}: look-up, recurrence, output layer, softmax, all gradients, Adam. {sides} So these figures "
    "are not those of the layer alone.",
    "tokens recurrent": "**Tokens, recurrent part** with K = {K}: without output layer and update. {sides} So these figures are not those of "
    "the layer alone.",
    "table": "unspool looks up b + U x in a table; PyTorch has `Embedding(K, H)` and a layer that reads H values.",
    "embedding": "Both sides have an embedding of width H.",
    "dense recurrent": "**Dense inputs, the layer alone**, X values per step: forward, backward and the gradients of W, U and b, the same arithmetic on both sides, X = {X}.",
    "lengths recurrent": "**Rows of different lengths, the layer alone**, dense inputs with X = {X}: PyTorch packs the rows (`pack_padded_sequence`), unspool takes the lengths.",
    "bf16": "Speed of bf16 compared with unspool's float32, and with the faster of PyTorch under autocast and as a module in bfloat16 "
    "(a dash: not measured){failed}:",
    "failed": "; PyTorch's bf16 ended here with {reason}",
}
CHINESE = {
    "mean": "平均（按中位数）",
    "lowest": "最小",
    "jax": "相对 JAX 的平均加速比（不含参数更新）",
    "peak": "占 CPU 峰值 FLOP/s 的比例",
    "cell": "循环单元",
    "torch bf16": "bf16 相对 PyTorch 的 bf16：平均（按中位数）、最小",
    "how": "加速比：PyTorch {torch} 的时间除以 unspool 的时间，两者都用 float32，取至少 {rounds} 次轮流测量中最快的一次；对 B = {B} 与 tau = {tau} 取几何平均；"
    "各用两个线程、各在独立的进程里。",
    "tokens step": "**词元输入，整个训练步**，K = {K}：查表、循环层、输出层、softmax、全部梯度、Adam。{sides}所以这些数字不代表循环层本身。",
    "tokens recurrent": "**词元输入，循环部分**，K = {K}：不含输出层与参数更新。{sides}所以这些数字不代表循环层本身。",
    "table": "unspool 从表中查出 b + U x；PyTorch 用 `Embedding(K, H)`，循环层读入 H 个值。",
    "embedding": "两边都有宽度为 H 的嵌入。",
    "dense recurrent": "**稠密输入，只有循环层**，每步 X 个值：前向、反向以及 W、U、b 的梯度，两边的运算相同，X = {X}。",
    "lengths recurrent": "**长度不同的序列，只有循环层**，稠密输入，X = {X}：PyTorch 打包各行（`pack_padded_sequence`），unspool 直接接受长度。",
    "bf16": "bf16 的速度：相对 unspool 的 float32，以及相对 PyTorch 的 bf16（autocast 与 bfloat16 模块中较快的一个；横线表示没有测量）{failed}：",
    "failed": "；PyTorch 的 bf16 在这里以 {reason} 结束",
}


def read(paths: list[Path]) -> Figures:
    """Return the figures of all files as one."""
    found = [json.loads(path.read_text(encoding="utf-8"))["figures"] for path in paths]
    hello = {name: value for each in found for name, value in each["contenders"].items()}
    return {
        "contenders": hello,
        "rounds": min(each["rounds"] for each in found),
        **{key: [item for each in found for item in each[key]] for key in ("cases", "summary")},
    }


def groups(figures: Figures, inputs: str, part: str) -> list[list[dict[str, Any]]]:
    """Return the summaries of each table row: one cell with one K or one X, by H and over all H."""
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for each in figures["summary"]:
        if (each["inputs"], each["part"]) == (inputs, part):
            found.setdefault((each["K"], each["width"], each["cell"]), []).append(each)
    return list(found.values())


def number(ratios: dict[str, Any], name: str, *, more: str = "") -> str:
    """Return a speed-up, with the one by medians or the least behind it; a dash where there is none."""
    mean = ratios.get(name)
    if mean is None:
        return "–"
    median = f" ({mean['median']:.2f})" if more else ""
    return f"{mean['best']:.2f}{median}{', {:.2f}'.format(mean['least']) if more == 'all' else ''}"


def size(each: dict[str, Any]) -> str:
    """Return the size that tells the rows of a table apart."""
    if each["inputs"] == "tokens":
        return f"K = {each['K']:,}"
    return f"X = {each['width']}"


def speed_table(rows: list[list[dict[str, Any]]], words: dict[str, str]) -> str:
    """Return the speed-ups in float32 over PyTorch by cell and H."""
    H = [f"H = {each['H']}" for each in rows[0] if each["H"] != "all"]
    jax = any("x jax" in row[0]["ratios"] for row in rows)
    body = []
    for whole, *by_H in rows:
        mean = whole["ratios"].get("x torch")
        last = [number(whole["ratios"], "x jax")] if jax else []
        share = "–" if whole["of_peak"] is None else f"{100 * whole['of_peak']:.0f} %"
        body.append(
            [CELLS[whole["cell"]], size(whole), *(number(each["ratios"], "x torch") for each in by_H),
             number(whole["ratios"], "x torch", more="median"), f"{mean['least']:.2f}" if mean else "–", *last, share]
        )  # fmt: skip
    columns = [words["cell"], "", *H, words["mean"], words["lowest"], *([words["jax"]] if jax else [])]
    return markdown([*columns, words["peak"]], body)


def bf16_table(rows: list[list[dict[str, Any]]], words: dict[str, str]) -> str:
    """Return the speed of bf16 by cell and H, compared with our float32 and PyTorch's bf16."""
    H = [f"H = {each['H']}" for each in rows[0] if each["H"] != "all"]
    name, other = "bf16 / float32", "bf16 x torch bf16"
    body = [
        [CELLS[whole["cell"]], size(whole), *(number(each["ratios"], name) for each in by_H),
         number(whole["ratios"], name, more="median"), number(whole["ratios"], other, more="all")]
        for whole, *by_H in rows
    ]  # fmt: skip
    return markdown([words["cell"], "", *H, words["mean"], words["torch bf16"]], body)


def section(figures: Figures, inputs: str, part: str, words: dict[str, str], *, bf16: bool) -> list[str]:
    """Return the paragraphs of one kind of inputs: what is compared, float32 and, if wanted, bf16."""
    rows, found = groups(figures, inputs, part), []
    for large in (False, True):
        some = [row for row in rows if (row[0]["K"] > 1024) == large]
        if not some:
            continue
        K = ", ".join(dict.fromkeys(f"{row[0]['K']:,}" for row in some))
        X = ", ".join(dict.fromkeys(row[0]["width"] for row in some))
        sides = words["embedding" if large else "table"]
        found += [
            words[f"{inputs} {part}"].format(K=K, X=X, sides=sides + (" " if words is ENGLISH else "")).replace("  ", " "),
            speed_table(some, words),
        ]  # fmt: skip
        if bf16 and any("bf16 / float32" in row[0]["ratios"] for row in some):
            reasons = {
                reason
                for case in figures["cases"]
                if (case["inputs"], case["part"]) == (inputs, part)
                for name, reason in case["failed"].items()
                if name.startswith("torch")
            }
            failed = words["failed"].format(reason=", ".join(sorted(reasons))) if reasons else ""
            found += [words["bf16"].format(failed=failed), bf16_table(some, words)]
    return found


def page(
    figures: Figures, kinds: list[tuple[str, str]], words: dict[str, str], *, bf16: tuple[str, ...]
) -> str:
    """Return the text of a page: how it was measured, and the tables of some kinds of inputs."""
    tau, B = (", ".join(map(str, sorted({case[key] for case in figures["cases"]}))) for key in ("tau", "B"))
    torch = figures["contenders"].get("torch float32", {}).get("version", "").split("+")[0]
    found = [words["how"].format(torch=torch, tau=tau, B=B, rounds=figures["rounds"])]
    for inputs, part in kinds:
        found += section(figures, inputs, part, words, bf16=inputs in bf16)
    return "\n\n".join(found)


KINDS = {
    "README": [("tokens", "step"), ("dense", "recurrent")],
    "docs/engine": [
        ("tokens", "step"),
        ("tokens", "recurrent"),
        ("dense", "recurrent"),
        ("lengths", "recurrent"),
    ],
}
"""The tables of each page."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path, default=[RESULTS / "train_step.json"])
    parser.add_argument("--print", action="store_true", help="print the text; write nothing")
    args = parser.parse_args()
    figures = read(args.files)
    for name, kinds in KINDS.items():
        for words, ending in ((ENGLISH, ".md"), (CHINESE, ".zh-CN.md")):
            text = page(figures, kinds, words, bf16=("tokens", "dense", "lengths"))
            if args.print:
                print(f"── {name}{ending} ──\n{text}\n")
            else:
                fill_page(ROOT / f"{name}{ending}", "train_step", text)


if __name__ == "__main__":
    main()
