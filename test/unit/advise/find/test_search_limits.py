"""The search for edits ends when its time is spent, or at Ctrl-C, and keeps what it has.

Compiles are fakes, and are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from shardpass.advise.find import rank, search
from shardpass.advise.find.budget import COMPILES, LEAST, Budget
from shardpass.advise.find.causes import Cause
from shardpass.advise.find.search import Asked, find_edits
from shardpass.cost.chosen import chosen
from shardpass.report.findings import INTERRUPTED, LATE, NAME, Figures, Finding, Findings
from shardpass.report.naming import Sources

# two constraints that gather a value between products that are split alike: dropping either saves
MODULE = """
sdy.mesh @mesh = <["data"=4, "model"=2]>
func.func @main(%x: tensor<256x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
    %up: tensor<128x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>},
    %down: tensor<512x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>})
    -> (tensor<256x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) {
  %0 = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0]
    : (tensor<256x128xf32>, tensor<128x512xf32>) -> tensor<256x512xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"data"}, {}]> : tensor<256x512xf32>
  %2 = stablehlo.tanh %1 : tensor<256x512xf32>
  %3 = sdy.sharding_constraint %2 <@mesh, [{"data"}, {}]> : tensor<256x512xf32>
  %4 = stablehlo.dot_general %3, %down, contracting_dims = [1] x [0]
    : (tensor<256x512xf32>, tensor<512x128xf32>) -> tensor<256x128xf32>
  return %4 : tensor<256x128xf32>
}
"""


@dataclass
class Compiles:
    """A compiler whose every program is a quarter faster than the one before; each compile takes a second.

    ``interrupt``: what the compile of that number raises, KeyboardInterrupt where it is given.
    """

    interrupt: int = 0
    count: int = 0
    in_full: int = 0
    shown: list[Finding] = field(default_factory=list)

    def __call__(self, module: bytes, draft: bool) -> Callable[[], Any]:
        self.count += 1
        self.in_full += not draft
        number = self.count

        def program() -> Any:
            if number == self.interrupt:
                raise KeyboardInterrupt
            return program_of(number)

        return program

    @property
    def seconds(self) -> float:
        return float(self.count)


def program_of(number: int) -> Any:
    made = Figures(1000, 1000, 1000, 0.75**number)
    return SimpleNamespace(rows=(), figures=made, file="m.mlir:step")


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only compiles take time, and the figures of a program are those of the fake."""
    monkeypatch.setattr(
        "shardpass.advise.find.budget.time", SimpleNamespace(process_time=lambda: 0.0, monotonic=lambda: 0.0)
    )
    monkeypatch.setattr(search, "figures", lambda program: program.figures)


def run(compiles: Compiles, seconds: float | None, **more: Any) -> Findings:
    budget = Budget(seconds, lambda: compiles.seconds)
    means = compiles, chosen("ideal"), Sources(()), budget
    return find_edits(Asked(MODULE, "m.mlir", program_of(0), *means, show=compiles.shown.append, **more))


def test_seconds_by_the_clock_end_a_search_with_a_given_limit_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with other work to do gives a search little processor time."""
    late = SimpleNamespace(process_time=lambda: 0.0, monotonic=lambda: 0.0)
    monkeypatch.setattr("shardpass.advise.find.budget.time", late)
    given, usual = Budget(10.0), Budget()
    late.monotonic = lambda: 29.0
    assert not given.is_over()
    late.monotonic = lambda: 31.0
    assert given.is_over()
    assert not usual.is_over()


def test_a_search_with_time_ends_by_itself() -> None:
    compiles = Compiles()
    found = run(compiles, 1000.0)
    assert found.stopped == ""
    assert len(found) > 1
    assert list(found) == compiles.shown
    assert found.compiled == compiles.in_full


def test_edits_that_only_give_up_a_split_are_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    trials, drafted = list[rank.Trial](), search._Search._drafted

    def noted(self: Any, some: Any, *more: Any) -> list[rank.Trial]:
        made = list(some)
        trials.extend(made)
        return drafted(self, made, *more)

    monkeypatch.setattr(search._Search, "_drafted", noted)
    run(Compiles(), 1000.0)
    assert trials
    assert not [trial for trial in trials if trial.harm and not trial.moves]


@pytest.mark.parametrize("seconds", [1, 2, 4])
def test_a_search_ends_when_its_seconds_are_spent(seconds: int) -> None:
    """After the time is over, what is compiled already is finished, and one program in full at most for one finding."""
    compiles = Compiles()
    found = run(compiles, float(seconds))
    assert found.stopped == LATE
    assert compiles.count < run_in_full()
    assert compiles.count <= seconds + 2 + search.MOST_TRIED + search.MOST_REFINED
    assert list(found) == compiles.shown


@pytest.mark.parametrize(("whole", "most"), [(0.0, 40), (30.0, 90)])
def test_a_compiler_without_drafts_has_the_time_of_three_compiles(whole: float, most: int) -> None:
    compiles = Compiles()
    budget = Budget(None, lambda: compiles.seconds)
    means = compiles, chosen("ideal"), Sources(()), budget
    find_edits(Asked(MODULE, "m.mlir", program_of(0), *means, whole=whole))
    assert budget.seconds == most


def test_once_the_time_is_over_one_program_is_compiled_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """No edit saves in full: with time three are tried."""
    monkeypatch.setattr(rank, "saves", lambda before, after: before.bytes == after.bytes == 1000)
    monkeypatch.setattr(search._Search, "_verified", lambda self, edit, worth: self.asked.compiler(b"", False) is None)
    tried = []
    for seconds in (1.0, 1000.0):
        compiles = Compiles()
        run(compiles, seconds)
        tried.append(compiles.in_full)
    assert tried == [1, search.MOST_TRIED]


def test_once_the_time_is_over_what_saves_memory_alone_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each program of the fake has a tenth less memory than the one before; one finding is better than none."""
    monkeypatch.setattr(rank, "saves", lambda *_: False)
    monkeypatch.setattr(search, "figures", lambda one: replace(one.figures, memory=round(1e6 * one.figures.seconds)))
    found = run(Compiles(), 1.0)
    assert len(found) == 1
    assert found.stopped == LATE


