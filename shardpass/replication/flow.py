"""Compute which devices agree on each value of ``main``, in program order, with loops to a fixpoint.

Problem. For every value of a manual region, and over all runs: which devices hold the same? Outside of manual regions
values are whole arrays, on which all devices agree.

State. ``facts``: of each value, as of the last visit to its op. ``together``: the devices that are certain to execute
an op together: all of them, but for branches and loops. ``made_by``: value -> its definition, for the reasons.

Cases.

1. An op: ``rules``.
2. The border of a region. In: a value varies as its tiles do, and, in a nested region, as the outer one did. Out: the
   value is a whole array again; over the axes of an outer region it varies as anything in it did.
3. ``case`` and ``if``. The predicate known on each device: a device's result is that of its branch, and devices agree
   that are in one branch and agree there. Not known: they agree where they agree on the predicate and on all branches.
   Inside, together are those who were and who agree on the predicate. Example: in ``cond(axis_index('i') == 0, f, g)``
   a sum over ``j`` is as everywhere, a sum over ``i`` is not to be relied on.
4. ``while``. Before the first trip the carried values agree as the initial ones. Each trip can only make relations
   finer; what is known stays known only if a trip leaves it. Repeated until nothing changes. Devices that disagree on
   the condition may leave after different numbers of trips, so results agree only where the condition did. A loop
   that counts to a known number leaves with what its body returned, whatever it began with. Example: a ``scan`` over
   three sums of ``x`` over ``j`` agrees over ``j``, though ``x`` does not.

Sound: by induction over the trips, devices that agree on all that an op reads compute the same result.

Cost: O(ops) a visit; a loop of n carried values is visited at most n * devices times, in practice two or three.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shardpass.diagnostics import ShardpassError
from shardpass.ir.annotations import MANUAL, SHARDING, TO_FULL, TO_SHARD, custom_call_target, get_text
from shardpass.ir.trip_counts import trip_count
from shardpass.ir.walk import inputs_of, operation
from shardpass.program.manual_regions import marked_scope
from shardpass.replication.agreement import Agreement, Agreements, Ints
from shardpass.replication.rules import Fact, Site, facts_of
from shardpass.sharding import Sharding, parse_sharding
from shardpass.sharding.coordinates import number


@dataclass(frozen=True, slots=True)
class Exit:
    """A value that leaves a manual region, with its declared and its computed agreement."""

    op: Any
    claimed: Agreement
    actual: Agreement


class Flow:
    """The facts of all values of ``main``, an imported function for ``devices`` devices."""

    def __init__(self, main: Any, devices: int) -> None:
        self.all = Agreements(devices)
        self.facts: dict[Any, Fact] = {}
        self.made_by: dict[Any, tuple[Any, int]] = {}  # value -> (op, number of the result)
        self.exits: dict[Any, Exit] = {}
        self._blocks: dict[Any, list[tuple[Any, list[Any], list[Any]]]] = {}
        block = main.regions[0].blocks[0]
        for index, argument in enumerate(block.arguments):
            self._set(argument, Fact(self.all.everywhere), main, index)
        self.block(block, self.all.everywhere)

    def of(self, value: Any) -> Fact:
        return self.facts.get(value) or Fact(self.all.nowhere)

    def block(self, block: Any, together: Agreement) -> list[Fact]:
        """Compute the facts of the ops of ``block``; return the facts of its terminator's operands."""
        ops = self._ops(block)
        for op, _, captured in ops[:-1]:
            for index, (result, fact) in enumerate(zip(op.results, self._results(op, captured, together), strict=True)):
                self._set(result, fact, op, index)
        return [self.of(value) for value in ops[-1][1]] if ops else []

    def _ops(self, block: Any) -> list[tuple[Any, list[Any], list[Any]]]:
        """Return (op, operands, outside values that its regions use) for each op, the terminator last."""
        kept = self._blocks.get(block)
        if kept is None:
            kept = []
            for op in map(operation, block.operations):
                operands = list(op.operands)
                kept.append((op, operands, inputs_of(op)[len(operands) :]))
            self._blocks[block] = kept
        return kept

    def _set(self, value: Any, fact: Fact, op: Any, index: int) -> None:
        self.facts[value] = fact
        self.made_by[value] = (op, index)

    def _results(self, op: Any, captured: Sequence[Any], together: Agreement) -> list[Fact]:
        name = op.name
        if name in ("stablehlo.case", "stablehlo.if"):
            return self._branches(op, together)
        if name == "stablehlo.while":
            return self._loop(op, together)
        target = custom_call_target(op)
        if target == TO_SHARD:
            return [Fact(self._entering(op))]
        if target == TO_FULL:
            return [Fact(self._leaving(op))]
        operands = [self.of(value) for value in op.operands]
        return facts_of(Site(op, operands, [self.of(value) for value in captured], together, self.all))

    # --------------------------------------------------------------------------------- borders

    def _entering(self, op: Any) -> Agreement:
        """Return the agreement inside a manual region: of devices that hold the same tile; none if unreadable."""
        value = op.operands[0]
        outer = self.of(value).agreement
        tiles = self._tiles(self._sharding_of(value))
        if tiles is None:
            return self.all.nowhere
        scope = _read(marked_scope(op))
        if scope is not None and scope.mesh is not None and scope.manual:
            tiles = tiles[_without_others(scope)]
        return self.all.all_of((outer, self.all.of(tiles)))

    def _sharding_of(self, value: Any) -> Sharding | None:
        """Return the sharding on the op that defines ``value``, usually a ``@Sharding`` call."""
        maker = self.made_by.get(value)
        if maker is None or maker[0].name == "func.func" or len(maker[0].results) != 1:
            return None
        return _read(get_text(maker[0], SHARDING))

    def _tiles(self, sharding: Sharding | None) -> Ints | None:
        """Return the index of each device's tile, int64 [devices, *]; None if the sharding does not determine it."""
        if sharding is None or not (sharding.is_replicated or sharding.is_tiled):
            return None
        if sharding.mesh is None or sharding.is_replicated:
            return np.zeros((self.all.devices, 1), dtype=np.int64)
        if sharding.mesh.size != self.all.devices:
            return None
        return sharding.tile_index() if sharding.dims else np.zeros((self.all.devices, 1), dtype=np.int64)

    def _leaving(self, op: Any) -> Agreement:
        """Record the declared agreement of an exit; return the agreement of its result in the outer scope."""
        inner = self.of(op.operands[0]).agreement
        sharding = _read(get_text(op, SHARDING))
        if sharding is not None and sharding.is_maximal:  # one device's tile is the whole: no two need agree
            return self.all.everywhere
        tiles = self._tiles(sharding)
        if tiles is None:  # unreadable: as {replicated}
            tiles = np.zeros((self.all.devices, 1), dtype=np.int64)
        outer = np.zeros(self.all.devices, dtype=np.int64)
        if sharding is not None and sharding.mesh is not None and sharding.manual:
            outer = sharding.number(sharding.manual)
        self.exits[op] = Exit(op, self.all.of(np.column_stack([tiles, outer])), inner)
        if not outer.any():
            return self.all.everywhere
        order = np.argsort(outer, kind="stable")
        rows = order.reshape(int(outer.max()) + 1, -1)[outer]
        return self.all.of_rows(inner, rows)

    # --------------------------------------------------------------------------------- control flow

    def _branches(self, op: Any, together: Agreement) -> list[Fact]:
        which = self.of(op.operands[0])
        blocks = [region.blocks[0] for region in op.regions]
        inside = self.all.all_of((together, which.agreement))
        results = [self.block(block, inside) for block in blocks]
        columns = [[fact.agreement for fact in column] for column in zip(*results, strict=True)]
        if which.known is not None:
            choice = np.broadcast_to(_branch_taken(op, which.known), (self.all.devices,)).astype(np.int64)
            return [Fact(self.all.chosen(choice, column)) for column in columns]
        return [Fact(self.all.all_of((which.agreement, *column))) for column in columns]

    def _loop(self, op: Any, together: Agreement) -> list[Fact]:
        condition, body = (region.blocks[0] for region in op.regions)
        carried = [self.of(value) for value in op.operands]
        inside = together
        while True:
            for block in (condition, body):
                for index, (argument, fact) in enumerate(zip(block.arguments, carried, strict=True)):
                    self._set(argument, fact, op, argument_number(index))
            (again,) = self.block(condition, inside)
            now_inside = self.all.all_of((inside, again.agreement))
            returned = self.block(body, now_inside)
            joined = [_either(one, other, self.all) for one, other in zip(carried, returned, strict=True)]
            stable = all(one is other for one, other in zip(joined, carried, strict=True))
            if stable and now_inside is inside:
                break
            carried, inside = joined, now_inside
        if runs_at_least_once(op):
            return [Fact(fact.agreement) for fact in returned]
        return [Fact(self.all.all_of((fact.agreement, again.agreement))) for fact in carried]


