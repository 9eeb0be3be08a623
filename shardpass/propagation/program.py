"""Translates a program for the engine: values with their annotations, and steps that tie their dimensions together.

A step is made of

1. an op with a model: its rule;
2. a constraint: both sides hold one array; a barrier lets shardings pass one way, or none;
3. the border of a manual region: what is outside is (manual part, region's dimension) on each dimension, and split over
   the region's free axes alike on both sides; over its manual axes the border says how, and nothing splits them
   further;
4. control flow: results are tied to what the regions return, of a loop also to its operands and the regions' arguments;
5. a result of main: tied to what is returned, as its annotation is a value of its own;
6. the members of a sharding group (shard_as, shard_like, sdy.sharding_group), tied to the first.

Ops that are computed whole tie nothing. Cost: one walk, O(values + ops).
"""

from __future__ import annotations

from collections.abc import Mapping

from shardpass.ops.splits.factors import DimAxes, Rule, pair_rules
from shardpass.ops.splits.prime_mesh import PrimeMesh, prime_mesh
from shardpass.program.program import NO_ANNOTATION, Block, Op, OpKind, Program, ValueAnnotation
from shardpass.program.shardings import Shardings
from shardpass.propagation.engine import Propagation, Step, Value, border, describe, tie
from shardpass.sharding import Sharding

# Of a barrier's operand and result, the one that it leaves as it is.
FROZEN = {"FORWARD": frozenset({0}), "BACKWARD": frozenset({1}), "": frozenset[int]()}


