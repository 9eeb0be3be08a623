"""Where a program can be pinned, and to what: the decision of shardpass, by ops of the module that JAX lowered.

Problem: what is decided belongs to the imported program, whose calls are inlined and some of whose ops are written
out in others. A constraint is to be put into the module as JAX lowered it, which XLA knows best.

Method. Ops of a copy are marked (``places.marks``). The copy is imported, decided and planned. Of each planned op that
is still the marked one (the same name and types) the plan says how it takes its operands and leaves its results; these
are the points:

1. ``argument``: of main, where the module says nothing;
2. ``operand``: where the plan brings an operand to another sharding than its own for this op;
3. ``result``: what the op makes is left in. An op that works element by element and keeps an operand's sharding has
   none, unless a user takes the result in another sharding: XLA would propagate the user's constraint to the op, and
   then to the op's other users.

A function that is called several times is one text: where its calls are decided differently there is no point, and
neither where whole axes of the mesh cannot say a sharding evenly, as JAX has no word for that. Scalars have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir

from shardpass.advise.place.marks import marked_ops, without_marks
from shardpass.advise.place.specs import Spec, full_text
from shardpass.advise.place.write import Writer
from shardpass.diagnostics import Place, collect
from shardpass.ir.annotations import NUM_PARTITIONS, SHARDING, Signature, main_of, set_num_devices
from shardpass.ir.context import copy_module
from shardpass.ir.frames import user_place
from shardpass.ir.machines import machine_of
from shardpass.ir.tensors import operation
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.partition.splices import spliced_table
from shardpass.pipeline.run import run_in_place
from shardpass.planning.plan.plan import ProgramPlan
from shardpass.planning.plan.planner import plan_program
from shardpass.planning.price.steps import BlockPlan, ControlFlowPlan, SplitPlan
from shardpass.program.program import Program
from shardpass.report.naming import Names, Sources
from shardpass.sharding import Mesh, Sharding

ARGUMENT, OPERAND, RESULT = "argument", "operand", "result"
COSTLY = frozenset(
    f"stablehlo.{name}"
    for name in ("dot_general", "dot", "convolution", "gather", "scatter", "while", "case", "if", "sort", "fft",
                 "triangular_solve", "cholesky", "reduce", "reduce_window", "select_and_scatter", "ragged_dot")
)  # fmt: skip
_LEFT_OUT = frozenset({"stablehlo.constant", "stablehlo.iota"})


@dataclass(frozen=True, order=True)
class Spot:
    """An operand or result in the module as JAX lowered it. ``op``: its number there, -1 for main's arguments."""

    op: int
    side: str
    place: int


@dataclass(frozen=True)
class Point:
    """A place to pin, with the sharding decided there.

    ``called``: the op's name; ``name``: the value's name in the user's text; ``bytes``: of the whole array.
    """

    spot: Spot
    spec: Spec
    called: str
    name: str
    bytes: int
    backward: bool
    at: Place

    @property
    def spec_text(self) -> str:
        """Returns the spec as JAX's text, ``P('data', None)``."""
        return full_text(self.spec)


@dataclass(frozen=True)
class Decided:
    """The points of a module over ``mesh``, with the plan from which they come."""

    mesh: Mesh
    points: tuple[Point, ...]
    plan: ProgramPlan


def pinned_module(module: Any, mesh: Mesh, points: Iterable[Point]) -> Any:
    """Return a copy of ``module`` with a constraint at each of ``points``, over axes of ``mesh``."""
    copy = copy_module(module)
    with copy.context, ir.Location.unknown():
        if NUM_PARTITIONS not in copy.operation.attributes:
            set_num_devices(copy, mesh.size)
        writer = Writer(copy, mesh)
        arguments = operation(main_of(copy)).regions[0].blocks[0].arguments
        for point in sorted(points, key=lambda point: (point.spot.side == OPERAND, point.spot)):
            spot, sharding = point.spot, Sharding.tiled(mesh, point.spec)
            if spot.side == OPERAND:  # after all definitions, to which operands refer
                writer.operand(spot.op, spot.place, sharding)
            else:
                values = arguments if spot.side == ARGUMENT else writer.ops[spot.op].results
                writer.constrain(values[spot.place], sharding)
    return copy


def decided(module: Any, pipeline: str = "propagate") -> Decided:
    """Plan a copy of ``module`` and return the points of the plan. ``pipeline``: imports and decides.

    Raises ShardpassError as the pipeline does.
    """
    copy = copy_module(module)
    kinds = {}
    with copy.context:
        for number, op in marked_ops(copy):
            kinds[number] = op.name, [value.type for value in op.operands], [value.type for value in op.results]
        rows = enumerate(Signature(main_of(copy)).arguments)
        open_arguments = {place for place, row in rows if not {SHARDING, "sdy.sharding"} & row.keys()}
        with collect():
            run_in_place(copy, pipeline)
            table = spliced_table(copy)
            plan = plan_program(table.program, table.all_shardings(), machine=machine_of(copy))
        points = _Points(plan, table.program, table.handles, table.all_shardings(), kinds, open_arguments)
        mesh = table.program.mesh.mesh
        return Decided(mesh, points.all() if mesh.size > 1 else (), plan)