def argument_number(index: int) -> int:
    """Convert the index of a block argument to its number in ``made_by``, and back.

    Numbers of arguments are negative; results have numbers from 0.
    """
    return -1 - index


def runs_at_least_once(loop: Any) -> bool:
    """Return whether the number of iterations is known and at least one, on all devices."""
    return (trip_count(loop) or 0) > 0


def _either(one: Fact, other: Fact, agreements: Agreements) -> Fact:
    """Return the fact that holds if a value is ``one`` or ``other``; the object ``one`` if the fact is equal."""
    agreement = agreements.all_of((one.agreement, other.agreement))
    same = one.known is not None and other.known is not None and bool((one.known == other.known).all())
    if agreement is one.agreement and (same or one.known is None):
        return one
    return Fact(agreement, one.known if same else None)


def _branch_taken(op: Any, which: Any) -> Any:
    """Return the index of the branch that each device takes; out of range, a ``case`` takes the last branch."""
    if op.name == "stablehlo.if":
        return np.where(which, 0, 1)
    last = len(op.regions) - 1
    return np.where((which < 0) | (which > last), last, which)


def _read(text: str | None) -> Sharding | None:
    if text is None or text == MANUAL:
        return None
    try:
        sharding = parse_sharding(text)
    except ShardpassError:
        return None
    return sharding if isinstance(sharding, Sharding) else None


def _without_others(scope: Sharding) -> Ints:
    """Return, for each device, a representative of the devices at the same position on the manual axes."""
    assert scope.mesh is not None
    place = number(scope.mesh, scope.manual)
    _, first = np.unique(place, return_index=True)
    return np.asarray(first[place], dtype=np.int64)
