"""The partitioner: one walk over ``main``, in program order, that makes each op local in place.

State: ``values`` says for each value of the whole program its tile (an ``ir.Value``), the sharding it has now, and its
whole type. Invariants: before an op is visited all its operands are held; after it, its results are held in the
sharding that propagation gave them. ``copies`` says under which other shardings an array is at hand in this block, or
one around it: what was redistributed, what a constraint came from, what an op computed before it was brought to the
sharding that its result has. A value and its constraint are one array. A redistribution starts from the copy that is
nearest, so equal ones are done once, and what was cut from a whole array is not gathered again; ``recipes`` say which
values can be made again instead (``remake.py``).

An op is one of:

1. a constraint (``@Sharding``): its operand, redistributed;
2. the border of a manual region: the tile goes in, or comes out, as it is; ops inside are left alone;
3. control flow (``control.py``): its regions are walked in turn, with the values that cross their borders agreed on;
4. an op with a rule (``split.py``): ``ops.splits.assign`` chooses its split, and it is rewritten to local shapes;
5. any other op: operands whole on every device, computed everywhere; results sliced. A remark says what it costs.

O(ops x copies of an array, which are few); each new (shape, source, target) costs one planned redistribution for its
price.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.diagnostics import report
from shardpass.diagnostics.table_passes import MANUAL_SHAPE, NO_RULE
from shardpass.ir import annotations as names
from shardpass.ir.locations import place_of
from shardpass.ir.reductions import channels
from shardpass.ir.tensors import every_op, inputs_of, is_ranked, retype
from shardpass.ops.splits.assign import Assignment
from shardpass.ops.splits.factors import DimAxes
from shardpass.ops.splits.prime_mesh import PrimeMesh, prime_mesh
from shardpass.partition.control_flow import partition_control_flow
from shardpass.partition.rematerialize import Recipe, remade
from shardpass.partition.replicated_fallback import name_of, why_no_rule
from shardpass.partition.split import partition_split
from shardpass.program.program import Block, Node, Program
from shardpass.redistribute import estimate_bytes
from shardpass.sharding import Sharding

REPLICATED = Sharding.replicated()


@dataclass(frozen=True, slots=True)
class Held:
    """A value of the whole program on one device. ``dims`` is None for an order that the mesh cannot say."""

    tile: Any
    kind: Any  # the whole type
    sharding: Sharding
    dims: DimAxes | None
    mesh: PrimeMesh  # as ops of the value's region see it
    array: Any  # the first value that held this array

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.kind.shape)


class Partitioner:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.mesh = program.mesh
        self.devices = self.mesh.num_devices
        self.values: dict[Any, Held] = {}
        self.copies: ChainMap[Any, dict[Sharding, Any]] = ChainMap()  # array -> its tiles, in order
        self.recipes: dict[Any, Recipe] = {}
        self.choices: dict[Any, Assignment] = {}
        self.dead: list[Any] = []
        self.channel: Iterator[int] = channels(program.module)
        self.signature = names.Signature(program.main)

    def run(self) -> None:
        with ir.Location.unknown(self.program.module.context):
            self._arguments()
            self.block(self.program.body)
            self._return(self.program.body.end)
            for op in reversed(self.dead):
                op.erase()

    # ---------------------------------------------------------------- values

    def hold(self, value: Any, tile: Any, kind: Any, sharding: Sharding, mesh: PrimeMesh, array: Any = None) -> None:
        """``value`` of the whole program is ``tile`` from now on. ``array``: a value that holds the same array."""
        root = value if array is None else self.values[array].array
        self.values[value] = Held(tile, kind, sharding, mesh.dims(sharding, kind.rank), mesh, root)
        self._copy(root, sharding, tile)

    def _copy(self, array: Any, sharding: Sharding, tile: Any) -> None:
        """``array`` is at hand under ``sharding`` too, in the rest of this block."""
        known = self.copies.get(array, {})
        if sharding not in known:
            self.copies[array] = {**known, sharding: tile}  # a new dict: blocks around this one keep theirs

    def at_hand(self, held: Held) -> tuple[Sharding, ...]:
        """The shardings under which the array of ``held`` is there, its own first."""
        return (held.sharding, *(s for s in self.copies.get(held.array, ()) if s != held.sharding))

    def tile_type(self, kind: Any, sharding: Sharding) -> Any:
        return retype(kind, kind.shape if sharding.is_maximal else sharding.tile_shape(tuple(kind.shape)))

    def price(self, kind: Any, source: Sharding, target: Sharding, mesh: PrimeMesh) -> int:
        """Bytes that a device receives to bring a tensor of type ``kind`` from ``source`` to ``target``."""
        if source == target:
            return 0
        shape = tuple(kind.shape)
        if mesh.manual:
            shape, source, target = lifted(shape, source, target, mesh)
        return estimate_bytes(shape, str(kind.element_type), source, target, num_devices=self.devices)

    def price_of(self, held: Held, target: Sharding) -> int:
        """Bytes that a device receives to bring ``held`` to ``target``, from the nearest of its copies."""
        return self._nearest(held, target)[0]

    def _nearest(self, held: Held, target: Sharding) -> tuple[int, Sharding]:
        """(bytes, the copy to start from); among equals the value's own tile, then the first."""
        best = (self.price(held.kind, held.sharding, target, held.mesh), held.sharding)
        for source in self.at_hand(held)[1:] if best[0] else ():
            price = self.price(held.kind, source, target, held.mesh)
            if price < best[0]:
                best = (price, source)
        return best

    def bring(self, value: Any, target: Sharding, op: Any, cause: str) -> Any:
        """The tile of ``value`` under ``target``; built before ``op`` where it is not there yet."""
        held = self.values[value]
        if held.sharding == target:
            return held.tile
        known = self.copies.get(held.array, {})
        if target not in known:
            price, source = self._nearest(held, target)
            made = remade(self, held, target, price, op, cause)
            if made is None:
                tile = held.tile if source == held.sharding else known[source]
                with ir.InsertionPoint(op), op.location:
                    made = self._redistribute(tile, held.kind, source, target, held.mesh, explained(cause, op))
            self._copy(held.array, target, made)
        return self.copies[held.array][target]

    def deliver(
        self, result: Any, tile: Any, kind: Any, found: Sharding, wanted: Sharding, node: Node, after: Any
    ) -> None:
        """Holds ``result``, now ``tile`` under ``found``, under ``wanted``; built before ``after``."""
        computed = tile
        if found != wanted:
            with ir.InsertionPoint(after), node.op.location:
                cause = explained(f"result of {node.op.name}", node.op)
                tile = self._redistribute(tile, kind, found, wanted, node.mesh, cause)
        self.hold(result, tile, kind, wanted, node.mesh)
        self._copy(result, found, computed)

    def _redistribute(
        self, tile: Any, kind: Any, source: Sharding, target: Sharding, mesh: PrimeMesh, cause: str
    ) -> Any:
        made = self.tile_type(kind, target)
        whole, result = kind, made
        if mesh.manual:  # the region's copies are different arrays: stacked, they are one
            shape, source, target = lifted(tuple(kind.shape), source, target, mesh)
            whole, result = retype(kind, shape), retype(made, (1, *made.shape))
            tile = hlo.reshape(retype(tile.type, (1, *tile.type.shape)), tile)
        attributes = {
            names.FROM: ir.StringAttr.get(str(source)),
            names.TO: ir.StringAttr.get(str(target)),
            names.GLOBAL_TYPE: ir.TypeAttr.get(whole),
            names.CAUSE: ir.StringAttr.get(cause),
        }
        moved = names.make_custom_call(names.REDISTRIBUTE, tile, result, attributes)
        return hlo.reshape(made, moved) if mesh.manual else moved

    def wanted(self, node: Node) -> list[Sharding]:
        """The shardings of the op's results; values that have none are replicated."""
        op = node.op
        types = [r.type for r in op.results]
        said = self.program.shardings(op.attributes, types, op.location)
        return [_known(said[i] if said else None, node.mesh, kind) for i, kind in enumerate(types)]

    # ---------------------------------------------------------------- borders of main

    def _arguments(self) -> None:
        for argument, row in zip(self.program.body.arguments, self.signature.arguments, strict=True):
            if is_ranked(argument):
                said = self.program.shardings(row, [argument.type], argument.location)
                sharding = _known(said[0] if said else None, self.mesh, argument.type)
                self.enter(argument, sharding, self.mesh, row)

    def enter(self, argument: Any, sharding: Sharding, mesh: PrimeMesh, row: dict[str, Any] | None = None) -> None:
        """A block's argument becomes a tile; ``row``: the attributes that say what it is a tile of."""
        kind = argument.type
        self.hold(argument, argument, kind, sharding, mesh)
        argument.set_type(self.tile_type(kind, sharding))
        if row is not None:
            _describe(row, kind, sharding)

    def _return(self, op: Any) -> None:
        for index, (value, row) in enumerate(zip(list(op.operands), self.signature.results, strict=True)):
            if value not in self.values:
                continue
            held = self.values[value]
            said = self.program.shardings(row, [held.kind], op.location)
            target = _known(said[0], self.mesh, held.kind) if said else held.sharding
            op.operands[index] = self.bring(value, target, op, f"result {index} of the program")
            _describe(row, held.kind, target)
        main = self.program.main
        inputs = [a.type for a in self.program.body.arguments]
        results = [v.type for v in op.operands]
        main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))
        self.signature.write()

    # ---------------------------------------------------------------- ops

    def block(self, block: Block) -> None:
        """Every op of ``block`` but its terminator."""
        ops = [*(node.op for node in block.nodes), block.end]
        for node, after in zip(block.nodes, ops[1:], strict=True):
            self._op(node, after)

    def _op(self, node: Node, after: Any) -> None:
        op, target = node.op, names.custom_call_target(node.op)
        if node.manual:
            self._manual(op, target)
        elif target == names.CONSTRAINT:
            self._constraint(node)
        elif target == names.TO_SHARD:
            self._enter_region(node)
        elif target == names.TO_FULL:
            self._leave_region(node)
        else:
            wanted = self.wanted(node)
            if node.blocks:
                partition_control_flow(self, node, wanted)
            elif node.rule is not None:
                partition_split(self, node, node.rule, wanted, after)
            else:
                self._whole(node, after, wanted)
            for name in (names.SHARDING, names.SCOPE, names.CONFLICT):
                if name in op.attributes:
                    del op.attributes[name]

    def _constraint(self, node: Node) -> None:
        op = node.op
        target = self.wanted(node)[0]
        tile = self.bring(op.operands[0], target, op, "a sharding constraint")
        self.hold(op.results[0], tile, op.results[0].type, target, node.mesh, array=op.operands[0])
        self.dead.append(op)

    def _manual(self, op: Any, target: str) -> None:
        """Ops of a region that is manual over all axes stay; values go in and out as tiles."""
        if target == names.TO_SHARD:
            held = self.values[op.operands[0]]
            self._same_type(op, op.results[0].type, held.tile.type, held.sharding)
            op.results[0].replace_all_uses_with(held.tile)
            self.dead.append(op)
        elif target == names.CONSTRAINT:
            op.results[0].replace_all_uses_with(op.operands[0])
            self.dead.append(op)
        else:
            for inner in every_op(op):
                if names.SHARDING in inner.attributes:
                    del inner.attributes[names.SHARDING]

    def _enter_region(self, node: Node) -> None:
        """Into a region that is manual over some axes: the tile of the whole array is the tile of the region's."""
        op = node.op
        kind, wanted = op.results[0].type, self.wanted(node)[0]
        held = self.values[op.operands[0]]
        passing = _passing(node.mesh.dims(wanted, kind.rank), tuple(kind.shape), held.shape, node.mesh)
        outer, found = _with_manual(held.dims, node.mesh, passing), node.mesh.sharding(passing)
        tile = self.bring(op.operands[0], held.mesh.sharding(outer), op, "argument of a manual region")
        self._same_type(op, self.tile_type(kind, found), tile.type, found)
        self.hold(op.results[0], tile, kind, found, node.mesh)
        self.dead.append(op)

    def _leave_region(self, node: Node) -> None:
        op = node.op
        kind, wanted = op.results[0].type, self.wanted(node)[0]
        inner = self.values.get(op.operands[0])
        if inner is None:  # out of a region that is manual over all axes
            tile, found = op.operands[0], wanted
        else:
            passing = _passing(inner.dims, inner.shape, tuple(kind.shape), inner.mesh)
            tile = self.bring(op.operands[0], inner.mesh.sharding(passing), op, "result of a manual region")
            outer = _with_manual(node.mesh.dims(wanted, kind.rank), inner.mesh, passing)
            found = node.mesh.sharding(outer)
        self._same_type(op, tile.type, self.tile_type(kind, found), found)
        self.deliver(op.results[0], tile, kind, found, wanted, node, op)
        self.dead.append(op)

    def _same_type(self, op: Any, found: Any, expected: Any, sharding: Sharding) -> None:
        if found != expected:
            raise MANUAL_SHAPE.error(place_of(op.location), found=found, expected=expected, text=sharding)

    def _whole(self, node: Node, after: Any, wanted: list[Sharding]) -> None:
        """The default: operands replicated, computed on every device, results sliced."""
        op = node.op
        why = why_no_rule(op)
        gathered = 0
        replacement: dict[Any, Any] = {}
        for value in inputs_of(op):
            if value in self.values and value not in replacement:
                held = self.values[value]
                target = held.mesh.replicated(held.kind.rank)
                gathered += self.price_of(held, target)
                replacement[value] = self.bring(value, target, op, f"every device computes {op.name}: {why}")
        for nested in every_op(op):
            for index, value in enumerate(nested.operands):
                if value in replacement and replacement[value] != value:
                    nested.operands[index] = replacement[value]
        if gathered:
            report(NO_RULE.at(place_of(op.location), op=name_of(op), why=why, bytes=gathered))
        for result, sharding in zip(op.results, wanted, strict=True):
            if is_ranked(result):
                found = node.mesh.replicated(result.type.rank)
                self.deliver(result, result, result.type, found, sharding, node, after)


