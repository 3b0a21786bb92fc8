"""Every cell learns every task to the same bits as when the hashes were frozen, on every machine.

What is frozen, and how it is frozen again, is written in `golden.parameters`.
"""

from __future__ import annotations

import pytest

import unspool
from golden.parameters import ON_OTHER_MACHINES, WINDOWS, all_cases, hash_of, stored
from golden.window import has_the_same_tanh

FROZEN = stored()
OTHER_SETS = [name for name in unspool.kernel_info()["available"] if name != unspool.kernel_info()["isa"]]


def check(case: str, **machine) -> None:
    if case in WINDOWS and not has_the_same_tanh():
        pytest.skip("NumPy's tanh has other bits on this processor")
    found = hash_of(case, **machine)
    shapes = list(found.names.values()), list(FROZEN[case].names.values())
    assert shapes[0] == shapes[1], f"{case}: the tensors of the file have other shapes or another order"
    assert found.sha256 == FROZEN[case].sha256, f"{case}: other parameters after 20 updates"


def test_no_case_is_missing_and_none_is_left_over() -> None:
    assert sorted(FROZEN) == sorted(all_cases())


def test_no_two_cases_end_in_the_same_parameters() -> None:
    by_hash: dict[str, list[str]] = {}
    for case, each in FROZEN.items():
        by_hash.setdefault(each.sha256, []).append(case)
    assert not [cases for cases in by_hash.values() if len(cases) > 1]


@pytest.mark.parametrize("case", all_cases())
def test_twenty_updates_end_in_the_frozen_parameters(case: str) -> None:
    check(case)


@pytest.mark.parametrize("case", ON_OTHER_MACHINES)
def test_one_thread_ends_in_the_frozen_parameters(case: str) -> None:
    check(case, threads=1)


@pytest.mark.parametrize("isa", OTHER_SETS)
@pytest.mark.parametrize("case", ON_OTHER_MACHINES)
def test_another_instruction_set_ends_in_the_frozen_parameters(case: str, isa: str) -> None:
    check(case, isa=isa)
