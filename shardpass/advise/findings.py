"""Gives an explanation its findings, or the decisions of shardpass's search, computed at their first use."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from pathlib import Path

from shardpass.advise.decided import find_decided
from shardpass.advise.search import find_edits
from shardpass.advise.verify import Program
from shardpass.cost.chosen import chosen
from shardpass.cost.machine import Machine
from shardpass.diagnostics import collect
from shardpass.ir.context import parse_module
from shardpass.report.explanation import Explanation
from shardpass.report.findings import Findings
from shardpass.report.hlo.explain import explain_hlo
from shardpass.report.naming import Sources
from shardpass.report.rows import DecidedFact, MemoryFacts
from shardpass.runtime.peers import build
from shardpass.sharding import Mesh
from shardpass.targets.compiler import shared

XLA = "xla"


def with_findings(
    explanation: Explanation, file: str, machine: Machine | str | None, folders: Sequence[Path] | None
) -> Explanation:
    """Returns ``explanation`` with findings that are computed at their first use.

    ``explanation.given``: the module; ``explanation.built``: the partitioner's program. ``folders``: see ``Sources``.
    """
    return dataclasses.replace(
        explanation, find_findings=cache(lambda: _findings(explanation, file, chosen(machine), folders))
    )


def with_decided(explanation: Explanation, file: str, folders: Sequence[Path] | None) -> Explanation:
    """Returns ``explanation``, of a program by shardpass, with ``decided`` computed at its first use."""
    if explanation.plan is None or not any(one.saved > 0 for one in explanation.changes):
        return explanation
    plan, given = explanation.plan, explanation.given

    def decided() -> tuple[DecidedFact, ...]:
        with collect():  # remarks are for those who partition
            return find_decided(given, file, plan, Sources(folders))

    return dataclasses.replace(explanation, find_decided=cache(decided))


def _findings(explanation: Explanation, file: str, machine: Machine, folders: Sequence[Path] | None) -> Findings:
    sources, mesh = Sources(folders), Mesh(explanation.mesh) if explanation.mesh else None

    def explained(program: Program) -> Explanation:
        memory = MemoryFacts(program.arguments, program.results, program.temporaries, donated=program.donated)
        return explain_hlo(
            program.hlo,
            file,
            partitioner=explanation.partitioner,
            mesh=mesh,
            machine=machine,
            memory=memory,
            folders=folders,
            compiler=explanation.compiler,
        )

    def compiled(module: bytes, draft: bool) -> Program:
        if explanation.partitioner == XLA:
            return shared(explanation.built.target).compile(module, draft=draft)
        return build(explanation.partitioner, _text(module), explanation.devices)

    with collect(), ThreadPoolExecutor(1) as thread:  # remarks are for those who partition

        def compiler(module: bytes, draft: bool) -> Callable[[], Explanation]:
            program = thread.submit(copy_context().run, compiled, module, draft)
            return lambda: explained(program.result())

        return find_edits(explanation.given, file, explanation, compiler, machine, sources)


def _text(module: bytes) -> str:
    """Converts a module from bytecode to the text that Shardy's passes read."""
    parsed = parse_module(module, trusted=True)
    with parsed.context:
        return str(parsed.operation.get_asm(enable_debug_info=True))
