"""``shardpass-propagate``: every value gets a sharding. The engine is in ``propagation``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir

from shardpass.ir.annotations import (
    BARRIER,
    CONFLICT,
    CONSTRAINT,
    REPLICATED,
    SAID,
    SHARDING,
    TO_FULL,
    TO_SHARD,
    Signature,
    custom_call_target,
    get_text,
    priorities,
    text,
    unspecified_dims,
)
from shardpass.ir.locations import place_of
from shardpass.ir.tensors import is_ranked, shape_of
from shardpass.ops.splits.factors import DimAxes
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.registry import register
from shardpass.program.program import Block, Node, Program, tensor_bytes
from shardpass.propagation.engine import Propagation, Step, Value, border, describe, tie
from shardpass.sharding import Sharding, parse_sharding

STILL = {"FORWARD": {0}, "BACKWARD": {1}}  # of a barrier's operand and result, what it leaves as it is


@register
@dataclass(frozen=True)
class Propagate(ModulePass):
    """Gives every tensor of ``main`` a sharding, from those that the user fixed.

    Shardings move through ops both ways, along the dimensions that an op's rule ties together; see
    ``shardpass/propagation/engine.py`` for the rounds and how conflicts are settled. What the user fixed is unchanged.

    Options:
        verbose: print each factor for which values of one op hold different splits, on stderr: which split won, with
            the bytes of the values that hold it (two factors that contend for one axis are not printed)
        trace: print each change on stderr: the op, and which of its values was split further over which axes

    Input:

        module attributes {mhlo.num_partitions = 2 : i32, shardpass.mesh = "mesh['x'=2]"} {
          func.func @main(%x: tensor<8x4xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) -> tensor<4x8xf32> {
            %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
            return %0 : tensor<4x8xf32>
          }
        }

    Output:

        module attributes {mhlo.num_partitions = 2 : i32, shardpass.mesh = "mesh['x'=2]"} {
          func.func @main(%x: tensor<8x4xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) -> (tensor<4x8xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"}) {
            %0 = stablehlo.transpose %x, dims = [1, 0] {mhlo.sharding = "{devices=[1,2]<=[2]}"} : (tensor<8x4xf32>) -> tensor<4x8xf32>
            return %0 : tensor<4x8xf32>
          }
        }
    """  # noqa: E501  IR is not wrapped

    name = "shardpass-propagate"
    summary = "a sharding for every value, from those that the user fixed"

    verbose: bool = False
    trace: bool = False

    def run(self, module: Any) -> None:
        work = _Work(Program(module, "propagate"))
        work.engine.run()
        work.write()
        for line in (*(work.trace() if self.trace else ()), *(work.conflicts() if self.verbose else ())):
            print(line, file=sys.stderr)


class _Work:
    """The module on one side, the engine's values and steps on the other."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.engine = Propagation(program.mesh)
        self.index: dict[Any, int] = {}
        self.said: dict[int, Sharding] = {}  # alien shardings: an order of their own, maximal
        self.meshes: list[PrimeMesh] = []  # of each value of the engine
        self.groups: dict[tuple[str, int], int] = {}
        self.signature = Signature(program.main)
        self._arguments()
        self._block(program.body)
        self._results()

    def _value(
        self,
        value: Any,
        sharding: Sharding | None,
        attributes: Any = (),
        *,
        mesh: PrimeMesh | None = None,
        even: bool = False,
    ) -> int:
        """A value of the engine for ``value``; ``sharding`` and ``attributes`` are the user's word.

        ``mesh``: as ops of the value's region see it.
        """
        mesh = mesh or self.program.mesh
        shape = shape_of(value)
        dims: DimAxes | None = ((),) * len(shape)
        if sharding is not None and not sharding.is_unknown:
            dims = mesh.dims(sharding, len(shape))
        known = Value(shape, tensor_bytes(value.type), dims or ((),) * len(shape), even=even)
        known.fixed = sharding is not None and not sharding.is_unknown
        known.barred = frozenset(mesh.manual)
        if dims is not None and known.fixed:
            known.open_dims = frozenset(unspecified_dims(attributes))
            known.barred |= self._barred(attributes, mesh)
            self._by_priority(known, priorities(attributes))
        index = self.engine.add_value(known)
        self.meshes.append(mesh)
        if sharding is not None and sharding.notes.group is not None:
            self._join_group(sharding.notes.group, index)
        if dims is None and sharding is not None:
            self.said[index] = sharding
        return index

    def _barred(self, attributes: Any, mesh: PrimeMesh) -> frozenset[int]:
        """The sub-axes that must not split the value further; all, where the mesh cannot say which."""
        if REPLICATED not in attributes:
            return frozenset()
        said = parse_sharding(text(attributes[REPLICATED]))
        numbers = mesh.dims(said, 1) if isinstance(said, Sharding) else None
        return frozenset(range(len(mesh.sizes)) if numbers is None else numbers[0])

    def _by_priority(self, known: Value, given: tuple[int, ...]) -> None:
        """Dimensions of a priority above 0 wait for their turn."""
        for dim, priority in enumerate(given):
            if priority and known.dims[dim]:
                known.later.setdefault(priority, {})[dim] = known.dims[dim]
        waiting = {dim for dims in known.later.values() for dim in dims}
        known.dims = tuple(() if dim in waiting else axes for dim, axes in enumerate(known.dims))

    def _join_group(self, group: tuple[str, int], index: int) -> None:
        """The members of a sharding group (shard_as, shard_like) share one sharding."""
        first = self.groups.setdefault(group, index)
        if first != index and self.engine.values[first].shape == self.engine.values[index].shape:
            self._tie(first, index, f"{group[0]} {group[1]}")

    def _arguments(self) -> None:
        for argument, row in zip(self.program.body.arguments, self.signature.arguments, strict=True):
            if is_ranked(argument):
                said = self.program.shardings(row, [argument.type], argument.location)
                self.index[argument] = self._value(argument, said[0] if said else None, row, even=said is None)

    def _block(self, block: Block) -> None:
        for node in block.nodes:
            if not node.manual:
                self._node(node)

    def _node(self, node: Node) -> None:
        op, results = node.op, list(node.op.results)
        said = self.program.shardings(op.attributes, [r.type for r in results], op.location)
        for position, result in enumerate(results):
            if is_ranked(result):
                self.index[result] = self._value(
                    result, said[position] if said else None, op.attributes, mesh=node.mesh
                )
        if node.blocks:
            self._control_flow(node)
            return
        target = custom_call_target(op)
        values = [self.index.get(v) for v in (*op.operands, *results)]
        known = tuple(v for v in values if v is not None)
        if len(known) < len(values):
            return
        if target in (TO_SHARD, TO_FULL):
            self._border(known, target)
        elif target == CONSTRAINT:
            self._constraint(op, known)
        elif node.rule is not None:
            self.engine.add(Step(node.rule, known, op.name, op))

    def _border(self, values: tuple[int, ...], target: str) -> None:
        """What goes into a region, or comes out, is split over the region's free axes alike on both sides.

        Over its manual axes the border says how: what is outside may be split no further over them.
        """
        outer, inner = values if target == TO_SHARD else values[::-1]
        self.engine.values[outer].barred |= frozenset(self.meshes[inner].manual)
        rule = border(self.engine.values[outer].shape, self.engine.values[inner].shape)
        self.engine.add(Step(rule, (outer, inner), target))

    def _constraint(self, op: Any, values: tuple[int, ...]) -> None:
        """Both sides hold the same array, and want one sharding; a barrier lets shardings pass one way, or none."""
        barrier = get_text(op, BARRIER)
        if barrier != "NONE":
            still = frozenset(STILL.get(barrier or "", ()))
            self.engine.add(Step(tie(self.engine.values[values[0]].shape), values, op.name, still=still))

    def _tie(self, one: int, other: int, name: str) -> None:
        """Two values that hold the same array."""
        self.engine.add(Step(tie(self.engine.values[one].shape), (one, other), name))

    def _control_flow(self, node: Node) -> None:
        """Results are tied to what the regions return; of a loop, also to its operands and the regions' arguments."""
        op = node.op
        for block in node.blocks:
            for argument in block.arguments:
                self.index[argument] = self._value(argument, None, mesh=node.mesh)
            self._block(block)
        for position, result in enumerate(op.results):
            same = [block.end.operands[position] for block in node.blocks[node.kind == "while" :]]
            if node.kind == "while":
                same += [op.operands[position], *(block.arguments[position] for block in node.blocks)]
            for value in same:
                if value in self.index:
                    self._tie(self.index[value], self.index[result], op.name)

    def _results(self) -> None:
        self.results: list[int | None] = []
        terminator = self.program.body.end
        for value, row in zip(terminator.operands, self.signature.results, strict=True):
            source = self.index.get(value)
            if source is None:
                self.results.append(None)
                continue
            said = self.program.shardings(row, [value.type], terminator.location)
            result = self._value(value, said[0] if said else None, row, even=said is None)
            self._tie(source, result, "return")
            self.results.append(result)

    def _text(self, index: int) -> str:
        if index in self.said:
            return str(self.said[index])
        return str(self.meshes[index].sharding(self.engine.values[index].dims))

    def write(self) -> None:
        for argument, row in zip(self.program.body.arguments, self.signature.arguments, strict=True):
            if argument in self.index:
                _settle(row, self._text(self.index[argument]))
        for result, row in zip(self.results, self.signature.results, strict=True):
            if result is not None:
                _settle(row, self._text(result))
        self.signature.write()
        self._write_block(self.program.body)
        self._write_conflicts()

    def _write_block(self, block: Block) -> None:
        for node in block.nodes:
            if node.manual:
                continue
            op = node.op
            if any(result in self.index for result in op.results):  # tokens among them are everywhere
                texts = [self._text(self.index[r]) if r in self.index else "{replicated}" for r in op.results]
                joined = texts[0] if len(texts) == 1 else "{" + ", ".join(texts) + "}"
                for name in SAID:
                    if name in op.attributes:
                        del op.attributes[name]
                op.attributes[SHARDING] = ir.StringAttr.get(joined)
            for inner in node.blocks:
                self._write_block(inner)

    def conflicts(self) -> list[str]:
        """For people: each op where two splits disagreed, which won, and why."""
        return [f"{self._where(c.step)}: {describe(c, self.program.mesh)}" for c in self.engine.conflicts.values()]

    def trace(self) -> list[str]:
        """For people: every step of propagation, in order."""
        mesh = self.program.mesh
        lines = []
        for event in self.engine.events:
            operands = len(self.engine.steps[event.step].rule.operands)
            inside = event.position < operands
            which = f"operand {event.position}" if inside else f"result {event.position - operands}"
            before, after = (
                "[" + ", ".join("{" + mesh.names(axes) + "}" for axes in dims) + "]"
                for dims in (event.before, event.after)
            )
            lines.append(f"{self._where(event.step)}: {which}: {before} -> {after}")
        return lines

    def _where(self, step: int) -> str:
        found = self.engine.steps[step]
        place = "" if found.op is None else str(place_of(found.op.location)) + ": "
        return place + found.name

    def _write_conflicts(self) -> None:
        for conflict in self.engine.conflicts.values():
            op = self.engine.steps[conflict.step].op
            if op is not None:
                op.attributes[CONFLICT] = ir.StringAttr.get(describe(conflict, self.program.mesh))


def _settle(row: dict[str, Any], sharding: str) -> None:
    """An argument's or result's attributes: what the user said has become ``sharding``."""
    for name in SAID:
        row.pop(name, None)
    row[SHARDING] = ir.StringAttr.get(sharding)