def run_in_full() -> int:
    compiles = Compiles()
    run(compiles, 1000.0)
    return compiles.count


def test_more_seconds_never_mean_fewer_compiles() -> None:
    counts = []
    for seconds in (1, 3, 6, 12, 1000):
        compiles = Compiles()
        run(compiles, float(seconds))
        counts.append(compiles.count)
    assert counts == sorted(counts)


def test_an_interrupt_keeps_the_findings_so_far() -> None:
    """Interrupted at any compile: the findings are those that an uninterrupted search had shown by then."""
    whole = Compiles()
    run(whole, 1000.0)
    for number in (1, 2, whole.count // 2, whole.count):
        compiles = Compiles(interrupt=number)
        found = run(compiles, 1000.0, interruptible=True)
        assert found.stopped == INTERRUPTED
        assert list(found) == compiles.shown == whole.shown[: len(found)]
    assert len(found) > 0


def test_an_interrupt_of_a_search_that_nobody_watches_is_raised() -> None:
    with pytest.raises(KeyboardInterrupt):
        run(Compiles(interrupt=2), 1000.0)


def test_the_seconds_of_a_search_without_a_limit() -> None:
    spent = 0.0
    budget = Budget(None, lambda: spent)
    assert budget.left == LEAST
    budget.allow(COMPILES * 10.0)  # a compile of ten seconds
    assert budget.left == 90.0
    budget.allow(1.0)  # never less
    assert budget.left == 90.0
    spent = 45.0
    assert budget.left == 45.0
    assert budget.is_over(0.5)
    assert not budget.is_over()
    spent = 100.0
    assert budget.left == 0.0
    assert budget.is_over()


def test_the_seconds_that_the_user_gives_stay() -> None:
    budget = Budget(5.0)
    budget.allow(90.0)
    assert budget.left == 5.0


@pytest.mark.parametrize("cause", [Cause("what costs", "what to do", bytes=100), Cause("", "", memory=100)])
def test_a_cause_comes_after_the_edits(monkeypatch: pytest.MonkeyPatch, cause: Cause) -> None:
    """No edit of the fake saves bytes. A cause is not shown before the end."""
    monkeypatch.setattr(search, "causes", lambda *_: [cause])
    compiles = Compiles()
    found = run(compiles, 1000.0)
    assert [one.action == NAME for one in found].index(True) == len(found) - 1
    assert found[-1].before == found[-1].after
    assert compiles.shown == [one for one in found if one.action != NAME]


def test_constraints_of_one_line_are_dropped_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing tells which of two constraints at one place a text means, so an edit of one is an edit of both."""
    text = MODULE.replace('%2 <@mesh, [{"data"}, {}]>', '%2 <@mesh, [{"data"}, {"model"}]>')
    lines = [f'{line} loc("train.py":7:5)' if "constraint" in line else line for line in text.splitlines()]
    dropped = set[int]()

    def written(module: Any, mesh: Any, changes: Any) -> bytes:
        dropped.add(sum(one.site.kind == "constraint" and one.spec is None for one in changes))
        return b""

    monkeypatch.setattr(search, "with_changes", written)
    means = Compiles(), chosen("ideal"), Sources(()), Budget(1000.0)
    find_edits(Asked("\n".join(lines), "m.mlir", program_of(0), *means))
    assert dropped == {0, 2}
