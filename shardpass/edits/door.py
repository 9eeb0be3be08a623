"""From an explanation to its findings, or to what shardpass decided in it, made where somebody asks for them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from shardpass.cost.chosen import chosen
from shardpass.cost.machine import Machine
from shardpass.diagnostics import collect
from shardpass.edits.decisions import find_decided
from shardpass.edits.find import find_edits
from shardpass.edits.verify import Program
from shardpass.ir.context import parse_module
from shardpass.report.explanation import Explanation
from shardpass.report.findings import Findings
from shardpass.report.hlo.explain import explain_hlo
from shardpass.report.hlo.verify import shared
from shardpass.report.naming import Sources
from shardpass.report.rows import DecidedFact, MemoryFacts
from shardpass.runtime.peers import build
from shardpass.sharding import Mesh

XLA = "xla"


def with_findings(
    found: Explanation, file: str, machine: Machine | str | None, folders: Sequence[Path] | None
) -> Explanation:
    """``found``, which looks for its findings where they are first asked for.

    ``found.given``: the module; ``found.built``: the partitioner's program. ``folders``: as ``Sources`` takes them.
    """
    return dataclasses.replace(found, find_findings=cache(lambda: _findings(found, file, chosen(machine), folders)))


def with_decided(found: Explanation, file: str, folders: Sequence[Path] | None) -> Explanation:
    """``found``, a report of shardpass's own program, which looks for ``decided`` where it is first asked for."""
    if found.plan is None or not any(one.saved > 0 for one in found.settled):
        return found
    plan, given = found.plan, found.given

    def decided() -> tuple[DecidedFact, ...]:
        with collect():  # remarks are for those who partition
            return find_decided(given, file, plan, Sources(folders))

    return dataclasses.replace(found, find_decided=cache(decided))


def _findings(found: Explanation, file: str, machine: Machine, folders: Sequence[Path] | None) -> Findings:
    sources, mesh = Sources(folders), Mesh(found.mesh) if found.mesh else None

    def explained(program: Program) -> Explanation:
        memory = MemoryFacts(program.arguments, program.results, program.temporaries, donated=program.donated)
        return explain_hlo(
            program.hlo,
            file,
            partitioner=found.partitioner,
            mesh=mesh,
            machine=machine,
            memory=memory,
            folders=folders,
        )

    def look(compiled: Callable[[bytes], Program]) -> Findings:
        def compiler(module: bytes) -> tuple[Program, Explanation]:
            program = compiled(module)
            return program, explained(program)

        return find_edits(found.given, file, found, found.built, compiler, machine, sources)

    with collect():  # remarks are for those who partition
        if found.partitioner == XLA:
            return look(shared(found.devices).build)
        return look(lambda module: build(found.partitioner, _text(module), found.devices))


def _text(module: bytes) -> str:
    """The text of a module in bytecode, which Shardy's passes read."""
    parsed = parse_module(module, trusted=True)
    with parsed.context:
        return str(parsed.operation.get_asm(enable_debug_info=True))
