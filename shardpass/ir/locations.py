"""Read locations: the places in the user's text that they name, and the names of ops.

JAX gives an op the location ``"jit(f)/dot_general"(callsite(...))``: the op's name, which XLA calls ``op_name``, around
the stack of the user's calls. In a function that others call, and in a manual region, the name is relative
(``"dot_general"``) and the stack ends at the function's own lines. XLA joins both with those of the call when it
inlines; so does ``Within``, for calls that shardpass inlines:

    "jit(f)/jit(inner)"(stack of the call)  +  "dot_general"(stack in inner)
        =  "jit(f)/jit(inner)/dot_general"(stack in inner, at stack of the call)

A name without a stack, as library functions have it, gets that of the call: the user's line.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics import NOWHERE, Place
from shardpass.ir.frames import every_frame
from shardpass.ir.walk import CONTROL_FLOW, every_op, operation


@lru_cache(maxsize=65536)
def _read(text: str) -> Place:
    return next((frame.place for frame in every_frame(text)), NOWHERE)


def place_of(location: Any) -> Place:
    """Return the innermost file:line:column of an ``ir.Location`` (callsites: the callee); NOWHERE if none."""
    return _read(str(location))


def named(location: Any) -> tuple[str, Any]:
    """Return the name that ``location`` gives its op, or "", and the location without the name."""
    return (location.name_str, location.child_loc) if isinstance(location, ir.NameLoc) else ("", location)


def parsed(text: str) -> Any:
    """Parse the location that prints as ``text``, in the current context. The bindings parse locations only
    after an op.
    """
    return ir.Module.parse(f"module {{}} {text}").operation.location


def named_below(location: Any, suffix: str) -> Any:
    """Append ``suffix`` to the op's name in ``location``, as ``jit(f)/dot_general/operand_1``."""
    name, stack = named(location)
    return ir.Location.name(f"{name}/{suffix}", stack) if name else location


def joined(locations: Sequence[Any]) -> Any:
    """Join the locations of several ops that one op replaces: the lines of the first, and XLA's form of joint names.

    Example: ``jit(f)/jvp()/dot_general`` and ``jit(f)/jvp()/mul`` make ``jit(f)/jvp()/(dot_general:mul)``.
    """
    names = list(dict.fromkeys(filter(None, (named(location)[0] for location in locations))))
    first = next((location for location in locations if place_of(location) != NOWHERE), locations[0])
    if len(names) < 2:
        return ir.Location.name(names[0], named(first)[1]) if names else first
    rows = [name.split("/") for name in names]
    shared = 0
    while all(len(row) > shared + 1 and row[shared] == rows[0][shared] for row in rows):
        shared += 1
    apart = ":".join("/".join(row[shared:]) for row in rows)
    return ir.Location.name("/".join([*rows[0][:shared], f"({apart})"]), named(first)[1])


def first_names(root: Any) -> None:
    """Give ops that replace several equal ops the location of the first, below ``root``; O(ops).

    MLIR's cse joins the locations of ops, and XLA would write ``a;b`` without a line. XLA's own cse keeps the first.
    """
    made: dict[Any, Any] = {}
    for op in every_op(root):
        location = op.location
        if isinstance(location, ir.FusedLoc):
            key = location.attr
            if key not in made:
                made[key] = _first(location)
            op.location = made[key]


def _first(location: Any) -> Any:
    while isinstance(location, ir.FusedLoc):
        location = location.locations[0]
    return location


class Within:
    """Nests the locations of inlined ops in the location ``call``. Equal locations are made once.

    The bodies of reducers are left: XLA does not name them either.
    """

    def __init__(self, call: Any) -> None:
        self.name, self.stack = named(call)
        self.call = call
        self._made: dict[Any, Any] = {}

    def move(self, op: Any) -> None:
        """Relocate ``op`` and the ops in its regions, if it is control flow. Iterative: regions may nest deeply."""
        todo = [op]
        while todo:
            one = todo.pop()
            one.location = self.location(one.location)
            if len(one.regions) and one.name in CONTROL_FLOW:
                todo += [operation(inner) for region in one.regions for block in region for inner in block.operations]

    def location(self, inner: Any) -> Any:
        key = inner.attr
        if key not in self._made:
            self._made[key] = self._around(inner)
        return self._made[key]

    def _around(self, inner: Any) -> Any:
        name, stack = named(inner)
        if isinstance(stack, ir.UnknownLoc):
            stack = self.stack
        elif not isinstance(self.stack, ir.UnknownLoc):
            stack = ir.Location.callsite(stack, [self.stack])
        whole = "/".join(filter(None, (self.name, name)))
        return ir.Location.name(whole, stack) if whole else stack
