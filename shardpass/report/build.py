"""Make an ``Explanation`` of a module: partition the module while watching the pipeline, or read a partitioned
module.

Kind, axes, bytes and trip counts come from the partitioned module, which is what runs. Array, shardings, reason and
the user's line come from the plan from which it was built (``watch``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from shardpass.cost.chosen import chosen
from shardpass.cost.machine import Machine
from shardpass.diagnostics import NOWHERE, Place, ShardpassError
from shardpass.ir.annotations import MESH, TILED_SHARDING, Signature, get_text, main_of
from shardpass.ir.collectives import CollectiveUse, collective_ops
from shardpass.ir.context import UNNAMED
from shardpass.ir.machines import module_machine
from shardpass.ops.splits.factors import DimAxes
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.ops.splits.specs import axes_of, spec, spec_of
from shardpass.planning.decide.search import Decision
from shardpass.planning.plan.costly import costly_constraints
from shardpass.planning.plan.plan import ProgramPlan
from shardpass.program.program import Block, Op
from shardpass.report.explanation import Explanation
from shardpass.report.holdings import BuiltOps, memory_facts, type_text
from shardpass.report.in_turn import InTurn, hops, tile
from shardpass.report.naming import Names, Sources, path_of, seen_frame
from shardpass.report.provenance import Provenance
from shardpass.report.reasons import Reasons
from shardpass.report.rows import (
    BACKWARD,
    FORWARD,
    ChangeFact,
    ConstraintFact,
    Dims,
    LoopFact,
    OpFact,
    Row,
    ValueFact,
    WorkFact,
)
from shardpass.report.schedule_module import schedule_module
from shardpass.report.times import Times
from shardpass.report.watch import Origin, Watched, marks, watch
from shardpass.sharding import Mesh, Sharding, TupleSharding, parse_mesh, parse_sharding
from shardpass.sharding.quoting import listed

PIPELINE = "partition"
MOST_CONSTRAINTS = 8  # that are tried by planning without them


def explain_module(
    module: Any,
    file: str,
    *,
    pipeline: str = PIPELINE,
    machine: Any = None,
    folders: Sequence[Path] | None = None,
) -> Explanation:
    """Explain ``module``. A module that is not partitioned is first partitioned in place by ``pipeline``.

    ``file``: the name of the module in the report. ``machine``: the machine whose time is modeled; by default the
    one that the partitioned module names. ``folders``: quote only files of the user's program below these folders;
    None quotes any file, for trusted programs.

    Raises ShardpassError if the module cannot be partitioned, and SP901 to SP903 for an unknown machine.
    """
    if machine is not None:
        machine = chosen(machine)
    seen = Watched() if is_partitioned(module) else watch(module, pipeline)
    return explain_built(module, file, seen, machine=machine, folders=folders)


def explain_built(
    module: Any, file: str, seen: Watched, *, machine: Any = None, folders: Sequence[Path] | None = None
) -> Explanation:
    """Explain ``module`` unchanged. ``seen``: the facts recorded during partitioning; other arguments: as in
    ``explain_module``.
    """
    machine = chosen(module_machine(module) if machine is None else machine)
    mesh = _mesh(module)
    file = called(module, file)
    sources = Sources(folders)
    ops = collective_ops(module)
    devices = mesh.size if mesh is not None else _devices(module)
    times = Times(machine, mesh, devices)
    if seen.plan is None:
        rows = [_plain_row(op, use, times) for op, use in ops]
        memory = memory_facts(module, machine.name)
        return Explanation(
            file,
            devices,
            _axes(mesh),
            tuple(rows),
            machine.name,
            memory=memory,
            sources=sources,
            built=module,
            memory_limit=machine.memory_limit,
        )
    facts = _Rows(seen, seen.plan, sources, machine)
    rows = [facts.row(op, use, times) for op, use in ops]
    compute = facts.compute()
    called_by = {number: op.name for number, op in facts.by_number.items()}
    return Explanation(
        file,
        devices,
        _axes(mesh),
        tuple(rows),
        machine.name,
        compute=compute,
        find_schedule=lambda: schedule_module(
            module, [op for op, _ in ops], rows, compute, facts.built_ops.number, called_by, machine
        ),
        find_ops=facts.ops,
        find_constraints=facts.constraints,
        memory=memory_facts(module, machine.name, facts.built_ops),
        changes=_decisions(seen),
        decision=_decision(seen.decision),
        sources=sources,
        plan=seen.plan,
        built=module,
        loops=facts.loops(),
        memory_limit=machine.memory_limit,
    )


def _decision(decision: Decision | None) -> dict[str, object] | None:
    """Return how close the decision is to the best possible, and its seconds beyond propagation alone."""
    if decision is None or decision.bound is None:
        return None
    trade = {} if decision.trade is None else {"trade": decision.trade.as_dict()}
    return decision.bound.as_dict() | trade


def called(module: Any, file: str) -> str:
    """Return the display name of a program: its file, or its function if JAX lowered it in this process."""
    name = get_text(module.operation, "sym_name") or ""
    return name.removeprefix("jit_") if file == UNNAMED and name else file


def is_partitioned(module: Any) -> bool:
    """Return whether @main's arguments or results have attributes that name the global arrays of which they are
    tiles.
    """
    signature = Signature(main_of(module))
    return any(TILED_SHARDING in row for row in (*signature.arguments, *signature.results))


def _mesh(module: Any) -> Mesh | None:
    text = get_text(module.operation, MESH)
    try:
        return parse_mesh(text) if text else None
    except ShardpassError:
        return None


def _devices(module: Any) -> int:
    from shardpass.ir.annotations import num_devices

    return num_devices(module) or 1


def _axes(mesh: Mesh | None) -> tuple[tuple[str, int], ...]:
    return () if mesh is None else tuple(mesh.axes)


def _decisions(seen: Watched) -> tuple[ChangeFact, ...]:
    moves = () if seen.decision is None else seen.decision.changes
    return tuple([ChangeFact(one.message, NOWHERE, one.before, one.after) for one in moves])


# ---------------------------------------------------------------- rows


def _plain_row(op: Any, use: CollectiveUse, times: Times) -> Row:
    location = op.location
    names = location.name_str if isinstance(location, ir.NameLoc) else ""
    return Row(
        use.kind,
        tuple(listed(use.axes)),
        use.group_size,
        use.bytes_each,
        use.operand,
        use.result,
        names=names,
        direction=BACKWARD if "transpose(" in str(location) else FORWARD,
        place=seen_frame(str(location), names).place,
        path=path_of(str(location), names),
        times=use.times,
        unknown_loops=use.unknown_loops,
        counted=use.counted,
        seconds=times.of(op, use),
        reason=use.reason,
        receivers=use.receivers,
    )


class _Rows:
    """Make the rows and facts of a report from the plan of a watched pipeline."""

    def __init__(self, seen: Watched, plan: ProgramPlan, sources: Sources, machine: Machine) -> None:
        assert seen.shardings is not None
        self.seen, self.plan, self.program = seen, plan, plan.program
        self.names = Names(plan.program, seen.locations, seen.argument_locations, sources)
        self.shardings = seen.shardings
        provenance = Provenance(plan.program, seen.shardings, seen.annotated_arguments, seen.annotated_results)
        self.reasons = Reasons(plan.body, self.names, provenance, seen.results, seen.annotated_results)
        self.reasons.searched = seen.decision is not None and bool(seen.decision.changes)
        self.by_number = {op.number: op for op in plan.program.body.every_op()}
        self.machine = machine
        self.in_turn = InTurn(plan.loops or (), machine)
        self.built_ops = BuiltOps(seen, self.names, self.by_number, self._value)

    def row(self, op: Any, use: CollectiveUse, times: Times) -> Row:
        plain = _plain_row(op, use, times)
        origins = self.seen.origins(op.location)
        if not origins:
            return plain
        first = origins[0]
        asked = self.by_number.get(first.op)
        dims = self._dims(first, asked)
        several = [name for name in dict.fromkeys(self._array(one) for one in origins) if name]
        array = several[0] + (f" and {len(several) - 1} more" if len(several) > 1 else "") if several else ""
        source, target = self._ends(first, asked, use, dims)
        source_dims, target_dims = self._split(first, asked, use, dims)
        beside = self.in_turn.seconds(origins, use)
        place, path = self._place(first, asked, plain)
        return replace(
            plain,
            array=array,
            type=self._type(first, asked),
            source=source,
            target=target,
            source_text=first.source,
            target_text=first.target,
            source_dims=source_dims,
            target_dims=target_dims,
            direction=self._direction(first, asked, plain),
            names=self._stack(asked, plain),
            place=place,
            path=path,
            reason=self.reasons.of(first, use.kind, use.axes, use.reason, dims),
            op=None if asked is None else asked.number,
            seconds=plain.seconds if beside is None else beside,
        )

    def compute(self) -> tuple[WorkFact, ...]:
        """List the seconds that each op of the plan computes, with the user's line."""
        seconds_of = self.plan.compute_by_op(self.machine)
        ops = ((number, self.by_number.get(number)) for number in seconds_of)
        frames = {number: NOWHERE if op is None else self.names.frame(op).place for number, op in ops}
        return tuple(WorkFact(number, frames[number], seconds) for number, seconds in seconds_of.items() if seconds)

    def constraints(self) -> tuple[ConstraintFact, ...]:
        """List the most expensive constraints, of those that cost more than they must."""
        result = []
        for one in costly_constraints(self.plan, self.shardings, MOST_CONSTRAINTS):
            array = self.program.array(one.op.results[0])
            place, to = self.names.frame(one.op).place, spec_of(one.sharding, array.rank, self.program.mesh)
            result.append(ConstraintFact(place, to, type_text(array.shape, str(array.element)), one.bytes, one.saved))
        return tuple(result)

    def loops(self) -> tuple[LoopFact, ...]:
        """List the collective matmuls of the plan: loops of products overlapped with a collective."""
        result = []
        for loop in self.plan.loops or ():
            first, pair = self.by_number[loop.products[0][0]], loop.pair
            cost = loop.price(loop.machine)
            fact = LoopFact(
                loop.kind,
                self.names.frame(first).place,
                len(loop.products),
                loop.resident_bytes,
                pair.bytes,
                cost.in_turn,
                cost.apart,
                loop.machine.name,
                axes=tuple(listed(loop.axes)),
                op=first.called.removeprefix("stablehlo."),
                number=first.number,
                steps=hops(loop),
                bytes_each=tile(loop),
                beside=cost.beside,
            )
            result.append(fact)
        return tuple(result)

    def _value(self, origin: Origin) -> int | None:
        """Return the value of the program that a collective moves."""
        asked = self.by_number.get(origin.op)
        if asked is None:
            returned = self.program.body.returned
            return returned[origin.index] if origin.op == self.program.count and origin.index < len(returned) else None
        if origin.side == "operand":
            values: Sequence[int] = asked.operands
        elif origin.side == "result" and asked.blocks:
            values = asked.blocks[-1].returned
        else:
            values = asked.results
        return values[origin.index] if origin.index < len(values) else None

    def _array(self, origin: Origin) -> str:
        value = self._value(origin)
        return "" if value is None else self.names.of(value)

    def _type(self, origin: Origin, asked: Op | None) -> str:
        value = self._value(origin)
        array = None if value is None else self.program.arrays[value]
        return "" if array is None else type_text(array.shape, array.element.mlir)

    def _mesh(self, asked: Op | None) -> PrimeMesh:
        return self.program.mesh if asked is None else asked.mesh

    def _dims(self, origin: Origin, asked: Op | None) -> tuple[DimAxes, DimAxes] | None:
        """Return the splits before and after a redistribution, over the axes of the op's mesh."""
        if not origin.source:
            return None
        mesh = self._mesh(asked)
        rank = len(origin.whole[0])
        result = [self._said(text, rank, mesh) for text in (origin.source, origin.target)]
        return None if result[0] is None or result[1] is None else (result[0], result[1])

    def _said(self, text: str, rank: int, mesh: PrimeMesh) -> DimAxes | None:
        sharding = parse_sharding(text)
        if isinstance(sharding, TupleSharding):
            return None
        if not mesh.manual:
            return mesh.dims(sharding, rank)
        dims = self.program.mesh.dims(sharding, rank)  # stacked along a first dimension that the manual axes split
        return None if dims is None else dims[1:]

    def _ends(
        self, origin: Origin, asked: Op | None, use: CollectiveUse, dims: tuple[DimAxes, DimAxes] | None
    ) -> tuple[str, str]:
        mesh = self._mesh(asked)
        if dims is not None:
            return spec(dims[0], mesh), spec(dims[1], mesh)
        if origin.source:
            return origin.source, origin.target
        value = self._value(origin)
        array = None if value is None else self.program.arrays[value]
        sharding = None if value is None else self.shardings.of.get(value)
        if array is None or not use.reason.startswith("partial results"):
            return "", ""
        target = spec_of(sharding or Sharding.replicated(), array.rank, mesh)
        return f"partial over {use.axes}", target

    def _split(
        self, origin: Origin, asked: Op | None, use: CollectiveUse, dims: tuple[DimAxes, DimAxes] | None
    ) -> tuple[Dims | None, Dims | None]:
        """Return the axes of each dimension before and after; of partial results each summand is split as their sum
        is.
        """
        mesh = self._mesh(asked)
        if dims is not None:
            return axes_of(dims[0], mesh), axes_of(dims[1], mesh)
        value = None if origin.source else self._value(origin)
        array = None if value is None else self.program.arrays[value]
        if value is None or array is None or not use.reason.startswith("partial results"):
            return None, None
        known = mesh.dims(self.shardings.of.get(value) or Sharding.replicated(), array.rank)
        if known is None:
            return None, None
        after = axes_of(known, mesh)
        added = set(listed(use.axes))
        return tuple(tuple(axis for axis in axes if axis not in added) for axes in after), after

    def _direction(self, origin: Origin, asked: Op | None, plain: Row) -> str:
        if asked is None:
            value = self._value(origin)
            asked = None if value is None else self.names.makers.get(value)
        return BACKWARD if asked is not None and self.names.is_backward(asked) else plain.direction

    def _stack(self, asked: Op | None, plain: Row) -> str:
        if asked is not None:
            return self.names.stack(asked)
        text = plain.names
        for mark in marks(text):
            text = text.replace(f"/{mark}", "").replace(mark, "")
        return text

    def _place(self, origin: Origin, asked: Op | None, plain: Row) -> tuple[Place, tuple[Place | str, ...]]:
        """Return the line and path of the op that needs the collective; for a result of main, of the op that computes
        the result.
        """
        value = self._value(origin)
        maker = None if value is None else self.names.makers.get(value)
        ops = [op for op in (asked, maker) if op is not None]
        for op in ops:
            if (place := self.names.frame(op).place) != NOWHERE:
                return place, self.names.path(op)
        paths = (self.names.path(op) for op in ops)
        path = plain.path if plain.place != NOWHERE else next(filter(None, paths), plain.path)
        return plain.place, path

    # ---------------------------------------------------------------- the program

    def ops(self) -> tuple[OpFact, ...]:
        """List the ops of the program before partitioning."""
        body = self.program.body
        arguments = tuple(self._fact(value) for value in body.arguments if self.program.arrays[value] is not None)
        out = [OpFact(-1, "argument", NOWHERE, FORWARD, arguments)]
        self._ops(body, 0, out)
        return tuple(out)

    def _ops(self, block: Block, depth: int, out: list[OpFact]) -> None:
        for op in block.ops:
            results = tuple(self._fact(value) for value in op.results if self.program.arrays[value] is not None)
            direction = BACKWARD if self.names.is_backward(op) else FORWARD
            out.append(OpFact(op.number, op.called, self.names.frame(op).place, direction, results, depth))
            for inner in op.blocks:
                self._ops(inner, depth + 1, out)

    def _fact(self, value: int) -> ValueFact:
        array, mesh = self.program.array(value), self.program.mesh
        sharding = self.shardings.of.get(value, Sharding.replicated())
        dims = mesh.dims(sharding, array.rank)
        tile = array.shape if sharding.is_maximal or not sharding.is_tiled else sharding.tile_shape(array.shape)
        return ValueFact(
            self.names.of(value),
            type_text(array.shape, array.element.mlir),
            spec_of(sharding, array.rank, mesh),
            axes_of(dims or (), mesh),
            array.element.bytes(int(np.prod(tile, dtype=np.int64))),
        )
