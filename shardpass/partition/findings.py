"""Report the cost of partitioning a propagated module, at the source lines that cause it."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from shardpass.diagnostics import Diagnostic, Place, Severity
from shardpass.diagnostics.table_passes import (
    COSTLY_CONSTRAINT,
    GATHERED,
    NO_RULE,
    REDISTRIBUTED,
    REPEATED_WORK,
    UNDIVIDED,
    UNSPLIT_ARGUMENT,
)
from shardpass.ir.context import copy_module
from shardpass.ir.locations import place_of
from shardpass.ir.machines import machine_of
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.ops.splits.specs import axes_text, spec_of
from shardpass.partition.splices import spliced_table
from shardpass.planning.plan.costly import (
    Redistribution,
    computed_whole,
    costly_constraints,
    redistributions,
    repeated_work,
)
from shardpass.planning.plan.divisibility import undivided
from shardpass.planning.plan.plan import ProgramPlan
from shardpass.planning.plan.planner import plan_program
from shardpass.program.program import Op
from shardpass.program.read import Handles
from shardpass.program.shardings import Shardings
from shardpass.program.table import scope
from shardpass.program.validate import dividing, words
from shardpass.sharding import Sharding
from shardpass.sharding.common import is_named

MOST_CONSTRAINTS = 8  # those around which most bytes move; each is planned without it


class Sends(enum.Enum):
    """The redistributions that a check reports."""

    NONE = "none"
    BYTES = "those that send bytes, as remarks"
    ALL = "all, as errors"


def planned(module: Any, *, sends: Sends = Sends.BYTES, remarks: bool = False) -> Iterator[Diagnostic]:
    """Plan a propagated ``module``, and yield a diagnostic for each redistribution that ``sends`` selects.

    ``remarks``: also yield remarks on sizes, repeated work and expensive constraints.
    """
    with module.context, scope():  # planning makes splices, so it works on a copy
        table = spliced_table(copy_module(module))
        shardings = table.all_shardings()
        plan = plan_program(table.program, shardings, machine=machine_of(module))
        if remarks:
            yield from _sizes(plan, table.handles)
        for one in redistributions(plan):
            yield from _redistribution(one, table.handles, sends, remarks)
        if remarks:
            yield from _waste(plan, table.handles)
            yield from _constraints(plan, shardings, table.handles)


def _constraints(plan: ProgramPlan, shardings: Shardings, handles: Handles) -> Iterator[Diagnostic]:
    for one in costly_constraints(plan, shardings, MOST_CONSTRAINTS):
        array = plan.program.array(one.op.results[0])
        yield COSTLY_CONSTRAINT.at(
            place_of(handles.ops[one.op.number].location),
            sharding=_text(one.sharding, array.rank, one.op.mesh),
            type=f"tensor<{array}>",
            bytes=one.bytes,
            saved=one.saved,
        )


def _redistribution(one: Redistribution, handles: Handles, sends: Sends, remarks: bool) -> Iterator[Diagnostic]:
    reshard = one.reshard
    kind = f"tensor<{reshard.type}>"
    times = "" if one.times == 1 else ", each time round a loop" if one.times is None else f", {one.times} times"
    place = _place(one.op, handles)
    source, target = (_text(one, reshard.type.rank, reshard.mesh) for one in (reshard.source.sharding, reshard.target))
    values: dict[str, Any] = {"what": reshard.cause, "type": kind, "source": source, "times": times}
    if sends is Sends.ALL or (sends is Sends.BYTES and reshard.bytes):
        diagnostic = REDISTRIBUTED.at(place, target=target, bytes=reshard.bytes, **values)
        yield replace(diagnostic, severity=Severity.ERROR) if sends is Sends.ALL else diagnostic
    if remarks and one.gathers_all and reshard.bytes:
        yield GATHERED.at(place, whole=reshard.type.bytes, bytes=reshard.bytes, **values)


def _text(sharding: Sharding, rank: int, mesh: PrimeMesh) -> str:
    """Format a sharding with the program's axis names, or as a list of devices if the axes have no names."""
    return spec_of(sharding, rank, mesh) if is_named(mesh.mesh) else str(sharding)


def _place(op: Op | None, handles: Handles) -> Place:
    return place_of((handles.main if op is None else handles.ops[op.number]).location)


def _sizes(plan: ProgramPlan, handles: Handles) -> Iterator[Diagnostic]:
    for one in undivided(plan):
        yield UNDIVIDED.at(
            _place(one.op, handles),
            size=one.size,
            count=one.count,
            axes=axes_text(one.mesh, one.axes) if is_named(one.mesh.mesh) else f"{one.count} devices",
            dim=one.dim,
            type=f"tensor<{one.array}>",
            op="the result" if one.op is None else one.op.called,
            bytes=one.bytes,
            would=words(dividing(one.size, one.count)),
        )


def _waste(plan: ProgramPlan, handles: Handles) -> Iterator[Diagnostic]:
    for work in repeated_work(plan):
        each = work.devices // work.parts
        yield REPEATED_WORK.at(
            place_of(handles.ops[work.op.number].location),
            op=work.op.called,
            parts=work.parts,
            devices=work.devices,
            times=each,
            wasted=100 * (1 - 1 / each),
            work=work.work,
        )
    for whole in computed_whole(plan):
        place = place_of(handles.ops[whole.op.number].location)
        yield NO_RULE.at(place, op=whole.op.called, why=whole.op.why_whole, bytes=whole.bytes)
    yield from _arguments(plan, handles)


def _arguments(plan: ProgramPlan, handles: Handles) -> Iterator[Diagnostic]:
    program = plan.program
    devices = program.mesh.num_devices
    total = sum(array.bytes for value in program.body.arguments if (array := program.arrays[value]) is not None)
    shardings = dict(plan.body.arguments)
    for index, value in enumerate(program.body.arguments):
        array, sharding = program.arrays[value], shardings.get(value)
        if array is None or sharding is None or not array.rank or not sharding.is_replicated:
            continue
        if devices > 1 and 100 * array.bytes >= total:
            yield UNSPLIT_ARGUMENT.at(
                place_of(handles.arguments[None][index].location),
                index=index,
                type=f"tensor<{array}>",
                devices=devices,
                bytes=array.bytes,
                least=-(-array.bytes // devices),
            )
