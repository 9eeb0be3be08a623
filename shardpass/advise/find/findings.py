"""Gives an explanation its findings, or the decisions of shardpass's search, computed at their first use."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from contextvars import copy_context
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from shardpass.advise.find.budget import IN_FULL, Budget, spent_by_children
from shardpass.advise.find.gap import others
from shardpass.advise.find.planned import find_decided
from shardpass.advise.find.search import Again, Asked, find_edits
from shardpass.advise.find.source import Edits
from shardpass.advise.find.verify import figures
from shardpass.cost.chosen import chosen
from shardpass.cost.machine import Machine
from shardpass.diagnostics import ShardpassError, collect
from shardpass.report.explanation import Explanation
from shardpass.report.findings import EDITED, INTERRUPTED, NAME, NOW, Finding, Findings, Gap
from shardpass.report.hlo.programs import explain_built
from shardpass.report.naming import Sources
from shardpass.report.rows import DecidedFact
from shardpass.runtime.peers import XLA
from shardpass.sharding import Mesh
from shardpass.targets.compiled import Compiled
from shardpass.targets.compiler import Compiler, shared
from shardpass.targets.target import CPU, cpu

GAP_SECONDS = 30.0  # for shardpass's decision and the pinned program, of wall time


@dataclass(frozen=True)
class Wanted:
    """The options of a search for findings.

    Attributes:
        again: see ``Asked``.
        seconds: the time that the search has; None: see ``budget``.
        show: called with each finding when it is there. With it Ctrl-C ends the search with what is there.
    """

    again: Again | None = None
    seconds: float | None = None
    show: Callable[[Finding], None] | None = None


def with_findings(
    explanation: Explanation,
    file: str,
    machine: Machine | str | None,
    folders: Sequence[Path] | None,
    wanted: Wanted,
) -> Explanation:
    """Return ``explanation`` with findings and the gap that they leave, both computed at their first use.

    ``explanation.given``: the module; ``explanation.built``: the partitioner's program. ``folders``: see ``Sources``.
    """
    on = chosen(machine)
    find = cache(lambda: _findings(explanation, file, on, folders, wanted))
    return dataclasses.replace(
        explanation, find_findings=find, find_gap=cache(lambda: _gap(explanation, on, find(), wanted))
    )


def with_decided(explanation: Explanation, file: str, folders: Sequence[Path] | None) -> Explanation:
    """Return ``explanation``, of a program by shardpass, with ``decided`` computed at its first use."""
    if explanation.plan is None or not any(one.saved > 0 for one in explanation.changes):
        return explanation
    plan, given = explanation.plan, explanation.given

    def decided() -> tuple[DecidedFact, ...]:
        with collect():  # remarks are for those who partition
            return find_decided(given, file, plan, Sources(folders))

    return dataclasses.replace(explanation, find_decided=cache(decided))


def _findings(
    explanation: Explanation, file: str, machine: Machine, folders: Sequence[Path] | None, wanted: Wanted
) -> Findings:
    sources, mesh = Sources(folders), Mesh(explanation.mesh) if explanation.mesh else None
    local = shared(explanation.built.target if explanation.partitioner == XLA else cpu(explanation.devices))
    quick = local if local.target.platform == CPU else Compiler(cpu(explanation.devices))
    drafts = quick
    runs: list[float] = []  # processor seconds of the script, traced again
    budget = Budget(wanted.seconds, lambda: sum(runs, local.spent) + (drafts.spent if drafts is not local else 0.0))

    def again(edits: Edits) -> bytes | None:
        before = spent_by_children()
        try:
            return None if wanted.again is None else wanted.again(edits)
        finally:
            runs.append(spent_by_children() - before)

    def explained(program: Compiled) -> Explanation:
        asked = explanation.partitioner, mesh, machine, folders, explanation.compiler
        return explain_built(program, file, *asked)

    def compiled(module: bytes, draft: bool) -> Compiled:
        nonlocal quick
        if explanation.partitioner != XLA:
            return local.compile(module, way=explanation.partitioner)
        try:
            return (quick if draft else local).compile(module, draft=draft)
        except ShardpassError:
            if not draft or quick is local or quick.compiled > 1:
                raise
        quick = local  # an op of the target's own, which XLA:CPU does not know
        return local.compile(module)

    # remarks are for those who partition
    with collect(), drafts if drafts is not local else nullcontext(), ThreadPoolExecutor(1) as thread:

        def compiler(module: bytes, draft: bool) -> Callable[[], Explanation]:
            program = thread.submit(copy_context().run, compiled, module, draft)
            return lambda: explained(program.result())

        asked = Asked(explanation.given, file, explanation, compiler, machine, sources, budget)
        asked = dataclasses.replace(asked, again=wanted.again and again, whole=_whole(explanation))
        if wanted.show is not None:
            asked = dataclasses.replace(asked, show=wanted.show, interruptible=True)
        return find_edits(asked)


def _gap(explanation: Explanation, machine: Machine, findings: Findings, wanted: Wanted) -> Gap | None:
    """Return the figures of the program made in other ways; None where there was nothing to look at."""
    if findings.why_not or findings.stopped == INTERRUPTED or not isinstance(explanation.given, bytes | str):
        return None
    rows = [(NOW, figures(explanation))]
    edits = [one for one in findings if one.action != NAME]
    if edits:
        rows.append((EDITED, edits[-1].after))
    data = explanation.given.encode() if isinstance(explanation.given, str) else explanation.given
    target = explanation.built.target if explanation.partitioner == XLA else None
    usual = GAP_SECONDS + IN_FULL * _whole(explanation)
    made = others(data, machine, usual if wanted.seconds is None else wanted.seconds, target)
    return Gap((*rows, *made.items()))


def _whole(explanation: Explanation) -> float:
    """Return the processor seconds of a compile for a target, which makes no drafts; 0.0 of any other program."""
    built = explanation.built
    return built.spent if isinstance(built, Compiled) and built.target.platform != CPU else 0.0
