"""The findings about a program with explicit axes: types that cost more than they must, as edits of the user's file."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from shardpass.advise.repair.reshards import Explained, Reshards, explicit_axes_of
from shardpass.advise.repair.trace import Retracer
from shardpass.advise.repair.unreduced import waiting_sums
from shardpass.advise.repair.written import Calls
from shardpass.diagnostics import collect, report
from shardpass.report.explanation import Explanation
from shardpass.report.findings import Findings
from shardpass.report.naming import Sources
from shardpass.report.report import Report
from shardpass.runtime.peers import OURS


def with_findings(
    first: Explanation,
    retracer: Retracer,
    explained: Explained,
    folders: Sequence[Path] | None = None,
) -> Explanation:
    """Return ``first`` with the findings about explicit axes, computed when they are first read.

    A program on Auto axes is returned unchanged.
    """
    before = first.find_findings

    def look() -> Findings | None:
        made = findings(first, retracer, explained, folders)
        return before() if made is None else made

    return dataclasses.replace(first, find_findings=cache(look))


def findings(
    first: Report,
    retracer: Retracer,
    explained: Explained,
    folders: Sequence[Path] | None = None,
) -> Findings | None:
    """Return the findings about a program's reshards; None for one without explicit axes, or if shardpass
    partitions it.
    """
    try:
        if not explicit_axes_of(retracer.traced().jaxpr):
            return None
        retracer.trace({})
    except Exception:  # a program that traces once, and not again
        return None
    with collect():  # remarks are for those who partition
        search = Reshards(retracer, Calls(Sources(folders)), explained)
        search.run()
        refused = waiting_sums(search)
        made = Findings(tuple(search.findings), compiled=search.traced)
    if first.partitioner != OURS:  # which lets sums wait where that is cheapest, whatever their types are
        for one in refused:
            report(one)
    return None if first.partitioner == OURS and not made else made
