"""The partitioner: one walk over ``main``, in program order, that makes each op local in place.

State: ``held`` says for each value of the whole program its tile (an ``ir.Value``), the sharding it has now, and its
whole type. Invariants: before an op is visited all its operands are held; after it, its results are held in the
sharding that propagation gave them. Equal redistributions of one value are done once.

An op is one of:

1. a constraint (``@Sharding``): its operand, redistributed;
2. the border of a manual region: the tile goes in, or comes out, as it is; ops inside are left alone;
3. an op with a rule: ``ops.assign`` chooses its split, operands are redistributed to it, padding that a reduction would
   see is masked, the family's rewrite makes it local, partial sums are completed, the result is redistributed;
4. any other op: operands whole on every device, computed everywhere; results sliced. A remark says what it costs.

O(ops); each new (shape, source, target) costs one planned redistribution for its price.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics import report
from shardpass.diagnostics.table_passes import INTERNAL_SHAPE, MANUAL_SHAPE, NO_RULE
from shardpass.ir.locations import place_of
from shardpass.ir.reductions import all_reduce, channels, reduce_scatter
from shardpass.ir.tensors import is_ranked, operation, retype, shape_of, walk_blocks
from shardpass.ops.assign import Assignment, Side, assign, scatter_dims
from shardpass.ops.factors import Axes, DimAxes, Kind, Rule
from shardpass.ops.masking import identity_text, mask
from shardpass.ops.registry import Local, OpDef, find
from shardpass.passes import annotations as names
from shardpass.passes.manual import inputs_of
from shardpass.passes.program import Program, element_bits, is_manual
from shardpass.redistribute import estimate_bytes
from shardpass.sharding import Sharding


@dataclass(frozen=True, slots=True)
class Held:
    """A value of the whole program on one device. ``dims`` is None for an order that the mesh cannot say."""

    tile: Any
    kind: Any  # the whole type
    sharding: Sharding
    dims: DimAxes | None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.kind.shape)


class Partitioner:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.mesh = program.mesh
        self.devices = self.mesh.num_devices
        self.held: dict[Any, Held] = {}
        self.moved: dict[tuple[Any, Sharding], Any] = {}
        self.dead: list[Any] = []
        self.channel: Iterator[int] = channels(program.module)
        self.signature = names.Signature(program.main)

    def run(self) -> None:
        ops = self.program.ops
        rules = [_rule(op) for op in ops[:-1]]  # before any type becomes a tile
        self._arguments()
        for position, (op, rule) in enumerate(zip(ops[:-1], rules, strict=True)):
            self._op(op, ops[position + 1], rule)
        self._return(ops[-1])
        for op in reversed(self.dead):
            op.erase()

    # ---------------------------------------------------------------- values

    def _held(self, tile: Any, kind: Any, sharding: Sharding) -> Held:
        return Held(tile, kind, sharding, self.program.dims(sharding, kind.rank))

    def _tile_type(self, kind: Any, sharding: Sharding) -> Any:
        return retype(kind, kind.shape if sharding.is_maximal else sharding.tile_shape(tuple(kind.shape)))

    def _price(self, held: Held, target: Sharding) -> int:
        """Bytes that a device receives to bring ``held`` to ``target``."""
        if held.sharding == target:
            return 0
        return self._bytes(held.kind, held.sharding, target)

    def _bytes(self, kind: Any, source: Sharding, target: Sharding) -> int:
        element = str(kind.element_type)
        return estimate_bytes(tuple(kind.shape), element, source, target, num_devices=self.devices)

    def _bring(self, value: Any, target: Sharding, op: Any, cause: str) -> Any:
        """The tile of ``value`` under ``target``; built before ``op`` where it is not there yet."""
        held = self.held[value]
        if held.sharding == target:
            return held.tile
        key = (value, target)
        if key not in self.moved:
            with ir.InsertionPoint(op), op.location:
                self.moved[key] = self._redistribute(held, target, cause)
        return self.moved[key]

    def _redistribute(self, held: Held, target: Sharding, cause: str) -> Any:
        attributes = {
            names.FROM: ir.StringAttr.get(str(held.sharding)),
            names.TO: ir.StringAttr.get(str(target)),
            names.GLOBAL_TYPE: ir.TypeAttr.get(held.kind),
            names.CAUSE: ir.StringAttr.get(cause),
        }
        kind = self._tile_type(held.kind, target)
        return names.make_custom_call(names.REDISTRIBUTE, held.tile, kind, attributes)

    # ---------------------------------------------------------------- borders of main

    def _arguments(self) -> None:
        for argument, row in zip(self.program.block.arguments, self.signature.arguments, strict=True):
            if not is_ranked(argument):
                continue
            kind = argument.type
            said = self.program.shardings(row, [kind], argument.location)
            sharding = _known(said[0] if said else None)
            self.held[argument] = self._held(argument, kind, sharding)
            argument.set_type(self._tile_type(kind, sharding))
            self._write(row, kind, sharding)

    def _return(self, op: Any) -> None:
        for index, (value, row) in enumerate(zip(list(op.operands), self.signature.results, strict=True)):
            if value not in self.held:
                continue
            held = self.held[value]
            said = self.program.shardings(row, [held.kind], op.location)
            target = _known(said[0]) if said else held.sharding
            op.operands[index] = self._bring(value, target, op, f"result {index} of the program")
            self._write(row, held.kind, target)
        main = self.program.main
        inputs = [a.type for a in self.program.block.arguments]
        results = [v.type for v in op.operands]
        main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))
        self.signature.write()

    def _write(self, row: dict[str, Any], kind: Any, sharding: Sharding) -> None:
        row[names.SHARDING] = ir.StringAttr.get(names.MANUAL)
        row[names.GLOBAL_TYPE] = ir.TypeAttr.get(kind)
        row[names.TILED_SHARDING] = ir.StringAttr.get(str(sharding))

    # ---------------------------------------------------------------- ops

    def _op(self, op: Any, following: Any, rule: Rule | None) -> None:
        target = names.custom_call_target(op)
        if is_manual(op):
            self._manual(op, target)
        elif target == names.CONSTRAINT:
            self._constraint(op)
        elif target == names.TO_FULL:
            self._leave_region(op)
        else:
            entry = find(op.name)
            wanted = self._wanted(op)
            if entry is not None and rule is not None:
                self._split(op, following, entry, rule, wanted)
            else:
                self._whole(op, following, wanted, "it has no rule" if entry is None else "its form has no rule")
            if names.SHARDING in op.attributes:
                del op.attributes[names.SHARDING]

    def _wanted(self, op: Any) -> list[Sharding]:
        """The shardings of the results; values that have none are replicated."""
        types = [r.type for r in op.results]
        said = self.program.shardings(op.attributes, types, op.location)
        return [_known(s) for s in said] if said else [Sharding.replicated()] * len(types)

    def _constraint(self, op: Any) -> None:
        value, kind = op.operands[0], op.results[0].type
        target = self._wanted(op)[0]
        tile = self._bring(value, target, op, "a sharding constraint")
        self.held[op.results[0]] = self._held(tile, kind, target)
        self.dead.append(op)

    def _manual(self, op: Any, target: str) -> None:
        if target == names.TO_SHARD:
            held = self.held[op.operands[0]]
            if held.tile.type != op.results[0].type:
                raise MANUAL_SHAPE.error(
                    place_of(op.location), found=op.results[0].type, expected=held.tile.type, text=held.sharding
                )
            op.results[0].replace_all_uses_with(held.tile)
            self.dead.append(op)
        elif target == names.CONSTRAINT:
            op.results[0].replace_all_uses_with(op.operands[0])
            self.dead.append(op)
        else:
            del op.attributes[names.SHARDING]

    def _leave_region(self, op: Any) -> None:
        kind, sharding, tile = op.results[0].type, self._wanted(op)[0], op.operands[0]
        expected = self._tile_type(kind, sharding)
        if tile.type != expected:
            raise MANUAL_SHAPE.error(place_of(op.location), found=tile.type, expected=expected, text=sharding)
        self.held[op.results[0]] = self._held(tile, kind, sharding)
        self.dead.append(op)

    # ---------------------------------------------------------------- an op without a rule

    def _whole(self, op: Any, following: Any, wanted: list[Sharding], why: str) -> None:
        """The default: operands replicated, computed on every device, results sliced."""
        replicated, gathered = Sharding.replicated(), 0
        replacement: dict[Any, Any] = {}
        for value in inputs_of(op):
            if value in self.held and value not in replacement:
                gathered += self._price(self.held[value], replicated)
                replacement[value] = self._bring(value, replicated, op, f"{op.name} is computed whole: {why}")
        for nested in [op, *_inner_ops(op)]:
            for index, value in enumerate(nested.operands):
                if value in replacement and replacement[value] != value:
                    nested.operands[index] = replacement[value]
        if gathered:
            report(NO_RULE.at(place_of(op.location), op=op.name, why=why, bytes=gathered))
        for result, sharding in zip(op.results, wanted, strict=True):
            if is_ranked(result):
                self._deliver(result, self._held(result, result.type, replicated), sharding, op, following)

    def _deliver(self, result: Any, held: Held, wanted: Sharding, op: Any, following: Any) -> None:
        """Holds ``result`` under ``wanted``, after ``op``."""
        if held.sharding != wanted:
            with ir.InsertionPoint(following), op.location:
                tile = self._redistribute(held, wanted, f"result of {op.name}")
            held = self._held(tile, held.kind, wanted)
        self.held[result] = held

    # ---------------------------------------------------------------- an op with a rule

    def _split(self, op: Any, following: Any, entry: OpDef, rule: Rule, wanted: list[Sharding]) -> None:
        operands = [self.held[v] for v in op.operands]
        inputs = [
            Side(h.shape, m, h.dims, element_bits(h.kind) // 8) for h, m in zip(operands, rule.operands, strict=True)
        ]
        kinds = [r.type for r in op.results]
        outputs = [
            Side(tuple(k.shape), m, self.program.dims(s, k.rank), element_bits(k) // 8)
            for k, m, s in zip(kinds, rule.results, wanted, strict=True)
        ]
        chosen = assign(
            self._maskable(rule, operands),
            inputs,
            outputs,
            self.mesh,
            lambda i, dims: self._price(operands[i], self.mesh.sharding(dims)),
            lambda i, dims: (
                0 if outputs[i].dims == dims else self._bytes(kinds[i], self.mesh.sharding(dims), wanted[i])
            ),
        )
        self._set_operands(op, rule, chosen)
        local = Local(op, self.mesh, chosen.operands, chosen.results, tuple(tuple(k.shape) for k in kinds), following)
        replaced = entry.rewrite(local) if entry.rewrite else None
        for index, (result, kind) in enumerate(zip(op.results, kinds, strict=True)):
            result.set_type(retype(kind, local.tile(index)))
            tile, dims = (replaced or op.results)[index], chosen.results[index]
            if chosen.partial:
                tile, dims = self._complete(tile, dims, chosen.partial, outputs[index], rule, op, following)
            held = Held(tile, kind, self.mesh.sharding(dims), dims)
            self._deliver(result, held, wanted[index], op, following)

    def _maskable(self, rule: Rule, operands: list[Held]) -> Rule:
        """``rule``; without split reductions where padding could not be masked."""
        elements = [h.kind.element_type for h in operands]
        if not rule.combiner or all(identity_text(rule.combiner, e) is not None for e in elements):
            return rule
        factors = tuple(replace(f, kind=Kind.REPLICATED) if f.kind is Kind.REDUCTION else f for f in rule.factors)
        return replace(rule, factors=factors)

    def _set_operands(self, op: Any, rule: Rule, chosen: Assignment) -> None:
        for index, (value, dims) in enumerate(zip(list(op.operands), chosen.operands, strict=True)):
            cause = f"operand {index} of {op.name}"
            tile = self._bring(value, self.mesh.sharding(dims), op, cause)
            for dim, (factors, axes) in enumerate(zip(rule.operands[index], dims, strict=True)):
                size = self.held[value].shape[dim]
                joins = any(rule.factors[f].kind is Kind.REDUCTION for f in factors)
                if axes and joins and size % self.mesh.count(axes):
                    with ir.InsertionPoint(op), op.location:
                        tile = mask(tile, dim, size, axes, self.mesh, rule.combiner)
            if tile != value:
                op.operands[index] = tile

    def _complete(
        self, tile: Any, dims: DimAxes, partial: Axes, side: Side, rule: Rule, op: Any, following: Any
    ) -> tuple[Any, DimAxes]:
        """Completes partial results: scattered where the wanted sharding splits over the same axes."""
        left, out = list(partial), list(dims)
        cause = f"partial results of {op.name}"
        with ir.InsertionPoint(following), op.location:
            for dim, axes in scatter_dims(side, dims, partial, self.mesh):
                groups = self.mesh.groups(axes)
                step = reduce_scatter(tile, dim, groups, rule.combiner, next(self.channel))
                self._explain(step, axes, cause)
                tile, out[dim] = step.results[0], out[dim] + axes
                left = [a for a in left if a not in axes]
            if left:
                step = all_reduce(tile, self.mesh.groups(tuple(left)), rule.combiner, next(self.channel))
                self._explain(step, tuple(left), cause)
                tile = step.results[0]
        expected = self.mesh.tile(side.shape, tuple(out))
        if shape_of(tile) != expected:
            raise INTERNAL_SHAPE.error(place_of(op.location), op=op.name, found=shape_of(tile), expected=expected)
        return tile, tuple(out)

    def _explain(self, step: Any, axes: Axes, cause: str) -> None:
        step.attributes[names.CAUSE] = ir.StringAttr.get(cause)
        step.attributes[names.AXES] = ir.StringAttr.get(self.mesh.names(axes))


def _known(sharding: Sharding | None) -> Sharding:
    return Sharding.replicated() if sharding is None or sharding.is_unknown else sharding


def _rule(op: Any) -> Rule | None:
    """The op's rule. Rules see tensors only, and no values that a region takes from outside."""
    entry = find(op.name)
    if entry is None or is_manual(op) or not all(map(is_ranked, [*op.operands, *op.results])):
        return None
    if len(op.regions) and len(inputs_of(op)) > len(op.operands):
        return None
    return entry.rule(op)


def _inner_ops(op: Any) -> list[Any]:
    return [operation(o) for block in walk_blocks(op) for o in block.operations]