class Propagated:
    """Propagates ``program``: ``engine`` has the trace and the conflicts, ``shardings`` the table.

    Several ops of a folded program (``planning.fold``) may define one value; the first opens it.
    """

    def __init__(self, program: Program, barriers: Mapping[int, str]) -> None:
        self.program = program
        self.barriers = barriers  # by op: FORWARD, BACKWARD or NONE
        self.engine = Propagation(program.mesh)
        self.index: dict[int, int] = {}  # value -> value of the engine
        self.own: dict[int, Sharding] = {}  # by the engine's value: shardings that the mesh cannot say
        self.meshes: list[PrimeMesh] = []  # of each value of the engine
        self.groups: dict[tuple[str, int], list[int]] = {}  # values of the engine that are sharded alike
        for value in program.body.arguments:
            self._open(value, program.mesh, even=True)
        self._block(program.body)
        self.results = self._results()
        self.engine.run()
        self.shardings = self.table()

    # ---------------------------------------------------------------- values

    def _open(self, value: int, mesh: PrimeMesh, *, even: bool = False) -> None:
        """Add a value for ``value`` to the engine. ``even``: an argument or result of main, without annotation."""
        array = self.program.arrays[value]
        if array is not None:
            annotation = self.program.annotations.get(value, NO_ANNOTATION)
            even = even and annotation.sharding is None
            self.index[value] = self._value(array.shape, array.bytes, annotation, mesh, even)

    def _value(
        self, shape: tuple[int, ...], size: int, annotation: ValueAnnotation, mesh: PrimeMesh, even: bool
    ) -> int:
        sharding = annotation.sharding
        dims: DimAxes | None = ((),) * len(shape)
        fixed = sharding is not None and not sharding.is_unknown
        if sharding is not None and fixed:
            dims = mesh.dims(sharding, len(shape))
        known = Value(shape, size, dims or ((),) * len(shape), divisible_only=even)
        known.fixed = fixed
        known.replicated_axes = frozenset(mesh.manual)
        if dims is not None and fixed:
            known.open_dims = frozenset(annotation.open_dims)
            known.replicated_axes |= _replicated_axes(annotation.replicated_along, mesh)
            _wait_for_turn(known, annotation.priorities)
        index = self.engine.add_value(known)
        self.meshes.append(mesh)
        if sharding is not None:
            if sharding.notes.group is not None:
                self._join_group(sharding.notes.group, index)
            if dims is None:
                self.own[index] = sharding
        return index

    def _join_group(self, group: tuple[str, int], index: int) -> None:
        members = self.groups.setdefault(group, [])
        if not members or self.engine.values[members[0]].shape == self.engine.values[index].shape:
            members.append(index)
        if members[0] != index == members[-1]:
            self._tie(members[0], index, f"{group[0]} {group[1]}")

    # ---------------------------------------------------------------- steps

    def _block(self, block: Block) -> None:
        for op in block.ops:
            if not op.is_manual:
                self._op(op)

    def _op(self, op: Op) -> None:
        for value in op.results:
            if value not in self.index:
                self._open(value, op.mesh)
        if op.kind is OpKind.CONTROL_FLOW:
            self._control_flow(op)
            return
        if op.kind is OpKind.WHOLE:
            return
        index = self.index
        values = tuple([index[v] for v in (*op.operands, *op.results) if v in index])
        if len(values) < len(op.operands) + len(op.results):
            return
        if op.kind is OpKind.SPLIT:
            assert op.model is not None
            self._step(op, op.model.rule, values)
        elif op.kind is OpKind.CONSTRAINT:
            self._constraint(op, values)
        else:
            self._border(op, values)

    def _step(self, op: Op, rule: Rule, values: tuple[int, ...]) -> None:
        if not rule.independent:
            self.engine.add(Step(rule, values, op.name, op.number))
            return
        for index, (one, _) in enumerate(pair_rules(rule)):  # operands that have nothing to do with one another
            pair = (values[index], values[index + len(rule.operands)])
            self.engine.add(Step(one, pair, op.name, op.number))

    def _border(self, op: Op, values: tuple[int, ...]) -> None:
        outer, inner = values if op.kind is OpKind.ENTER_REGION else values[::-1]
        known = self.engine.values
        known[outer].replicated_axes |= frozenset(self.meshes[inner].manual)
        self.engine.add(Step(border(known[outer].shape, known[inner].shape), (outer, inner), op.target))

    def _constraint(self, op: Op, values: tuple[int, ...]) -> None:
        barrier = self.barriers.get(op.number, "")
        if barrier != "NONE":
            rule = tie(self.engine.values[values[0]].shape)
            self.engine.add(Step(rule, values, op.name, frozen=FROZEN.get(barrier, frozenset())))

    def _tie(self, one: int, other: int, name: str) -> None:
        """Tie two values that hold the same array."""
        self.engine.add(Step(tie(self.engine.values[one].shape), (one, other), name))

    def _control_flow(self, op: Op) -> None:
        for block in op.blocks:
            for argument in block.arguments:
                self._open(argument, op.mesh)
            self._block(block)
        for position, result in enumerate(op.results):
            same = [block.returned[position] for block in op.blocks[op.is_loop :]]
            if op.is_loop:
                same += [op.operands[position], *(block.arguments[position] for block in op.blocks)]
            for value in same:
                if value in self.index:
                    self._tie(self.index[value], self.index[result], op.name)

    def _results(self) -> list[int | None]:
        out: list[int | None] = []
        for value, annotation in zip(self.program.body.returned, self.program.result_annotations, strict=True):
            source, array = self.index.get(value), self.program.arrays[value]
            if source is None or array is None:
                out.append(None)
                continue
            result = self._value(array.shape, array.bytes, annotation, self.program.mesh, annotation.sharding is None)
            self._tie(source, result, "return")
            out.append(result)
        return out

    # ---------------------------------------------------------------- results

    def table(self) -> Shardings:
        """Return the current shardings of all values, and how conflicts were decided."""
        present = self.present()
        conflicts = {
            step.op: describe(conflict, self.program.mesh)
            for conflict in self.engine.conflicts.values()
            if (step := self.engine.steps[conflict.step]).op is not None
        }
        return Shardings(present.of, present.results, conflicts)

    def present(self) -> Shardings:
        """Return the current shardings of all values, without conflicts."""
        return Shardings({value: self.sharding(index) for value, index in self.index.items()}, self.result_shardings())

    def result_shardings(self) -> tuple[Sharding | None, ...]:
        """Return the current shardings of main's results."""
        return tuple([None if index is None else self.sharding(index) for index in self.results])

    def sharding(self, index: int) -> Sharding:
        """Return the current sharding of a value of the engine."""
        own = self.own.get(index)
        return self.meshes[index].sharding(self.engine.values[index].dims) if own is None else own


def _replicated_axes(replicated_along: Sharding | None, mesh: PrimeMesh) -> frozenset[int]:
    """Return the sub-axes that must not split a value further; all, if the mesh cannot express them.

    The text names them as of the whole mesh, in a manual region too.
    """
    if replicated_along is None:
        return frozenset()
    numbers = prime_mesh(mesh.mesh).dims(replicated_along, 1)
    return frozenset(range(len(mesh.sizes)) if numbers is None else numbers[0])


def _wait_for_turn(known: Value, given: tuple[int, ...]) -> None:
    """Remove the splits of dimensions with a priority above 0 until the round of that priority."""
    for dim, priority in enumerate(given):
        if priority and (known.dims[dim] or dim in known.open_dims):
            known.by_priority.setdefault(priority, {})[dim] = known.dims[dim]
    waiting = {dim for dims in known.by_priority.values() for dim in dims}
    known.dims = tuple(() if dim in waiting else axes for dim, axes in enumerate(known.dims))
