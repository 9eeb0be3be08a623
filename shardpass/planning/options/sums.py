"""Follow partial sums through a plan: which operands each op reads as partial sums, and which axes its result stays
partial over.

The decision says of a value that it waits over some axes (``Shardings.partial``), and of the ops around how they are
split. A plan believes that only where each of the value's users takes it as it lies: linear in it, split as the value
is, not split over the axes, and beside no value that is partial over others. Otherwise the op that makes the value
completes it, so that any text gives a right program.

Example on x=4: ``add(dot(a, w), dot(b, v))`` where both dots wait over x. The first is planned with ``Sums(later=x)``,
the addition with ``Sums(over=x)``, and completes what it adds.

State: the values that wait in the plan so far, which are known before an op that takes them.
"""

from __future__ import annotations

from dataclasses import dataclass

from shardpass.ops.splits.assign import Side, complete
from shardpass.ops.splits.factors import Axes, DimAxes, unproject
from shardpass.ops.splits.partial import partial_axes
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.planning.options.linear import Waiting, makes_sums, waiting
from shardpass.program.program import Op, Program
from shardpass.program.shardings import Shardings
from shardpass.sharding import Sharding


@dataclass(frozen=True, slots=True)
class Sums:
    """The partial sums at one op: some operands are partial over the axes ``over``, and the result stays so
    over ``later``.
    """

    over: Axes = ()
    later: Axes = ()

    def completed(self, own: Axes) -> Axes:
        """Return the axes over which the op completes its result. ``own``: the axes of a contraction that the op
        splits itself.
        """
        return tuple([axis for axis in (*self.over, *own) if axis not in self.later])

    def made(self, dims: DimAxes, mesh: PrimeMesh) -> Sharding:
        """Return the sharding of a result that is split as ``dims``, partial over ``later``."""
        return mesh.partial(dims, self.later) if self.later else mesh.sharding(dims)


NO_SUMS = Sums()


class Summands:
    """Track which values of a plan are partial sums."""

    def __init__(self, program: Program, shardings: Shardings) -> None:
        self.program, self.shardings = program, shardings
        self.over: dict[int, Axes] = {}  # of the plan so far
        self.users: dict[int, list[Op]] = {}
        self.waiting = waiting(program, program.pinned) if shardings.partial else Waiting(frozenset(), {})
        for op in program.body.every_op() if shardings.partial else ():
            for value in {*op.operands} & shardings.partial.keys():
                self.users.setdefault(value, []).append(op)

    def at(self, op: Op) -> Sums:
        """Return the partial sums at ``op`` and record those of its result. Its operands must be planned."""
        if not self.shardings.partial:
            return NO_SUMS
        places = self.waiting.places.get(op.number, ())
        over = next((axes for place in places if (axes := self.over.get(op.operands[place]))), ())
        later = self._later(op, over)
        for value in op.results:
            self.over.pop(value, None)  # in a folded program another op may make it too
            if later:
                self.over[value] = later
        return Sums(over, later)

    def is_summand(self, op: Op, place: int) -> bool:
        """Return whether ``op`` may take operand ``place`` as a partial sum."""
        return place in self.waiting.places.get(op.number, ())

    def _later(self, op: Op, over: Axes) -> Axes:
        """Return the axes over which the result of ``op`` stays partial; () if one of its users needs it complete."""
        value = op.results[0] if len(op.results) == 1 else -1
        axes, way = self.shardings.partial.get(value, ()), self.shardings.ways.get(op.number)
        if not axes or value not in self.waiting.values or op.model is None or way is None:
            return ()
        rule, split, array = op.model.rule, dict(way), self.program.array(value)
        left = makes_sums(op, self.program)
        own = partial_axes(rule, [split.get(f, ()) for f in range(len(rule.factors))]) if left else ()
        wanted = op.mesh.dims(self.shardings.of[value], array.rank)
        if not {*axes} <= {*over, *own} or wanted is None:
            return ()
        made = unproject(rule, rule.results[0], array.shape, split, op.mesh.sizes)
        side = Side(array.shape, rule.results[0], wanted, array.element)
        reached, _ = complete(side, made, Sums(over, axes).completed(own), "add", op.mesh)
        agrees = reached == wanted and all(self._agrees(one, value, axes, wanted) for one in self.users.get(value, ()))
        return axes if agrees else ()

    def _agrees(self, user: Op, value: int, axes: Axes, dims: DimAxes) -> bool:
        """Return whether ``user`` takes ``value`` as the partial sum it is, without a reshard."""
        places = self.waiting.places.get(user.number, ())
        way = self.shardings.ways.get(user.number)
        if user.model is None or way is None:
            return False
        split, rule = dict(way), user.model.rule
        if any(axis in axes for one in split.values() for axis in one):
            return False
        for place, operand in enumerate(user.operands):
            if operand == value:
                split_of_user = unproject(
                    rule, rule.operands[place], self.program.array(value).shape, split, user.mesh.sizes
                )
                if place not in places or split_of_user != dims:
                    return False
            elif self.shardings.partial.get(operand, axes) != axes:
                return False
        return True
