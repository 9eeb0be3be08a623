"""A block's ops in an order that can be changed, with the bytes alive at each op.

Problem. A pass wants two ops side by side (two small collectives, to make one of them) or wants to know what a change
costs in memory. Between the two stand ops that one of them needs, ops that need the other, and independent ops.

State. Ops are numbered as they stood at first. ``order`` says which op stands at each place, ``place`` is its inverse.
``group``: the ops that an op was brought together with, itself among them. ``entering[k]``: the bytes that are alive
between places k-1 and k. The block itself changes in ``apply`` alone.

Invariants.
* Every op stands behind those that it needs.
* A group stands side by side, and none of it needs another.
* Ops with effects (``may_be_moved`` says no) stay as they stood to one another.
* ``peak``, the most bytes alive at once, is that of the original block; no change exceeds it by more than ``slack``.

Which bytes are alive: those of an op's results, from the op to their last use; the results of a group with a workspace
share one buffer. Not counted: values from outside of the block or returned by it, which have memory of their own, and
what costs nothing to make again (constants, iotas, broadcasts). Control flow needs what its regions hold at most.

Cases of ``bring_together(A, B)``, for ``A x y B``, where ``B`` needs ``x`` and ``y`` needs ``A``:

1. Up: what ``B`` needs moves before the group:  ``x A B y``.
2. Down: what needs the group moves behind ``B``: ``x A B y`` again here; with an independent ``z``, ``A x z y B``
   becomes ``x A B z y`` by case 1 and ``x z A B y`` by case 2.
3. The better of the two is kept: the lower peak, then the fewer bytes over all places. None, and ``B`` stays, where
   ``B`` needs ``A``, an op with effects would move, or both peaks are too high.

Cost: one walk over the block and all below it; each trial walks the ops between the two places that it brings together,
``REACH`` at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

from jaxlib.mlir import ir

from shardpass.element_types import element_type
from shardpass.ir.effects import may_be_moved
from shardpass.ir.walk import CONTROL_FLOW, inputs_of, operation, read_blocks

REACH = 1024
LEAST = 512
_FREE = frozenset({"stablehlo.constant", "stablehlo.iota", "stablehlo.broadcast_in_dim"})


def bytes_of(kind: Any) -> int:
    """Return the bytes of a tensor type; 0 for other types, such as tokens."""
    if not isinstance(kind, ir.RankedTensorType):
        return 0
    return element_type(str(kind.element_type)).bytes(prod(kind.shape))


class Order:
    """An order of the ops of ``block``; the terminator stays last."""

    def __init__(self, block: Any, slack: int = 0, inner_bytes: Mapping[Any, int] | None = None) -> None:
        """Read the order from ``block``.

        ``inner_bytes``: the most bytes alive in the regions of control flow ops, if known.
        """
        self.slack = slack
        self.ops = [operation(op) for op in block.operations]
        inner_bytes = _bytes_inside(self.ops) if inner_bytes is None else inner_bytes
        self.order = list(range(len(self.ops)))
        self.place = list(self.order)
        self.group = [[i] for i in self.order]
        self.pure = [may_be_moved(op) for op in self.ops]
        # bytes that an op needs beside its operands and results
        self.workspace = [inner_bytes[op] if op.name in CONTROL_FLOW else 0 for op in self.ops]
        given = set(self.ops[-1].operands)
        self.bytes = [
            0 if op.name in _FREE else sum(bytes_of(r.type) for r in op.results if r not in given) for op in self.ops
        ]
        self.number = {result: i for i, op in enumerate(self.ops) for result in op.results}
        self.sources: list[tuple[int, ...]] = []
        self.users: list[list[int]] = [[] for _ in self.ops]
        for i, op in enumerate(self.ops):
            sources = {self.number[v] for v in inputs_of(op) if v in self.number}
            self.sources.append(tuple(sorted(sources)))
            for source in sources:
                self.users[source].append(i)
        self.entering = [0] * (len(self.ops) + 1)
        self.entering, self.peak = self._profile(self.order, 0)

    @property
    def small_change(self) -> int:
        """Return a sixteenth of the peak in bytes, at least ``LEAST``: changes up to this are negligible."""
        return max(self.peak // 16, LEAST)

    def peak_without(self, op: int) -> int:
        """Return the peak without the results of ``op``."""
        size, self.bytes[op] = self.bytes[op], 0
        peak = self._profile(self.order, 0)[1]
        self.bytes[op] = size
        return peak

    def forget(self, op: int) -> None:
        """Stop counting the results of ``op``, which was removed from the block."""
        self.bytes[op] = 0
        self.entering, _ = self._profile(self.order, 0)

    # ---------------------------------------------------------------- trials

    def bring_together(self, one: int, other: int, workspace: int) -> bool:
        """Move the op ``other``, which is in no group and after ``one``, into the group of ``one``.

        ``workspace``: bytes that the ops of the group need together. Ops that ``other`` needs move up before the group,
        or ops that need the group move down behind ``other``: whichever keeps fewer bytes alive. False, with nothing
        changed, where one needs the other, an op with effects would move, or the peak would rise.
        """
        group = self.group[one]
        first, at = self.place[group[0]], self.place[other]
        if at - first > REACH:
            return False
        between = self.order[first + len(group) : at]
        needed = self._needed_by(other, first)
        if not needed.isdisjoint(group):
            return False
        waiting = self._needing(group, between)
        up = [*_only(between, needed), *group, other, *_without(between, needed)]
        down = [*_without(between, waiting), *group, other, *_only(between, waiting)]
        self.workspace[other] += workspace
        trials = []
        for moved, order in ((needed, up), (waiting, down)):
            if all(self.pure[i] for i in moved):
                profile, peak = self._profile(order, first)
                trials.append((peak, sum(profile), order, profile))
        best = min(trials, key=lambda trial: trial[:2], default=None)
        if best is None or best[0] > self.peak + self.slack:
            self.workspace[other] -= workspace
            return False
        _, _, order, profile = best
        self.order[first : at + 1] = order
        self.entering[first : at + 2] = profile
        for k, i in enumerate(order, first):
            self.place[i] = k
        group.append(other)
        self.group[other] = group
        return True

    def _needed_by(self, op: int, first: int) -> set[int]:
        """Return the ops from index ``first`` on that ``op`` depends on, with all of their groups."""
        needed: set[int] = set()
        todo = [op]
        while todo:
            fresh = {i for s in self.sources[todo.pop()] if self.place[s] >= first for i in self.group[s]} - needed
            needed |= fresh
            todo += fresh
        return needed

    def _needing(self, group: Iterable[int], between: list[int]) -> set[int]:
        """Return the ops of ``between`` that depend on an op of ``group``, with all of their groups."""
        needing = set(group)
        for i in between:
            if not needing.isdisjoint(self.sources[i]):
                needing.update(self.group[i])
        return needing.difference(group)

    def _profile(self, order: list[int], first: int) -> tuple[list[int], int]:
        """Return the bytes alive before each op of ``order`` and after the last, and their maximum."""
        places = {i: k for k, i in enumerate(order, first)}
        alive = self.entering[first]
        profile, peak = [alive], 0
        dead: set[int] = set()
        for k, i in enumerate(order, first):
            alive += self.bytes[i]
            peak = max(peak, alive + self.workspace[i])
            for source in (*self.sources[i], i):
                if source in dead or not self.bytes[source]:
                    continue
                buffer = self.group[source] if self.workspace[self.group[source][-1]] else (source,)
                if all(places.get(u, self.place[u]) <= k for s in buffer for u in (s, *self.users[s])):
                    alive -= sum(self.bytes[s] for s in buffer)
                    dead.update(buffer)
            profile.append(alive)
        return profile, peak

    # ---------------------------------------------------------------- the block

    def apply(self) -> None:
        """Move the block's ops into this order."""
        changed = [k for k, i in enumerate(self.order) if k != i]
        for k in reversed(range(changed[0], changed[-1] + 1) if changed else ()):
            self.ops[self.order[k]].move_before(self.ops[self.order[k + 1]])


def _bytes_inside(ops: Sequence[Any]) -> dict[Any, int]:
    """Return the most bytes alive at once in the regions of each control flow op, nested ops included."""
    most: dict[Any, int] = {}
    for op in ops:
        if op.name in CONTROL_FLOW:
            for inside in reversed(read_blocks(op)):  # inner ones first
                if inside.owner_name in CONTROL_FLOW:
                    most[inside.owner] = max(most.get(inside.owner, 0), Order(inside.block, inner_bytes=most).peak)
    return most


def _only(order: list[int], chosen: set[int]) -> list[int]:
    return [i for i in order if i in chosen]


def _without(order: list[int], chosen: set[int]) -> list[int]:
    return [i for i in order if i not in chosen]
