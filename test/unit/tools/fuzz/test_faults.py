"""A sample of the faults: one or two of each kind. All of them: ``make fuzz-faults``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.fuzz import fault_laws as laws
from tools.fuzz import faults
from tools.fuzz.fault_cases import COMMANDS, Case, Fault, cases

ALL = list(cases())
KINDS = {kind: [case for case in ALL if case.fault is kind] for kind in Fault}
SAMPLE = [of[len(of) // 2] for of in KINDS.values()]


@pytest.fixture(scope="module")
def injected(tmp_path_factory: pytest.TempPathFactory) -> faults.Faults:
    return faults.Faults(tmp_path_factory.mktemp("faults"))


def test_there_are_enough_and_of_every_kind() -> None:
    assert len(ALL) >= 200
    assert all(len(of) >= 15 for of in KINDS.values())
    assert {case.command for case in ALL} == COMMANDS.keys()


@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: case.fault.name)
def test_no_law_is_broken(case: Case, injected: faults.Faults) -> None:
    assert injected.broken(case) == []


@pytest.mark.parametrize(
    ("ended", "law"),
    [
        (laws.Ended(0, b"", "", 1, True), "stays behind"),
        (laws.Ended(-11, b"", "", 1, False), "status -11"),
        (laws.Ended(1, b"", "error: no", 1, False), "without a code"),
        (laws.Ended(1, b"", "error: internal error in x [SP199]", 1, False), "internal error"),
        (laws.Ended(1, b"", "Traceback (most recent call last): [SP199]", 1, False), "traceback"),
        (laws.Ended(0, b"\x1b[31m", "", 1, False), "escape sequence"),
    ],
)
def test_a_broken_law_is_seen(ended: laws.Ended, law: str) -> None:
    assert any(law in found for found in laws.of_ends(Case(0, Fault.SIZE, "opt"), ended))


def test_a_part_of_an_output_is_seen(tmp_path: Path) -> None:
    usual, case = laws.Usual(b"all of it", 1), Case(0, Fault.FULL, "opt")
    done, failed = laws.Ended(0, b"", "", 1, False), laws.Ended(1, b"", "[SP121]", 1, False)
    assert laws.of_output(case, b"all of it", done, usual) == []
    assert laws.of_output(case, laws.OLD, failed, usual) == []
    assert laws.of_output(case, b"all", failed, usual)
    assert laws.of_output(case, laws.OLD, done, usual)
