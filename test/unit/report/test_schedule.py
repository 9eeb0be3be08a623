"""Schedules of built modules and of HLO: what can be hidden, on programs of which this is known by their data."""

from __future__ import annotations

import itertools
import json
import re

import pytest
from support.schedules import EXAMPLES, LOOP, beside, explained, explained_hlo

import shardpass
from shardpass.cost.machine import Work, find_machine
from shardpass.cost.schedule import COMPUTE
from shardpass.diagnostics import collect
from shardpass.report.explanation import Explanation


def laws(report: Explanation) -> None:
    """The end is what computes and what is exposed; the sum that of the report; no row is exposed for longer than it
    takes; on each track one thing at a time."""
    plan = report.schedule
    assert plan is not None
    assert plan.one_by_one == pytest.approx(report.step_seconds)
    assert plan.seconds == pytest.approx(report.compute_seconds + sum(plan.exposed))
    assert plan.hidden == pytest.approx(report.seconds - sum(plan.exposed))
    assert all(0 <= share <= row.seconds for share, row in zip(plan.exposed, report.rows, strict=True))
    for track in plan.tracks:
        mine = sorted((span.start, span.end) for span in plan.spans if track in span.tracks)
        assert all(before[1] <= after[0] * (1 + 1e-9) for before, after in itertools.pairwise(mine))
    for number, needs in enumerate(plan.needs):
        assert all(plan.spans[need].end <= plan.spans[number].start * (1 + 1e-9) for need in needs)


def test_what_does_not_need_one_another_runs_at_once() -> None:
    """The product takes 2 * 8192^3 operations, the gather 12 MiB: all of it is hidden."""
    report = explained(beside(True))
    laws(report)
    (row,) = report.rows
    assert row.kind == "all_gather"
    assert row.seconds < find_machine("h100").seconds(Work(2 * 8192**3, "f32", 0))
    assert report.schedule is not None
    assert report.schedule.exposed == (0,)
    assert report.schedule.seconds == pytest.approx(report.compute_seconds)
    assert json.loads(report.json())["collectives"][0]["exposed_seconds"] == 0


def test_what_needs_one_another_runs_one_by_one() -> None:
    report = explained(beside(False))
    laws(report)
    (row,) = report.rows
    assert report.schedule is not None
    assert report.schedule.exposed == pytest.approx((row.seconds,))
    assert report.schedule.hidden == pytest.approx(0, abs=1e-12)


def test_a_body_by_its_trips() -> None:
    """A chain, five times: two exchanges and a tanh, of which nothing can be hidden."""
    report = explained(LOOP)
    laws(report)
    assert [(row.kind, row.times) for row in report.rows] == [("all_to_all", 5)] * 2
    assert report.schedule is not None
    assert report.schedule.exposed == pytest.approx([row.seconds for row in report.rows])
    (loop,) = [span for span in report.schedule.spans if not span.tracks]
    assert (loop.trips, loop.depth) == (5, 0)


@pytest.mark.parametrize("machine", ["ideal", "h100", "v5p"])
def test_laws_of_a_transformer_block(machine: str) -> None:
    with collect():
        report = shardpass.explain(EXAMPLES / "transformer_block.sdy.mlir", machine=machine)
    laws(report)
    assert report.schedule is not None
    assert set(report.schedule.tracks) == {COMPUTE, *(axis for row in report.rows for axis in row.axes)}


def test_a_module_that_is_partitioned_has_none() -> None:
    with collect():
        built = str(shardpass.run_pipeline(beside(True), "partition"))
    report = explained(built)
    assert report.schedule is None
    assert "schedule" not in json.loads(report.json())


# ---------------------------------------------------------------- HLO


def test_an_asynchronous_gather_and_a_loop() -> None:
    """The gather has two products beside it; in the loop the sum of x and a product of x do not need one another."""
    report = explained_hlo()
    laws(report)
    assert report.schedule is not None
    rows = {row.kind: (row, share) for row, share in zip(report.rows, report.schedule.exposed, strict=True)}
    on = find_machine("v5p")
    dot = on.seconds(Work(2 * 1024**3, "f32", 3 * 4 * 1024**2, waits=2.13))  # hlo/work.py, 3: operands, result
    gather, bare = rows["all_gather"]
    assert bare == pytest.approx(max(0.0, gather.seconds - 2 * dot))
    reduced, bare = rows["all_reduce"]
    assert reduced.times == 7
    assert bare == pytest.approx(max(0.0, reduced.seconds - 7 * (dot + 2 * on.kernel)))  # beside steps of the counter
    assert report.schedule.hidden > 0


def test_the_text_says_what_is_exposed() -> None:
    for with_product in (True, False):
        report = explained(beside(with_product))
        (line,) = re.findall(r"overlapped it takes [^:]+: (?:.|\n)*?exposed", str(report))
        assert (": 0 us of the collectives are exposed" in " ".join(line.split())) == with_product
        assert (" fetched ahead" in " ".join(line.split())) == with_product
