"""A part of the campaign of bad calls; `python tests/bad_calls.py` runs all of it."""

from pathlib import Path

import bad_calls

EVERY = 17


def test_every_command_has_a_valid_call_to_start_from() -> None:
    assert set(bad_calls.commands()) == set(bad_calls.BASES)


def test_the_campaign_covers_every_option_and_at_least_300_certain_mistakes() -> None:
    found = list(bad_calls.calls())
    assert sum(call.refused for call in found) >= 300
    tried = {" ".join(call.arguments) for call in found}
    for name, node in bad_calls.commands().items():
        for argument in node.assemble_argument_collection():
            option = argument.names[0]
            if (
                not argument.children
                and option.startswith("--")
                and bool not in bad_calls.leaves(argument.hint)
            ):
                assert any(each.startswith(name) and f" {option} " in each for each in tried), (name, option)


def test_a_traceback_a_crash_a_lost_file_and_silence_are_faults(tmp_path: Path) -> None:
    call = bad_calls.Call(("stats", "x"), refused=True)
    assert bad_calls.judge(call, 2, "unspool: x: no such file\n") == ""
    for code, stderr in (
        (1, "Traceback (most recent call last):"),
        (-11, ""),
        (70, "unspool: …\n"),
        (None, ""),
        (0, ""),
        (2, ""),
        (2, "a\nb\n"),
    ):
        assert bad_calls.judge(call, code, stderr), (code, stderr)


def test_bad_calls_end_with_one_line_and_change_no_file() -> None:
    ended = bad_calls.run_all(list(bad_calls.calls())[::EVERY], workers=1)
    assert [each for each in ended if each.fault] == []
    assert len(ended) > 100
