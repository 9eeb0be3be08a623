"""Rewrite ``main`` to the program of one device, in place, as a plan describes. Make no decisions.

One walk over the plan in program order. For each op: the steps of its operands are built before it, the op takes their
tiles and is made local by its model, its results are completed and resharded behind it. Ops are changed in place
(operands, attributes, ``set_type``), so that locations stay. Ops that the plan leaves out, and ops that others replace,
are erased at the end, users first.

State: ``tiles``, the value of each copy (``tiles``). Invariant: before an op is built, all copies that it reads exist.
O(ops + steps).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics import report
from shardpass.diagnostics.table_passes import INTERNAL_SHAPE, MANUAL_SHAPE, NO_RULE, NOT_ALONE, TAKEN_WHOLE, TOO_LONG
from shardpass.ir import annotations as names
from shardpass.ir.effects import calls_host
from shardpass.ir.integers import OutOfRange
from shardpass.ir.locations import named_below, place_of
from shardpass.ir.reductions import WITH_CHANNELS, channels
from shardpass.ir.tensors import every_op, retype
from shardpass.ops.border import emitted
from shardpass.ops.model import Site
from shardpass.ops.registry import find
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.partition.build import ReshardBuilder, completed, masked, tile_shape
from shardpass.partition.host_call import on_one_device
from shardpass.partition.tiles import Tiles
from shardpass.planning.plan.plan import ProgramPlan
from shardpass.planning.price.steps import (
    BlockPlan,
    BorderPlan,
    ConstraintPlan,
    ControlFlowPlan,
    LeftOutPlan,
    OperandPlan,
    OpPlan,
    Recompute,
    Remark,
    ResultPlan,
    SplitPlan,
    Step,
    UntouchedPlan,
    WholePlan,
)
from shardpass.program.program import Block, Op
from shardpass.program.read import Handles
from shardpass.sharding import Sharding


def emit(plan: ProgramPlan, handles: Handles) -> None:
    """Build ``plan`` in the module to which ``handles`` belong."""
    with ir.Location.unknown(handles.module.context):
        _Emitter(plan, handles).run()


class _Emitter:
    def __init__(self, plan: ProgramPlan, handles: Handles) -> None:
        self.plan = plan
        self.program = plan.program
        self.handles = handles
        self.channels = self._fresh_channels()
        self.tiles = Tiles()
        self.reshards = ReshardBuilder()
        self.dead: list[Any] = []  # in program order

    def run(self) -> None:
        body, end = self.program.body, self.handles.ends[None]
        signature = self.handles.signature
        self._arguments(self.plan.body)
        for (value, sharding), row in zip(self.plan.body.arguments, self._rows(), strict=True):
            _describe(row, self._whole_type(value), sharding)
        self._block(self.plan.body, body, None)
        for index, operand in enumerate(self.plan.body.returned):
            target = self.plan.returned[index]
            if operand is not None and target is not None:
                _describe(signature.results[index], self._whole_type(body.returned[index]), target)
        for op in reversed(self.dead):
            op.erase()
        self._mark_loops()
        main = self.handles.main
        inputs = [a.type for a in self.handles.arguments[None]]
        results = [v.type for v in end.operands]
        main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))
        signature.write()

    def _mark_loops(self) -> None:
        """Mark products that a later pass overlaps with a collective."""
        if self.plan.loops is None:
            return
        for loop in self.plan.loops:
            for number, side in loop.products:
                text = loop.kind if side is None else f"{loop.kind} {side}"
                self.handles.ops[number].attributes[names.IN_TURN] = ir.StringAttr.get(text)
        count = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), len(self.plan.loops))
        self.handles.module.operation.attributes[names.IN_TURN] = count

    def _fresh_channels(self) -> Iterator[int]:
        """Yield channel numbers that the user's collectives do not use."""
        searched = any(op.is_manual or op.name in WITH_CHANNELS for op in self.program.body.every_op())
        return channels(self.handles.module) if searched else count(1)

    def _rows(self) -> list[dict[str, Any]]:
        """Return the attributes of main's array arguments."""
        arguments = self.program.body.arguments
        rows = self.handles.signature.arguments
        return [row for value, row in zip(arguments, rows, strict=True) if self.program.arrays[value] is not None]

    def _whole_type(self, value: int) -> Any:
        return self.handles.types[value]

    # ---------------------------------------------------------------- blocks

    def _arguments(self, block: BlockPlan) -> None:
        for value, sharding in block.arguments:
            argument = self.handles.values[value]
            shape = self.program.array(value).shape
            tile = tile_shape(shape, sharding)
            if tile != shape:
                argument.set_type(retype(argument.type, tile))
            self.tiles.put(value, sharding, argument)

    def _block(self, plan: BlockPlan, block: Block, key: tuple[int, int] | None) -> None:
        """Build every op of ``block``, and the operands of its terminator."""
        handles, end = self.handles.ops, self.handles.ends[key]
        following = {op.number: handles[after.number] for op, after in zip(block.ops, block.ops[1:], strict=False)}
        for one in plan.ops:
            number = one.op.number
            try:
                self._op(one, handles[number], following.get(number, end))
            except OutOfRange as error:
                place = place_of(handles[number].location)
                raise TOO_LONG.error(place, op=one.op.name, number=error.number, type=error.element) from None
        for index, operand in enumerate(plan.returned):
            if operand is not None:
                self._set(end, index, self._operand(operand, end, f"result_{index}"))

    def _operand(self, operand: OperandPlan, op: Any, part: str) -> Any:
        """Build the steps of an operand before ``op``; returns its tile. ``part``: the operand's name in messages."""
        self._steps(operand.steps, op, part)
        return self.tiles[operand.copy]

    def _masked(self, operand: OperandPlan, op: Any, part: str, mesh: PrimeMesh) -> Any:
        """Build the steps and masks of an operand before ``op``; returns its tile."""
        tile = self._operand(operand, op, part)
        if operand.masks:
            with ir.InsertionPoint(op), op.location:
                for step in operand.masks:
                    tile = masked(step, tile, mesh)
        return tile

    def _steps(self, steps: Sequence[Step], op: Any, part: str = "", where: Any = None) -> None:
        """Build ``steps`` before ``op``, for ``op`` or for the op at ``where``, and record their copies."""
        location = op.location if where is None else where
        for step in steps:
            if isinstance(step, Recompute):
                tile = self._again(step, op)
            else:
                with ir.InsertionPoint(op), named_below(location, part) if part else location:
                    tile = self.reshards.build(step, self.tiles[step.source])
            self.tiles.put(step.made.array, step.made.sharding, tile)

    def _set(self, op: Any, index: int, tile: Any) -> None:
        if op.operands[index] != tile:
            op.operands[index] = tile

    # ---------------------------------------------------------------- ops

    def _op(self, plan: OpPlan, op: Any, after: Any) -> None:
        match plan:
            case SplitPlan():
                self._say_not_alone(plan.op, op)
                self._split(plan, op, after)
            case WholePlan():
                self._say_not_alone(plan.op, op)
                self._whole(plan, op, after)
            case ConstraintPlan():
                self._steps(plan.operand.steps, op)
                self.dead.append(op)
            case BorderPlan():
                self._border(plan, op)
            case UntouchedPlan():
                self._untouched(plan, op)
            case ControlFlowPlan():
                self._say_not_alone(plan.op, op)
                self._control_flow(plan, op, after)
            case LeftOutPlan():
                self._steps(plan.steps, op)
                self.dead.append(op)

    def _say_not_alone(self, op: Op, handle: Any) -> None:
        """Report that all devices compute an op that the user put on one device."""
        shardings = [
            self.program.annotations[value].sharding for value in op.results if value in self.program.annotations
        ]
        alone = next((sharding for sharding in shardings if sharding is not None and sharding.is_maximal), None)
        devices = self.program.mesh.num_devices
        if alone is not None and devices > 1 and op.once is None:
            place = place_of(handle.location)
            report(NOT_ALONE.at(place, op=op.called, text=alone, device=alone.device, devices=devices))

    def _split(self, plan: SplitPlan, op: Any, after: Any) -> None:
        for remark in plan.remarks:
            _say(remark, plan.op, op)
        mesh, values = plan.op.mesh, self.handles.values
        for index, (number, operand) in enumerate(zip(plan.op.operands, plan.operands, strict=True)):
            if index in plan.local.ignored:
                continue
            tile = self._masked(operand, op, f"operand_{index}", mesh)
            if tile is not values[number]:
                op.operands[index] = tile
        _unannotate(op, mesh.manual != ())
        site = Site(op, plan.local.split, after, self.channels, [values[number] for number in plan.op.results])
        model = plan.op.model
        assert model is not None
        made = emitted(model, plan.local, site)
        self._results(plan.op, plan.results, made, op, after)
        if site.discarded:
            self.dead.append(op)

    def _results(self, op: Op, results: tuple[ResultPlan | None, ...], made: Any, handle: Any, after: Any) -> None:
        for index, (result, tile) in enumerate(zip(results, made, strict=True)):
            if result is None:
                continue
            if result.completions:
                with ir.InsertionPoint(after), handle.location:
                    for step in result.completions:
                        cause = f"partial results of {op.name}"
                        tile = completed(step, tile, op.mesh, self.channels, cause)
            expected = tile_shape(self.program.array(result.value).shape, result.computed)
            if (shape := tuple(tile.type.shape)) != expected:
                raise INTERNAL_SHAPE.error(place_of(handle.location), op=op.name, found=shape, expected=expected)
            self._deliver(result, tile, handle, after, f"result_{index}")

    def _deliver(self, result: ResultPlan, tile: Any, handle: Any, after: Any, part: str) -> None:
        self.tiles.put(result.value, result.computed, tile)
        if result.reshard is not None:
            with ir.InsertionPoint(after), named_below(handle.location, part):
                moved = self.reshards.build(result.reshard, tile)
            self.tiles.put(result.value, result.wanted, moved)

    def _again(self, step: Recompute, before: Any) -> Any:
        """Copy the op of ``step``, under another split."""
        source = self.handles.ops[step.op.number]
        with ir.InsertionPoint(before):
            again = source.clone()
        _unannotate(again, True)
        for index, copy in enumerate(step.operands):
            again.operands[index] = self.tiles[copy]
        again.results[0].set_type(self._whole_type(step.op.results[0]))
        site = Site(again, step.local.split, before, self.channels)
        model = step.op.model
        assert model is not None
        made = emitted(model, step.local, site)
        if site.discarded:
            self.dead.append(again)
        return made[0]

    def _whole(self, plan: WholePlan, op: Any, after: Any) -> None:
        replacement = {}
        for index, (value, operand) in enumerate(plan.operands):
            replacement[self.handles.values[value]] = self._operand(operand, op, f"operand_{index}")
        for nested in every_op(op):
            for index, value in enumerate(nested.operands):
                tile = replacement.get(value)
                if tile is not None and tile != value:
                    nested.operands[index] = tile
        for remark in plan.remarks:
            _say(remark, plan.op, op)
        _unannotate(op, True)
        made = [self.handles.values[r.value] if r is not None else None for r in plan.results]
        if plan.op.once is not None:
            made = on_one_device(op, plan.op.once)
        self._results(plan.op, plan.results, made, op, after)

    def _border(self, plan: BorderPlan, op: Any) -> None:
        tile = op.operands[0] if plan.operand is None else self._operand(plan.operand, op, "operand_0")
        result = plan.result
        kind, expected = op.results[0].type, tile_shape(self.program.array(result.value).shape, result.computed)
        if tile.type != retype(kind, expected):
            raise _misfit(op, tile.type, retype(kind, expected), result.computed)
        self._deliver(result, tile, op, op, "result_0")
        self.dead.append(op)

    def _untouched(self, plan: UntouchedPlan, op: Any) -> None:
        """Copy the ops of a region that is manual over all axes; values enter the region as tiles."""
        if plan.entering is not None:
            tile = self.tiles[plan.entering]
            if op.results[0].type != tile.type:
                raise _misfit(op, op.results[0].type, tile.type, plan.entering.sharding)
            op.results[0].replace_all_uses_with(tile)
            self.dead.append(op)
        elif plan.op.target == names.CONSTRAINT:
            op.results[0].replace_all_uses_with(op.operands[0])
            self.dead.append(op)
        else:
            for inner in every_op(op):
                if names.SHARDING in inner.attributes and not calls_host(inner):  # XLA asks a side effect where it is
                    del inner.attributes[names.SHARDING]

    def _control_flow(self, plan: ControlFlowPlan, op: Any, after: Any) -> None:
        for hoisted in plan.before:
            self._steps(hoisted.steps, op, f"operand_{hoisted.operand}", self.handles.ops[hoisted.op].location)
        for index, operand in enumerate(plan.operands):
            self._set(op, index, self._masked(operand, op, f"operand_{index}", plan.op.mesh))
        for place, (block, facts) in enumerate(zip(plan.blocks, plan.op.blocks, strict=True)):
            self._arguments(block)
            self._block(block, facts, (plan.op.number, place))
        for value, sharding in zip(plan.op.results, plan.shardings, strict=True):
            result, shape = self.handles.values[value], self.program.array(value).shape
            result.set_type(retype(result.type, tile_shape(shape, sharding)))
            self.tiles.put(value, sharding, result)
        carried = [self.handles.values[value] for value in plan.op.results]
        self._results(plan.op, plan.results, carried[: len(plan.results)], op, after)
        _unannotate(op, True)