class _Points:
    """Collects the points of a plan. State: the point of each spot; None if copies of the spot are decided
    differently.
    """

    def __init__(
        self, plan: ProgramPlan, program: Program, handles: Any, shardings: Any, kinds: Any, open_arguments: Any
    ) -> None:
        self.plan, self.program, self.handles, self.shardings = plan, program, handles, shardings
        self.kinds, self.open_arguments = kinds, open_arguments
        self.numbers, texts = without_marks(handles.ops)
        arguments = [str(argument.location) for argument in handles.arguments[None]]
        self.names = Names(program, texts, arguments, Sources())
        self.known: dict[Spot, Point | None] = {}
        self.moved: set[int] = set()  # values that a user takes in another sharding than their own

    def all(self) -> tuple[Point, ...]:
        for place, (value, sharding) in enumerate(self.plan.body.arguments):
            if place in self.open_arguments:
                at = user_place(self.handles.arguments[None][place].location)
                self._add(Spot(-1, ARGUMENT, place), value, sharding, self.program.mesh, ARGUMENT, at)
        every = list(_planned(self.plan.body))
        for planned in every:
            uses = zip(planned.op.operands, planned.operands, strict=True)
            self.moved.update(v for v, use in uses if use.copy.sharding != self.shardings.of.get(v))
        for planned in every:
            self._op(planned)
        return tuple(sorted(filter(None, self.known.values()), key=lambda point: point.spot))

    def _op(self, planned: SplitPlan | ControlFlowPlan) -> None:
        op = planned.op
        number = self.numbers.get(op.number)
        if number is None or op.mesh.manual or op.name in _LEFT_OUT:
            return
        types = [self.handles.types[v] for v in op.operands], [self.handles.types[v] for v in op.results]
        if self.kinds.get(number) != (op.name, *types):
            return
        about = op.mesh, op.called, self.names.frame(op).place, self.names.is_backward(op)
        for place, value in enumerate(op.operands):
            copy = planned.operands[place].copy
            if copy.sharding != self.shardings.of.get(value):
                self._add(Spot(number, OPERAND, place), value, copy.sharding, *about)
        for place, value in enumerate(op.results):
            wanted = self._left(planned, place)
            if wanted is not None and (value in self.moved or not self._follows(planned, value, wanted)):
                self._add(Spot(number, RESULT, place), value, wanted, *about)

    def _follows(self, planned: SplitPlan | ControlFlowPlan, value: int, wanted: Sharding) -> bool:
        """Return whether an elementwise result keeps the sharding in which the op uses an operand of its shape."""
        if isinstance(planned, ControlFlowPlan) or planned.op.called in COSTLY:
            return False
        array = self.program.arrays[value]
        return any(
            (other := self.program.arrays[operand]) is not None
            and array is not None
            and other.shape == array.shape
            and use.copy.sharding == wanted
            for operand, use in zip(planned.op.operands, planned.operands, strict=True)
        )

    @staticmethod
    def _left(planned: SplitPlan | ControlFlowPlan, place: int) -> Sharding | None:
        if isinstance(planned, ControlFlowPlan):
            return planned.shardings[place]
        result = planned.results[place]
        return None if result is None else result.wanted

    def _add(
        self, spot: Spot, value: int, sharding: Sharding, mesh: PrimeMesh, called: str, at: Place,
        backward: bool = False,
    ) -> None:  # fmt: skip
        array = self.program.arrays[value]
        if array is None or not array.rank:
            return
        dims = mesh.dims(sharding, array.rank)
        spec = point = None
        if dims is not None and not any(size % mesh.count(axes) for axes, size in zip(dims, array.shape, strict=True)):
            spec = mesh.whole_axes(dims)  # None where these do not express it
        if spec is not None:
            point = Point(spot, spec, called, self.names.of(value), array.bytes, backward, at)
        before = self.known.get(spot, point)
        is_same = before is not None and point is not None and before.spec == point.spec
        self.known[spot] = point if is_same else None


def _planned(block: BlockPlan) -> Iterator[SplitPlan | ControlFlowPlan]:
    """Yield the planned ops of a block, and those inside of each."""
    for planned in block.ops:
        if isinstance(planned, SplitPlan | ControlFlowPlan):
            yield planned
        if isinstance(planned, ControlFlowPlan):
            for inner in planned.blocks:
                yield from _planned(inner)