def explained(cause: str, op: Any) -> str:
    """``cause``, with what propagation had to decide at ``op``."""
    why = names.get_text(op, names.CONFLICT)
    return f"{cause}; {why}" if why else cause


def lifted(
    shape: tuple[int, ...], source: Sharding, target: Sharding, mesh: PrimeMesh
) -> tuple[tuple[int, ...], Sharding, Sharding]:
    """A redistribution inside a partly manual region as one of whole arrays.

    Each coordinate on the manual axes has an array of its own; stacked along a new first dimension that these axes
    split on both sides, they are one array, and no plan can mix them.
    """
    outside = prime_mesh(mesh.mesh)
    sides = []
    for sharding in (source, target):
        dims = mesh.dims(sharding, len(shape))
        sides.append(outside.sharding((mesh.manual, *(dims or ((),) * len(shape)))))
    return (mesh.count(mesh.manual), *shape), sides[0], sides[1]


def _with_manual(outer: DimAxes | None, mesh: PrimeMesh, inner: DimAxes | None) -> DimAxes:
    """The whole array's split: the manual axes that ``outer`` has on each dimension, then the region's own."""
    if outer is None or inner is None:
        return outer or inner or ()
    return tuple((*(a for a in axes if a in mesh.manual), *own) for axes, own in zip(outer, inner, strict=True))


def _passing(inner: DimAxes | None, part: tuple[int, ...], whole: tuple[int, ...], mesh: PrimeMesh) -> DimAxes:
    """What of the split ``inner`` of a region's array holds on both sides of its border.

    ``part`` of each dimension's ``whole`` is in the region. Where they differ and the split does not divide the part,
    each part is padded, and the whole would be padded at its end alone: the free axes stay behind.
    """
    if inner is None:
        return ((),) * len(part)
    return tuple(
        axes if size == full or size % mesh.count(axes) == 0 else ()
        for axes, size, full in zip(inner, part, whole, strict=True)
    )


def _known(sharding: Sharding | None, mesh: PrimeMesh, kind: Any) -> Sharding:
    if sharding is None or sharding.is_unknown or (mesh.manual and sharding.is_replicated):
        return mesh.replicated(kind.rank) if isinstance(kind, ir.RankedTensorType) else REPLICATED
    return sharding


def _describe(row: dict[str, Any], kind: Any, sharding: Sharding) -> None:
    row[names.SHARDING] = ir.StringAttr.get(names.MANUAL)
    row[names.GLOBAL_TYPE] = ir.TypeAttr.get(kind)
    row[names.TILED_SHARDING] = ir.StringAttr.get(str(sharding))
