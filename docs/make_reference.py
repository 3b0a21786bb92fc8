"""Write docs/reference.md and docs/reference.zh-CN.md: every hyper-parameter, from the declarations in the code.

    python docs/make_reference.py            exit code 1 if a page is out of date
    python docs/make_reference.py --write    write both pages

A help text that has changed needs a new translation in `reference_zh.json`; the error names it.
"""

import json
import sys
from dataclasses import MISSING, fields
from pathlib import Path
from types import UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from unspool.cli.commands import classify, forecast, generate_from, regress, tag, train, translate
from unspool.cli.commands.train import Reading
from unspool.cli.learning import LearnOptions, PromptLearning
from unspool.model.config import ModelConfig
from unspool.optimisers.adam import Adam
from unspool.optimisers.rmsprop import RMSprop
from unspool.optimisers.sgd import SGD
from unspool.options import Option, option_of
from unspool.tasks.classify import SequenceClassifier
from unspool.tasks.forecast.forecaster import Forecaster
from unspool.tasks.generate_from import SequenceGenerator
from unspool.tasks.language.estimator import LanguageModel
from unspool.tasks.regress import SequenceRegressor
from unspool.tasks.tag import SequenceTagger
from unspool.tasks.translate import SequenceTranslator
from unspool.training.dynamic import Learning

FOLDER = Path(__file__).parent
PYTHON: dict[str, list[Any]] = {
    "language": [LanguageModel],
    "classify": [SequenceClassifier],
    "regress": [SequenceRegressor],
    "tag": [SequenceTagger],
    "translate": [SequenceTranslator],
    "generate-from": [SequenceGenerator],
    "forecast": [Forecaster],
    "ModelConfig": [ModelConfig],
    "Adam": [Adam],
    "RMSprop": [RMSprop],
    "SGD": [SGD],
    "Learning": [Learning],
}
"""The classes that take arguments in Python, by task."""
COMMANDS: dict[str, list[Any]] = {
    "train": [Reading, train.Options],
    "classify": [classify.Options],
    "regress": [regress.Options],
    "tag": [tag.Options],
    "translate": [translate.Options],
    "generate-from": [generate_from.Options],
    "forecast": [forecast.Options],
    "evaluate": [LearnOptions],
    "generate": [PromptLearning],
}
"""The options of `unspool train` and of every `fit`, and the declared ones of `evaluate` and `generate`."""
GROUPS = {
    "Text": "文本",
    "Data": "数据",
    "Time": "时间",
    "Network": "网络",
    "Training": "训练",
    "Output": "输出",
}


class Words(NamedTuple):
    """The fixed text of a page in one language."""

    page: str
    title: str
    intro: str
    header: str
    separator: str
    groups: dict[str, str]
    translations: dict[str, str] | None


ENGLISH = Words(
    "reference.md",
    "# Reference of hyper-parameters",
    "Every hyper-parameter, with its name in Python, its option, its values and its defaults. `docs/make_reference.py` "
    "writes this page from the declarations in the code (`src/unspool/options.py`). · [中文](reference.zh-CN.md)\n\n"
    "In Python they are arguments of `LanguageModel` (language), `SequenceClassifier` (classify), `SequenceRegressor` (regress), "
    "`SequenceTagger` (tag), `SequenceTranslator` (translate), `SequenceGenerator` (generate-from) and `Forecaster` (forecast); "
    "a default without a name in brackets holds for all others. On the command line they are options of `unspool train` and of "
    "every `fit`; `--config FILE.toml` or `.json` takes the same names as keys, and options win over the file. “–” means "
    "not set: chosen for the data and the time, or not limited. Former names work for one version, with a hint.",
    "| Python | option | type | values | default in Python | default of the command | meaning |",
    ", ",
    {name: name for name in GROUPS},
    None,
)
CHINESE = Words(
    "reference.zh-CN.md",
    "# 超参数参考",
    "每个超参数的 Python 名字、命令行选项、取值和默认值。本页由 `docs/make_reference.py` 根据代码中的声明（`src/unspool/options.py`）"
    "生成。 · [English](reference.md)\n\n"
    "在 Python 中，它们是 `LanguageModel`（language）、`SequenceClassifier`（classify）、`SequenceRegressor`（regress）、`SequenceTagger`（tag）、"
    "`SequenceTranslator`（translate）、`SequenceGenerator`（generate-from）和 `Forecaster`（forecast）的参数；不带括号的默认值适用于其余各项。"
    "在命令行上，它们是 `unspool train` 和各个 `fit` 的选项；`--config FILE.toml` 或 `.json` 用同样的名字作键，命令行选项优先于文件。"
    "“–”表示未设：根据数据和时间选择，或不加限制。旧名字在一个版本内仍可用，并给出提示。",
    "| Python | 选项 | 类型 | 取值 | Python 默认值 | 命令默认值 | 含义 |",
    "、",
    GROUPS,
    json.loads((FOLDER / "reference_zh.json").read_text("utf-8")),
)


