"""Copy functions called in an SDY manual computation into the region of the call.

Problem. The body of ``sdy.manual_computation`` may call a function, which may hold shardings and manual computations of
its own. These name the free axes alone, and the function does not say which axes are manual around it: only the call
does. The same function may also be called outside, or where other axes are manual.

Example, on ``["a"=2, "b"=2]``: a region that is manual over ``a`` calls ``@f``, whose argument has the sharding
``[{"b"}, {}]``. In the region that is ``b`` beside the manual ``a``; read as of whole arrays it would mix the tiles of
both coordinates of ``a``.

State: ``made``, (function, manual axes) -> its copy. So there are at most as many copies of a function as sets of
manual axes at its calls, however many calls there are. Calls in a copy are followed as those of the body, so that a
circle of calls ends at a copy that is there.

Cost: O(ops of the functions that are copied).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from shardpass.ir.bodies import CALLEE
from shardpass.ir.walk import OpList, OpLists, operation, read_blocks

COMPUTATION = "sdy.manual_computation"

Manual = frozenset[str]


def manual_axes(computation: Any) -> Manual:
    """Return the axes listed in a ``sdy.manual_computation``."""
    axes = sdy.ManualAxesAttr(computation.attributes["manual_axes"])
    return frozenset(str(axes[i]) for i in range(len(axes)))


@dataclass(frozen=True, slots=True)
class FunctionCopy:
    """A function called in ``computation``, with all axes that are manual at the call."""

    function: Any
    computation: Any
    manual: Manual


def scoped_calls(lists: OpLists) -> list[FunctionCopy]:
    """Redirect each call in a manual computation to a copy of its function; ``lists``: the module's ops."""
    copies = _Copies(lists)
    copies.follow(lists.blocks, frozenset(), None)
    for copy in copies.copies:  # grows meanwhile
        copies.follow(read_blocks(copy.function), copy.manual, copy.computation)
    if copies.copies:
        lists.changed()
    return copies.copies


class _Copies:
    def __init__(self, lists: OpLists) -> None:
        top = lists.blocks[0]
        named = {op.attributes["sym_name"].value: op for op in top.ops if "sym_name" in op.attributes}
        self.functions = {name: op for name, op in named.items() if op.name == "func.func"}
        self.names = set(named)
        self.origin = {name: name for name in self.functions}  # a function, or a copy -> what it is a copy of
        self.made: dict[tuple[str, Manual], str] = {}
        self.copies: list[FunctionCopy] = []

    def follow(self, blocks: list[OpList], manual: Manual, computation: Any) -> None:
        """Redirect the calls in ``blocks`` of ``computation``. ``manual``: all axes that are manual there."""
        around: dict[int, tuple[Manual, Any]] = {}  # op, by identity -> what is manual around its blocks
        for inside in blocks:
            here = around.get(id(inside.owner), (manual, computation))
            for op, name in zip(inside.ops, inside.names, strict=True):
                if name == COMPUTATION:
                    around[id(op)] = here[0] | manual_axes(op), op
                elif here[0]:
                    around[id(op)] = here
                    if name in CALLEE:
                        self._redirect(op, *here)

    def _redirect(self, call: Any, manual: Manual, computation: Any) -> None:
        attribute = CALLEE[call.name]
        name = self.origin.get(ir.FlatSymbolRefAttr(call.attributes[attribute]).value, "")
        if not name or not self.functions[name].regions[0].blocks:
            return  # there is no such function, or it has no body: reported when calls are inlined
        if (name, manual) not in self.made:
            with ir.InsertionPoint(self.functions[name]):
                copy = operation(self.functions[name].clone())
            fresh = self._fresh(name)
            copy.attributes["sym_name"] = ir.StringAttr.get(fresh)
            copy.attributes["sym_visibility"] = ir.StringAttr.get("private")
            self.origin[fresh] = name
            self.made[name, manual] = fresh
            self.copies.append(FunctionCopy(copy, computation, manual))
        call.attributes[attribute] = ir.FlatSymbolRefAttr.get(self.made[name, manual])

    def _fresh(self, name: str) -> str:
        number = 0
        while (fresh := f"{name}_{number}") in self.names:
            number += 1
        self.names.add(fresh)
        return fresh