def _unannotate(op: Any, in_region: bool) -> None:
    """Remove the annotations that describe how the whole op is split."""
    attributes = op.attributes
    if not len(attributes):
        return
    if names.SHARDING in attributes:
        del attributes[names.SHARDING]
    if in_region and names.SCOPE in attributes:
        del attributes[names.SCOPE]
    for name in (names.PINNED, *names.DECIDED):
        if name in attributes:
            del attributes[name]


def _say(remark: Remark, op: Op, handle: Any) -> None:
    """Report ``remark`` at the source line of ``op``."""
    place = place_of(handle.location)
    if remark.code == NO_RULE.id:
        report(NO_RULE.at(place, op=op.called, why=op.why_whole, bytes=remark.bytes))
        return
    entry = find(op.name)
    note = (entry.note if entry else "") or "see docs/ops.md"
    hint = (
        f"split it along {_listed(remark.free)} instead"
        if remark.free
        else "replicate it: none of its dimensions can be split here"
    )
    report(
        TAKEN_WHOLE.at(
            place,
            op=op.called,
            operand=remark.operand,
            type=f"tensor<{remark.type}>",
            dims=_listed(remark.dims),
            bytes=remark.bytes,
            note=note,
            hint=hint,
        )
    )


def _listed(dims: tuple[int, ...]) -> str:
    numbers = " and ".join(map(str, dims))
    return f"dimension {numbers}" if len(dims) == 1 else f"dimensions {numbers}"


def _misfit(op: Any, actual: Any, expected: Any, sharding: Sharding) -> Exception:
    return MANUAL_SHAPE.error(place_of(op.location), found=actual, expected=expected, text=sharding)


def _describe(row: dict[str, Any], kind: Any, sharding: Sharding) -> None:
    """Write the global type and the sharding into the attributes of an argument or result."""
    row.pop(names.COPY, None)
    row[names.SHARDING] = ir.StringAttr.get(names.MANUAL)
    row[names.GLOBAL_TYPE] = ir.TypeAttr.get(kind)
    row[names.TILED_SHARDING] = ir.StringAttr.get(str(sharding))
