"""The figures of a program, compiled or planned, and whether an edit saves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shardpass.diagnostics import collect
from shardpass.ir.context import UNNAMED
from shardpass.pipeline.named import BEHIND_PROPAGATION
from shardpass.pipeline.plan import plan_of
from shardpass.planning.plan.plan import ProgramPlan
from shardpass.report.build import explain_module
from shardpass.report.findings import Figures, LineChange
from shardpass.report.groups import Group, group
from shardpass.report.report import Report
from shardpass.report.rows import Row

LEAST = 0.02  # of the time of a step or of its bytes, that an edit saves
LEAST_SENT = 0.001  # of what a device holds, that an edit for bytes alone sends less
LEAST_MEMORY = 0.01  # of what a device holds, that an edit for memory alone saves
MORE_MEMORY = 0.05  # of what a device holds, that it may hold more with an edit that saves little
PER_TIME = 1.0  # likewise, of the part of the time that an edit saves
LEAST_TRADED = 0.1  # likewise, of an edit that may cost time
MORE_BYTES = 1.02  # what an edit that saves work or memory alone may receive


def figures(report: Report, memory: int | None = None, work: float | None = None) -> Figures:
    """Return the figures of a program by its report.

    ``memory``, ``work``: bytes, and seconds of computing, where they are known better than by the report.
    """
    if memory is None:
        memory = 0 if report.memory is None else report.memory.total
    step = report.step_seconds or report.seconds if work is None else report.seconds + work
    work = report.compute_seconds or 0.0 if work is None else work
    return Figures(report.total_bytes_received, memory, report.flops or 0, step, work)


def figures_of(plan: ProgramPlan) -> Figures:
    """Return the figures of a plan."""
    return Figures(plan.bytes_received, plan.alive.peak, 0, plan.step_seconds(), plan.compute_seconds())


def figures_as_built(module: Any, file: str = UNNAMED) -> Figures:
    """Return the figures of a propagated module by the program that the later passes make of it, in place.

    Memory is that of its plan. Raises ShardpassError where it cannot be partitioned.
    """
    with collect():  # remarks are for those who partition
        peak = plan_of(module).alive.peak
        return figures(explain_module(module, file, pipeline=BEHIND_PROPAGATION, folders=()), peak)


def saves(before: Figures, after: Figures) -> bool:
    """Return whether an edit is worth a report: it saves time, or bytes or memory without costing time.

    The relative increase of memory may be at most the relative saving of time: an axis exchanged for a smaller one may
    be worth that, weights that are whole instead of split seldom are.
    """
    saved = 1 - after.seconds / before.seconds if before.seconds else 0.0
    if after.memory > before.memory * (1 + max(MORE_MEMORY, PER_TIME * saved)):
        return False
    if after.seconds <= before.seconds * (1 - LEAST):
        return True
    if after.seconds > before.seconds * (1 + LEAST / 2) or after.bytes > before.bytes * MORE_BYTES:
        return False
    fewer = after.bytes < before.bytes * (1 - LEAST) and before.bytes - after.bytes >= LEAST_SENT * before.memory
    return fewer or after.memory < before.memory * (1 - 5 * LEAST)


def saves_memory(before: Figures, after: Figures, trades: float = 0.0) -> bool:
    """Return whether an edit saves memory, LEAST_MEMORY of it, without costing time or bytes.

    ``trades``: it may cost both, time by no more than so many times the part of the memory that it saves, LEAST_TRADED;
    or by any number where it neither receives nor computes more, as the starts of collectives do not grow with arrays.
    """
    saved = 1 - after.memory / before.memory if before.memory else 0.0
    if trades and saved > LEAST_TRADED:
        is_as_much = after.bytes <= before.bytes * MORE_BYTES and after.flops <= before.flops * (1 + LEAST)
        return is_as_much or after.seconds <= before.seconds * (1 + trades * saved)
    slower = after.seconds > before.seconds * (1 + LEAST / 2) or after.bytes > before.bytes * MORE_BYTES
    return not slower and saved > LEAST_MEMORY


def worsens(before: Figures, after: Figures) -> bool:
    """Return whether an edit increases the received bytes or the memory of a device."""
    return after.bytes > before.bytes * MORE_BYTES or after.memory > before.memory * (1 + LEAST_MEMORY)


def changed_lines(before: Sequence[Row], after: Sequence[Row]) -> tuple[LineChange, ...]:
    """Return the lines whose bytes differ between two programs, matched by the user's ops; greatest savings first."""
    was, now = ({one.key: one for one in group(rows)} for rows in (before, after))
    none = Group("", ())
    lines = ((was | now)[key].place for key in was | now)
    sizes = ([some.get(key, none).bytes_received for some in (was, now)] for key in was | now)
    result = [LineChange(line, *both) for line, both in zip(lines, sizes, strict=True) if both[0] != both[1]]
    return tuple(sorted(result, key=lambda one: one.after - one.before))
