"""Check a StableHLO module: all findings, and the sharding of every value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from shardpass.diagnostics import Diagnostic, Severity, ShardpassError, collect
from shardpass.diagnostics.table_passes import NOT_REPLICATED

if TYPE_CHECKING:
    from shardpass.ir.doors import Given
    from shardpass.targets.target import Target


@dataclass(frozen=True)
class Checked:
    """The result of a check. ``findings``: errors first. ``inferred``: a line for each value with its sharding.
    ``module``: the module after propagation. The last two are empty after an error.
    """

    findings: tuple[Diagnostic, ...]
    inferred: tuple[str, ...] = ()
    module: Any = None


def check_module(data: Given, file: str, *, strict: bool = False, perf: bool = True, inferred: bool = False) -> Checked:
    """Import, propagate and check the module ``data``; findings are sorted, errors first.

    An output of a manual region that may not be replicated is a warning, an error with ``strict``.
    """
    from shardpass.ir.context import parse_module
    from shardpass.pipeline.run import run_in_place

    options = f"redistributions=true strict={str(strict).lower()} remarks={str(perf).lower()}"
    given: frozenset[int] = frozenset()
    lines: tuple[str, ...] = ()
    module, done = None, False
    with collect() as diagnostics:
        try:
            module = parse_module(data, file)
            run_in_place(module, "shardpass-import,shardpass-check-replication")
            if inferred:
                given = _given(module)
            run_in_place(module, "shardpass-propagate")
            if inferred:
                lines = tuple(_lines(module, given))
            done = True  # the check leaves the module as it is
            run_in_place(module, f"shardpass-check{{{options}}}")
        except ShardpassError as error:
            diagnostics = [*error.diagnostics, *diagnostics]
            if module is not None and not done:  # import stops at its first step with errors
                diagnostics += _by_itself(parse_module(data, file))
    unique: dict[tuple[object, ...], Diagnostic] = {}
    for one in diagnostics if strict else map(_doubtful, diagnostics):
        unique.setdefault((one.code, one.place, one.message), one)
    order = list(Severity)
    return Checked(
        tuple(sorted(unique.values(), key=lambda d: order.index(d.severity))), lines, module if done else None
    )


def _doubtful(one: Diagnostic) -> Diagnostic:
    """Return a finding about replication as a warning: right programs have some, and the remedy names the command."""
    if one.code != NOT_REPLICATED.id:
        return one
    more = "; `shardpass check-replication --print-varying` shows over which axes each value may vary"
    return replace(one, severity=Severity.WARNING, remedy=one.remedy + more)


def edits_that_save(data: Given, file: str, partitioner: str, target: Target | None = None) -> list[Diagnostic]:
    """Find cheaper annotations for the program of ``partitioner`` for ``target``, as remarks at their lines."""
    from pathlib import Path

    from shardpass.advise.suggest.explain import explain_data
    from shardpass.cost.chosen import machine_text
    from shardpass.diagnostics import NOWHERE, Place
    from shardpass.diagnostics.table_suggest import EDIT_SAVES
    from shardpass.report.findings import NAME
    from shardpass.report.text import show_bytes
    from shardpass.targets.machine import machine_of

    with collect():
        machine = None if target is None else machine_text(machine_of(target))
        asked = explain_data(data, file, partitioner, machine=machine, folders=[Path.cwd()], target=target)
        findings = [one for one in asked.findings or () if one.action != NAME]
    return [
        EDIT_SAVES.at(
            Place(file) if one.place == NOWHERE else one.place,
            sentence=one.sentence,
            partitioner={"xla": "XLA"}.get(partitioner, "Shardy's passes"),
            received=f"{show_bytes(one.after.bytes)} are received",
            memory=f"{show_bytes(one.after.memory)} held",
            edit="; ".join(one.code),
        )
        for one in findings
    ]


def _by_itself(module: Any) -> list[Diagnostic]:
    from shardpass.program.check_annotations import check_annotations

    with module.context:
        try:
            return list(check_annotations(module))
        except ShardpassError as error:
            return list(error.diagnostics)


def _given(module: Any) -> frozenset[int]:
    """Return the values of an imported module that have a sharding before propagation."""
    from shardpass.program.read import read_program

    with module.context:
        program, _ = read_program(module, "check")
    return frozenset(
        v
        for v, annotation in program.annotations.items()
        if annotation.sharding is not None and not annotation.sharding.is_unknown
    )


def _lines(module: Any, given: frozenset[int]) -> Iterator[str]:
    """Yield ``file:line: op tensor<8x4xf32>: {devices=[2,1]<=[2]} (propagated)`` of each value; propagation leaves
    values their numbers.
    """
    from shardpass.ir.locations import place_of
    from shardpass.program.table import table_of

    with module.context:
        table = table_of(module, "check")
        program, handles, of = table.program, table.handles, table.all_shardings().of
        rows = [(handles.arguments[None][k], f"argument {k}", value) for k, value in enumerate(program.body.arguments)]
        rows += [
            (handles.ops[op.number], op.called, value)
            for op in program.body.every_op()
            if not op.is_manual
            for value in op.results
        ]
        for handle, name, value in rows:
            if value in of:
                source = "given" if value in given else "propagated"
                yield f"{place_of(handle.location)}: {name} tensor<{program.arrays[value]}>: {of[value]} ({source})"
