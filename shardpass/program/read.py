"""Read a module into a ``Program``, in one walk over ``main``.

``Handles`` keeps MLIR's objects under the numbers that the program gives them. Cost: O(ops + operands + results), a few
microseconds an op; models are shared by equal ops (``models``).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics import ShardpassError
from shardpass.diagnostics.table_passes import NO_MESH, SCOPE_OFF_MESH
from shardpass.element_types import element_type
from shardpass.ir.annotations import (
    CONSTRAINT,
    CONSTRAINTS,
    FIT,
    FREE,
    MANUAL,
    MESH,
    ONCE,
    ORDER,
    PINNED,
    PRIORITIES,
    REPLICATED,
    SCOPE,
    SHARDING,
    TO_FULL,
    TO_SHARD,
    UNSPECIFIED,
    Signature,
    custom_call_target,
    get_text,
    main_of,
    mesh_of,
    priorities,
    text,
    unspecified_dims,
)
from shardpass.ir.donation import donated
from shardpass.ir.effects import may_be_erased
from shardpass.ir.locations import place_of
from shardpass.ir.tensors import ints
from shardpass.ir.trip_counts import trip_count
from shardpass.ir.walk import CONTROL_FLOW, inputs_of
from shardpass.ops.model import OpModel
from shardpass.ops.registry import OpDef, find
from shardpass.ops.splits.prime_mesh import PrimeMesh, prime_mesh
from shardpass.program.models import Models
from shardpass.program.program import (
    NO_ANNOTATION,
    Array,
    Block,
    Op,
    OpKind,
    Program,
    ValueAnnotation,
    array_of,
    constraints_of,
)
from shardpass.program.validate import read_for
from shardpass.sharding import Sharding, parse_sharding

BORDERS = {CONSTRAINT: OpKind.CONSTRAINT, TO_SHARD: OpKind.ENTER_REGION, TO_FULL: OpKind.LEAVE_REGION}
# Erased where nothing uses them, though other passes leave them: all devices leave out the same ones.
ALSO_ERASED = frozenset({"stablehlo.rng", "stablehlo.partition_id"})


@dataclass
class Handles:
    """MLIR's objects by the program's numbers. ``ends``: the terminator of each block, by the number of its first op's
    holder and its place there: ``ends[None]`` of main, ``ends[op number, region]`` of control flow."""

    module: Any
    main: Any
    signature: Signature
    ops: list[Any] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    types: list[Any] = field(default_factory=list)  # of the whole arrays, as they were read
    ends: dict[tuple[int, int] | None, Any] = field(default_factory=dict)
    arguments: dict[tuple[int, int] | None, list[Any]] = field(default_factory=dict)


def read_program(module: Any, pipeline: str) -> tuple[Program, Handles]:
    """Read the program of ``module``'s main, and the MLIR objects behind its numbers.

    Raises ShardpassError: SP201 without @main, SP214 for a module that was not imported; ``pipeline`` is the named
    pipeline that would have done it.
    """
    main = main_of(module)
    mesh = mesh_of(module)
    if mesh is None:
        raise NO_MESH.error(place_of(main.location), attribute=MESH, pipeline=pipeline)
    return _Reader(module, main, prime_mesh(mesh)).read()


class _Reader:
    def __init__(self, module: Any, main: Any, mesh: PrimeMesh) -> None:
        self.mesh = mesh
        self.handles = Handles(module, main, Signature(main))
        self.number: dict[Any, int] = {}
        self.arrays: list[Array | None] = []
        self.types: dict[Any, Array | None] = {}
        self.annotations: dict[int, ValueAnnotation] = {}
        self.pinned: list[int] = []
        self.models = Models()
        self.scopes: dict[Any, PrimeMesh] = {}
        self.texts: dict[tuple[Any, int], list[Sharding]] = {}
        self.unnumbered = -1  # the last number of an op that has no handle

    def read(self) -> tuple[Program, Handles]:
        block = self.handles.main.regions[0].blocks[0]
        for argument, row in zip(block.arguments, self.handles.signature.arguments, strict=True):
            value = self._value(argument)
            if SHARDING in row:
                self.annotations[value] = self._annotation(row, argument.type, argument.location)
        body = self._block(block, self.mesh, None, [self.number[a] for a in block.arguments])
        end = self.handles.ends[None]
        results = tuple(
            self._annotation(row, value.type, end.location) if SHARDING in row else NO_ANNOTATION
            for value, row in zip(end.operands, self.handles.signature.results, strict=True)
        )
        arrays, count = tuple(self.arrays), len(self.handles.ops)
        given, made = ([self._bytes(value) for value in side] for side in (body.arguments, body.returned))
        lent = tuple(donated(self.handles.signature, given, made))
        program = Program(
            self.mesh, arrays, body, self.annotations, results, count, frozenset(self.pinned), donated=lent
        )
        module = self.handles.module.operation
        limit = get_text(module, FIT) or ""
        if limit.isdecimal():
            program = replace(program, memory=int(limit))
        if get_text(module, CONSTRAINTS) == FREE:
            program = replace(program, pinned=frozenset(), wishes=constraints_of(program))
        return program, self.handles

    # ---------------------------------------------------------------- values

    def _bytes(self, value: int) -> int:
        array = self.arrays[value]
        return 0 if array is None else array.bytes

    def _value(self, value: Any) -> int:
        number = self.number[value] = len(self.arrays)
        kind = value.type
        if kind not in self.types:
            self.types[kind] = _array(kind)
        self.arrays.append(self.types[kind])
        self.handles.values.append(value)
        self.handles.types.append(kind)
        return number

    def _annotation(self, attributes: Any, kind: Any, location: Any, place: int = 0, of: int = 1) -> ValueAnnotation:
        """Read the annotation in ``attributes`` of the value at ``place`` of ``of``."""
        attribute = attributes[SHARDING]
        shardings = self.texts.get((attribute, of))
        if shardings is None:
            shardings = read_for(text(attribute), [kind] * of, place_of(location))
            self.texts[attribute, of] = shardings
        return ValueAnnotation(
            shardings[place],
            unspecified_dims(attributes) if UNSPECIFIED in attributes else (),
            priorities(attributes) if PRIORITIES in attributes else (),
            _vector(attributes) if REPLICATED in attributes else None,
        )

    # ---------------------------------------------------------------- blocks and ops

    def _block(self, block: Any, mesh: PrimeMesh, key: tuple[int, int] | None, arguments: list[int]) -> Block:
        *ops, end = [op.operation for op in block.operations]
        self.handles.ends[key] = end
        self.handles.arguments[key] = list(block.arguments)
        made = tuple([self._op(op, mesh) for op in ops])
        return Block(tuple(arguments), made, tuple([self._used(value) for value in end.operands]))

    def _used(self, value: Any) -> int:
        """Return the number of a used value; ops of regions that are not read define values unseen."""
        number = self.number.get(value)
        return self._value(value) if number is None else number

    def _op(self, op: Any, around: PrimeMesh) -> Op:
        number = len(self.handles.ops)
        self.handles.ops.append(op)
        name = op.name
        attributes = op.attributes
        operands = tuple([self._used(value) for value in op.operands])
        op_results = list(op.results)
        target = custom_call_target(op) if name == "stablehlo.custom_call" else ""
        annotated = SHARDING in attributes
        if annotated and text(attributes[SHARDING]) == MANUAL:
            if target != TO_SHARD:
                return self._untouched(op, number, around)
            results = tuple([self._value(result) for result in op_results])
            return Op(number, name, OpKind.ENTER_MANUAL, operands, results, around, target=target, pure=False)
        mesh = self._scope(attributes, op) if SCOPE in attributes else around
        results = tuple([self._value(result) for result in op_results])
        if annotated:
            for place, value in enumerate(results):
                if self.arrays[value] is not None:
                    self.annotations[value] = self._annotation(
                        attributes, op_results[place].type, op.location, place, len(results)
                    )
        if PINNED in attributes:
            self.pinned += results
        if target in BORDERS:
            return Op(number, name, BORDERS[target], operands, results, mesh, target=target)
        ranked = None not in map(self.arrays.__getitem__, (*operands, *results))
        if name in CONTROL_FLOW and ranked:
            return self._control_flow(op, number, operands, results, mesh)
        return self._plain(op, number, operands, results, mesh, target, ranked)

    def _untouched(self, op: Any, number: int, mesh: PrimeMesh) -> Op:
        """Read an op of a region that is manual over all axes, and the contents of its control flow."""
        name, values = op.name, (*op.operands, *op.results)
        operands = tuple([self._used(value) for value in op.operands])
        results = tuple([self._value(result) for result in op.results])
        inside = tuple([self._inside(region.blocks[0], mesh) for region in op.regions if name in CONTROL_FLOW])
        entry = find(name)
        ranked = None not in map(self.arrays.__getitem__, (*operands, *results))
        alone = None
        if entry is not None and ranked and not inside:
            with suppress(ShardpassError):  # of a form that no rule covers: in per-device code, nothing is wrong
                alone = self.models.of(op, entry, [value.type for value in values])
        return Op(
            number,
            name,
            OpKind.UNTOUCHED,
            operands,
            results,
            mesh,
            target=custom_call_target(op) if name == "stablehlo.custom_call" else "",
            pure=False,
            trips=trip_count(op) if name == "stablehlo.while" else 1,
            alone=alone,
            inside=inside,
        )

    def _inside(self, block: Any, mesh: PrimeMesh) -> Block:
        arguments = tuple([self._value(argument) for argument in block.arguments])
        *ops, end = [op.operation for op in block.operations]
        made = []
        for op in ops:
            self.unnumbered -= 1
            made.append(self._untouched(op, self.unnumbered, mesh))
        return Block(arguments, tuple(made), tuple([self._used(value) for value in end.operands]))

    def _control_flow(
        self, op: Any, number: int, operands: tuple[int, ...], results: tuple[int, ...], mesh: PrimeMesh
    ) -> Op:
        blocks = []
        for place, region in enumerate(op.regions):
            block = region.blocks[0]
            arguments = [self._value(argument) for argument in block.arguments]
            blocks.append(self._block(block, mesh, (number, place), arguments))
        trips = trip_count(op) if op.name == "stablehlo.while" else 1
        pure = all(inner.pure for block in blocks for inner in block.ops)
        return Op(
            number,
            op.name,
            OpKind.CONTROL_FLOW,
            operands,
            results,
            mesh,
            pure=pure,
            blocks=tuple(blocks),
            trips=trips,
        )

    def _plain(
        self,
        op: Any,
        number: int,
        operands: tuple[int, ...],
        results: tuple[int, ...],
        mesh: PrimeMesh,
        target: str,
        ranked: bool,
    ) -> Op:
        once = ir.IntegerAttr(op.attributes[ONCE]).value if target and ONCE in op.attributes else None
        order = ints(op.attributes[ORDER]) if target and ORDER in op.attributes else ()
        entry = find(op.name) if once is None else None
        captured: tuple[int, ...] = ()
        if len(op.regions):
            outside = inputs_of(op)[len(operands) :]
            captured = tuple(dict.fromkeys(self._used(value) for value in outside))
        pure = may_be_erased(op.name) or op.name in ALSO_ERASED
        model: OpModel[Any] | None = None
        if entry is not None and ranked and not captured:
            types = self.handles.types
            model = self.models.of(op, entry, [types[v] for v in (*operands, *results)])
        if model is not None and entry is not None:
            cheap = entry.cheap
            return Op(number, op.name, OpKind.SPLIT, operands, results, mesh, model, (), "", target, cheap, pure)
        why = _why_whole(entry, ranked, captured, target) if once is None else f"device {once} alone makes this call"
        return Op(
            number,
            op.name,
            OpKind.WHOLE,
            operands,
            results,
            mesh,
            None,
            captured,
            why,
            target,
            pure=pure,
            once=once,
            order=order,
        )

    def _scope(self, attributes: Any, op: Any) -> PrimeMesh:
        """Return the mesh as seen by ops of the region that ``op`` is in."""
        attribute = attributes[SCOPE]
        if attribute not in self.scopes:
            scope = text(attribute)
            sharding = parse_sharding(scope)
            on = sharding.on(self.mesh.mesh) if isinstance(sharding, Sharding) else None
            manual = None if on is None else self.mesh.numbered(on.manual)
            if manual is None:
                raise SCOPE_OFF_MESH.error(place_of(op.location), scope=scope, mesh=self.mesh.mesh)
            self.scopes[attribute] = prime_mesh(self.mesh.mesh, tuple(sorted(manual)))
        return self.scopes[attribute]


def _array(kind: Any) -> Array | None:
    if not isinstance(kind, ir.RankedTensorType):
        return None
    shape = tuple(kind.shape)
    try:
        element = element_type(str(kind.element_type))
    except KeyError:  # index, and other types that no array of a program has
        return None
    return array_of(shape, element)


def _vector(attributes: Any) -> Sharding | None:
    sharding = parse_sharding(text(attributes[REPLICATED]))
    return sharding if isinstance(sharding, Sharding) else None


def _why_whole(entry: OpDef | None, ranked: bool, captured: tuple[int, ...], target: str) -> str:
    """Return the reason, for messages, why each device computes an op whole."""
    if entry is None:
        return "shardpass has no rule for this op"
    if not ranked:
        return "some of its operands or results are not arrays"
    if entry.whole:
        return entry.note
    if captured:
        return "its region uses values that are defined outside of it"
    if target:
        return "no rule says how a call of this target may be split"
    return "its rule does not cover this form of the op"