def declared(classes: dict[str, list[Any]]) -> dict[Option[Any], dict[str, Any]]:
    """Return the default of every declared hyper-parameter, by task."""
    found: dict[Option[Any], dict[str, Any]] = {}
    for task, kinds in classes.items():
        for field in (field for kind in kinds for field in fields(kind)):
            if (option := option_of(field)) is not None:
                found.setdefault(option, {})[task] = field.default
    return found


def page(words: Words) -> str:
    """Return the page in one language."""
    python, commands = declared(PYTHON), declared(COMMANDS)
    options = list(dict.fromkeys([*python, *commands]))
    lines = [words.title, "", words.intro, ""]
    for group, title in words.groups.items():
        lines += [f"## {title}", "", words.header, "|---" * 7 + "|"]
        for option in (option for option in options if option.group == group):
            lines.append(_row(option, python.get(option, {}), commands.get(option, {}), words))
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _row(option: Option[Any], python: dict[str, Any], commands: dict[str, Any], words: Words) -> str:
    help = option.help if words.translations is None else words.translations.get(option.help)
    if help is None:
        raise SystemExit(f"docs/reference_zh.json: no translation of {option.help!r}")
    names = dict.fromkeys([option.option or option.name, option.name, *option.former]) if commands else ()
    values = option.choices or (
        (option.check.expected,) if option.check and words.translations is None else _values(option)
    )
    cells = [
        f"`{option.name}`",
        " ".join(f"`--{name.replace('_', '-')}`" for name in names) or "–",
        _type(option),
        words.separator.join(values) or "–",
        _defaults(python),
        _defaults(commands),
        help if "`" in help else help.replace("<unk>", "`<unk>`"),
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _values(option: Option[Any]) -> tuple[str, ...]:
    return (CHINESE_CHECKS.get(option.check.expected, option.check.expected),) if option.check else ()


CHINESE_CHECKS = {
    "True or False": "True 或 False",
    "a number of at least 0 and below 1": "0 ≤ x < 1",
    "a number above 0 and below 1": "0 < x < 1",
    "a number from 0 to 1": "0 ≤ x ≤ 1",
    "a number above 0": "x > 0",
    "a number of 0 or more": "x ≥ 0",
    "a finite number": "有限数",
    "a number above 0 and at most 100,000": "0 < x ≤ 100,000",
    **{f"a whole number of {n} or more": f"整数 ≥ {n}" for n in (0, 1)},
    "a whole number, 1 to 1,000": "整数 1 … 1,000",
    "a whole number, 0 to 1,000": "整数 0 … 1,000",
    "a whole number, 1 to 100": "整数 1 … 100",
    "a whole number, 1 to 1,000,000": "整数 1 … 1,000,000",
    "a whole number, 1 to 10,000,000,000": "整数 1 … 10,000,000,000",
    "a whole number, 0 to 10,000,000,000": "整数 0 … 10,000,000,000",
}


def _type(option: Option[Any]) -> str:
    """Return the Python type of a hyper-parameter, without None."""
    kind, name = next(
        (kind, field.name)
        for kinds in [*PYTHON.values(), *COMMANDS.values()]
        for kind in kinds
        for field in fields(kind)
        if option_of(field) is option
    )
    hint = get_type_hints(kind)[name]
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    names = ["str" if get_origin(part) is Literal else (get_origin(part) or part).__name__ for part in parts]
    return " or ".join(name for name in names if name != "NoneType")


def _defaults(defaults: dict[str, Any]) -> str:
    """Return the defaults by task: the most frequent one first, without the tasks that have it."""
    tasks: dict[str, list[str]] = {}
    for task, value in defaults.items():
        tasks.setdefault(_shown(value), []).append(task)
    ordered = sorted(tasks, key=lambda shown: -len(tasks[shown]))
    return (
        "; ".join(
            shown if i == 0 and len(tasks[shown]) > 1 else f"{shown} ({', '.join(tasks[shown])})"
            for i, shown in enumerate(ordered)
        )
        or "–"
    )


def _shown(value: Any) -> str:
    return "–" if value in (None, (), "", MISSING) else f"`{value}`"


def main() -> None:
    """Check the pages, or write them."""
    for words in (ENGLISH, CHINESE):
        path = FOLDER / words.page
        if sys.argv[1:] == ["--write"]:
            path.write_text(page(words), "utf-8")
        elif not path.exists() or path.read_text("utf-8") != page(words):
            sys.exit(f"{path} is out of date: run python docs/make_reference.py --write")


if __name__ == "__main__":
    main()
