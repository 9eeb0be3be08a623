"""The functions of this process, also those that ``gc.freeze`` puts beyond the reach of ``gc.get_objects``.

Servers and test runners freeze what they have imported, so that no collection visits it. Frozen objects are still
referred to: a walk from the modules and from all other objects reaches them, through ``gc.get_referents``.

State: the frozen functions, as weak references, until more objects are frozen or all are thawed. Complexity: O(objects
of the process) for the walk.
"""

from __future__ import annotations

import gc
import sys
from types import FunctionType
from typing import Any
from weakref import WeakSet


class _Frozen:
    """The functions that are frozen. ``count``: the frozen objects at the last walk."""

    def __init__(self) -> None:
        self.count, self.functions = 0, WeakSet[FunctionType]()

    def known(self, visible: list[Any]) -> WeakSet[FunctionType]:
        """Return the functions that are not ``visible``, where any object is frozen."""
        count = gc.get_freeze_count()
        if count == 0:
            self.functions = WeakSet()
        elif count > self.count:
            self.functions = WeakSet(_reached(visible))
        self.count = count
        return self.functions


_frozen = _Frozen()


def functions() -> list[FunctionType]:
    """List the functions of this process."""
    visible = gc.get_objects()
    made = {id(one): one for one in visible if type(one) is FunctionType}
    made |= {id(one): one for one in _frozen.known(visible)}
    return list(made.values())


def _reached(visible: list[Any]) -> list[FunctionType]:
    """Walk from the modules and from ``visible``; return the functions on the way."""
    seen = set(map(id, visible))
    level, result = [*visible, *sys.modules.values()], []
    kept = []  # so that no identity in ``seen`` becomes that of another object
    while level:
        kept.append(level)
        met = {id(one): one for one in gc.get_referents(*level) if gc.is_tracked(one)}
        level = [one for key, one in met.items() if key not in seen]
        seen.update(map(id, level))
        result += [one for one in level if type(one) is FunctionType]
    return result
