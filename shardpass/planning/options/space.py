"""What there is to decide about a program: its classes of dimensions, and the conflicts between them.

Dimensions that steps tie together form a class: the batch, the features, the heads. A class *wants* a mesh axis where
the user split one of its dimensions over it. A conflict is a pair of classes that want one axis and meet in a value (or
one class that has two dimensions of a value): only one dimension of it can have the axis. After the named-dimension
analysis of TOAST (Alabed et al. 2025).

Example, FSDP on d=8: in ``x @ w`` with rows of x and rows of w over d, the classes are the batch, which wants d, the
features, which want d, and the columns. Batch and features meet in x: one conflict.

Complexity: one walk over the ties of all dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass

from shardpass.propagation.engine import Propagation
from shardpass.propagation.spread import Place, Spreading


@dataclass(frozen=True)
class Space:
    """The number of classes of dimensions. ``conflicts``: (class, class, sub-axis) where both classes want the
    sub-axis.
    """

    classes: int
    conflicts: frozenset[tuple[int, int, int]]

    def __str__(self) -> str:
        return f"{self.classes} classes of dimensions, {len(self.conflicts)} conflicts over an axis"


def space_of(engine: Propagation) -> Space:
    """Return the classes and conflicts of the program that ``engine`` propagates."""
    spreading = Spreading(engine)
    of: dict[Place, int] = {}
    count = 0
    for value, known in enumerate(engine.values):
        for dim, size in enumerate(known.shape):
            if size > 1 and (value, dim) not in of:
                _flood(spreading, (value, dim), count, of)
                count += 1
    wants: dict[int, set[int]] = {}
    for value, known in enumerate(engine.values):
        for dim, axes in enumerate(known.dims if known.fixed else ()):
            if (value, dim) in of:
                wants.setdefault(of[value, dim], set()).update(axes)
    conflicts: set[tuple[int, int, int]] = set()
    for value, known in enumerate(engine.values):
        here = [of[value, dim] for dim in range(len(known.shape)) if (value, dim) in of]
        for place, one in enumerate(here):
            for other in here[place + 1 :]:
                pair = (min(one, other), max(one, other))
                conflicts.update((*pair, axis) for axis in wants.get(one, set()) & wants.get(other, set()))
    return Space(count, frozenset(conflicts))


def _flood(spreading: Spreading, start: Place, number: int, of: dict[Place, int]) -> None:
    """Give class ``number`` to ``start`` and to all dimensions tied to it."""
    todo = [start]
    of[start] = number
    while todo:
        for other in spreading.tied(*todo.pop(), across=True):
            if other not in of:
                of[other] = number
                todo.append(other)
