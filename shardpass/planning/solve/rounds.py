"""What networks share that are solved one after another and differ in few tables.

Problem: a solution is planned, some entries of its tables are raised, and the network is solved again (``reshards``);
most tables are the same objects as before, and so is most of the work.

State: of what was made last, the tables that it was made of. Where these are the very same objects again, it is not
made again: sums of parallel tables (``network``), tables that elimination leaves (``eliminate``), answers of
components.

Example: a chain x - y - z, eliminated in this order, whose table of y and z is raised: the table that x left over y is
there.

Invariant: answers are those of a network solved alone, as everything is a function of its tables.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from operator import is_
from typing import Any, TypeVar

Made = TypeVar("Made")


class Kept:
    """What was made, by what it is of, as long as it would be made of the same objects."""

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[tuple[object, ...], Any]] = {}

    def get(self, name: Hashable, parts: Sequence[object], make: Callable[[], Made]) -> Made:
        """What ``make`` returns, which is a function of ``parts``."""
        known = self._known.get(name)
        if known is not None and len(known[0]) == len(parts) and all(map(is_, known[0], parts)):
            again: Made = known[1]
            return again
        made = make()
        self._known[name] = (tuple(parts), made)
        return made


@dataclass
class Rounds:
    """What was made in the rounds before.

    ``orders``: of elimination, by limits and by what they follow from, the graph and the sizes.
    """

    tables: Kept = field(default_factory=Kept)
    eliminated: Kept = field(default_factory=Kept)
    left: Kept = field(default_factory=Kept)
    answers: Kept = field(default_factory=Kept)
    orders: dict[Hashable, list[int]] = field(default_factory=dict)
