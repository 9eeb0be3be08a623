"""The findings about a program with explicit axes: types that cost more than they must, as edits of the user's file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

from shardpass.cost.chosen import chosen
from shardpass.cost.machine import Machine
from shardpass.diagnostics import collect, report
from shardpass.explicit.reshards import Price, Reshards, explicit_axes_of
from shardpass.explicit.retrace import Retracer
from shardpass.explicit.unreduced import waiting_sums
from shardpass.explicit.written import Calls
from shardpass.report.explanation import Explanation
from shardpass.report.findings import Findings
from shardpass.report.hlo.programs import explain_built
from shardpass.report.naming import Sources
from shardpass.report.report import Report
from shardpass.runtime.peers import OURS, XLA
from shardpass.sharding import Mesh
from shardpass.targets.compiler import Compiler
from shardpass.targets.target import cpu

Explained = Callable[[str], Report]  # the report of a module's text, by the partitioner of the one that is at hand


def with_findings(
    first: Explanation,
    retracer: Retracer,
    explained: Explained,
    machine: Machine | str | None,
    folders: Sequence[Path] | None = None,
) -> Explanation:
    """Returns ``first`` with the findings about explicit axes, computed when they are first read.

    A program on Auto axes is returned unchanged.
    """
    before = first.find_findings

    def look() -> Findings | None:
        made = findings(first, retracer, explained, machine, folders)
        return before() if made is None else made

    return dataclasses.replace(first, find_findings=cache(look))


def findings(
    first: Report,
    retracer: Retracer,
    explained: Explained,
    machine: Machine | str | None,
    folders: Sequence[Path] | None = None,
) -> Findings | None:
    """Returns the findings about a program's reshards; None for one without explicit axes, or if shardpass
    partitions it.
    """
    try:
        if not explicit_axes_of(retracer.traced().jaxpr):
            return None
        retracer.trace({})
    except Exception:  # a program that traces once, and not again
        return None
    with ExitStack() as inside:
        inside.enter_context(collect())  # remarks are for those who partition
        if first.partitioner == XLA:
            compiler = inside.enter_context(Compiler(cpu(first.devices)))
            price = _by_xla(compiler, first, chosen(machine), folders)
        else:
            price = _by_plan(explained)
        search = Reshards(retracer, Calls(Sources(folders)), price)
        search.run()
        refused = waiting_sums(search)
        made = Findings(tuple(search.findings), compiled=search.traced)
    if first.partitioner != OURS:  # which lets sums wait where that is cheapest, whatever their types are
        for one in refused:
            report(one)
    return None if first.partitioner == OURS and not made else made


def _by_plan(explained: Explained) -> Price:
    return lambda lowered: explained(lowered.as_text(debug_info=True))


def _by_xla(compiler: Compiler, first: Report, machine: Machine, folders: Sequence[Path] | None) -> Price:
    mesh = Mesh(first.mesh) if first.mesh else None

    def price(lowered: Any) -> Report:
        program = compiler.compile(lowered.as_text(debug_info=True).encode())
        return explain_built(program, first.file, first.partitioner, mesh, machine, folders)

    return price
