"""All-reduces in compiled HLO of which each device keeps only its slice: reduce-scatters in all but name.

Problem. XLA's partitioner writes a sum that is split next as all-reduce and dynamic-slice. On GPU and TPU a later pass
makes that a reduce-scatter, of half the bytes; on CPU nothing does. Who counts bytes on CPU has to find the pairs.

An element of an all-reduce's result (it has several where XLA combined some) is *sliced* where every use of it, within
its computation and the fusions that it calls, is a dynamic-slice such that

1. the slice has at most one g-th of the elements, g devices being in a group of the all-reduce;
2. where it starts depends on the device (partition-id or replica-id), and not, say, on the step of a loop; what a loop
   hands on unchanged is what it was before the loop.

Uses are followed through ops that only arrange or convert (``PASSES``), get-tuple-element, and parameters of fusions.
As XLA's pass does, one that is sliced into fewer parts than the group has devices is left alone.

State: ops by computation and name, read once from the text; for each computation where it is called from.
Complexity: a walk from each all-reduce over its uses, and from each start of a slice over what that is computed from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

OP = re.compile(r"^\s*(?P<root>ROOT )?%?(?P<name>[\w.\-]+) = (?P<type>\((?:[^()]|\([^()]*\))*\)|\S+) (?P<op>[\w\-]+)\(")
PASSES = frozenset({"bitcast", "reshape", "copy", "transpose", "convert"})
DEVICE = frozenset({"partition-id", "replica-id"})
INLINE = frozenset({"fusion", "call"})
_DIMS = re.compile(r"\b[a-z]+[0-9]*(?:e[0-9]+m[0-9]+[a-z0-9]*)?\[([0-9,]*)\]")
Place = tuple[str, str]  # a computation and the name of an op in it


@dataclass(frozen=True, slots=True)
class Op:
    """One line of HLO. ``rest`` is what follows its operands."""

    name: str
    type: str
    op: str
    operands: tuple[str, ...]
    rest: str
    is_root: bool

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of elements of each array of the result."""
        return tuple(prod(int(n) for n in dims.split(",") if n) for dims in _DIMS.findall(self.type))

    @property
    def called(self) -> str | None:
        """The computation that a fusion or a call runs."""
        match = re.search(r"(?:calls|to_apply)=%?([\w.\-]+)", self.rest)
        return match[1] if match and self.op in INLINE else None

    @property
    def number(self) -> int:
        """Of a parameter or get-tuple-element: which."""
        match = re.search(r"index=(\d+)", self.rest)
        return int(match[1] if match else self.operands[0])


def read_op(line: str) -> Op | None:
    match = OP.match(line)
    if match is None:
        return None
    depth, start = 1, match.end()
    end = start
    while end < len(line) and depth:
        depth += {"(": 1, ")": -1}.get(line[end], 0)
        end += 1
    inside = line[start : end - 1]
    named = re.findall(r"%([\w.\-]+)", inside)
    operands = tuple(named or [part.strip() for part in inside.split(",") if part.strip()])
    return Op(match["name"], match["type"], match["op"], operands, line[end:], bool(match["root"]))


class Slices:
    """Which all-reduces of a program are sliced. ``computations``: the lines of each, by name."""

    def __init__(self, computations: Mapping[str, Sequence[str]]) -> None:
        self.ops = {
            name: {op.name: op for line in lines if (op := read_op(line)) is not None}
            for name, lines in computations.items()
        }

    @cached_property
    def callers(self) -> dict[str, list[Place]]:
        """The fusions and calls that run a computation."""
        found: dict[str, list[Place]] = {}
        for computation, ops in self.ops.items():
            for op in ops.values():
                if op.called is not None:
                    found.setdefault(op.called, []).append((computation, op.name))
        return found

    @cached_property
    def loops(self) -> dict[str, Place]:
        """The while that runs a body."""
        found: dict[str, Place] = {}
        for computation, ops in self.ops.items():
            for op in ops.values():
                if op.op == "while" and (body := re.search(r"body=%?([\w.\-]+)", op.rest)):
                    found[body[1]] = (computation, op.name)
        return found

    @cached_property
    def users(self) -> dict[Place, list[Op]]:
        found: dict[Place, list[Op]] = {}
        for computation, ops in self.ops.items():
            for op in ops.values():
                for operand in dict.fromkeys(op.operands):
                    found.setdefault((computation, operand), []).append(op)
        return found

    def sliced(self, computation: str, name: str, group: int) -> tuple[bool, ...]:
        """For each element of the result of an all-reduce over ``group`` devices."""
        op = self.ops[computation][name]
        if not op.type.startswith("("):
            return (self._only_slices(computation, op, op.sizes[0], group),)
        taken: dict[int, list[Op]] = {}
        for user in self.users.get((computation, name), ()):
            if user.op != "get-tuple-element":
                return (False,) * len(op.sizes)
            taken.setdefault(user.number, []).append(user)
        return tuple(
            index in taken and all(self._only_slices(computation, one, size, group) for one in taken[index])
            for index, size in enumerate(op.sizes)
        )

    def _only_slices(self, computation: str, op: Op, size: int, group: int) -> bool:
        users = self.users.get((computation, op.name), [])
        if op.is_root or not users:
            return False
        return all(self._is_slice(computation, op, user, size, group) for user in users)

    def _is_slice(self, computation: str, op: Op, user: Op, size: int, group: int) -> bool:
        if user.op == "dynamic-slice" and user.operands[0] == op.name:
            starts = user.operands[1:]
            small = user.sizes[0] * group <= size
            return small and any(self._by_device((computation, start), set()) for start in starts)
        if user.op in PASSES:
            return self._only_slices(computation, user, size, group)
        if user.called is None:
            return False
        inner = self.ops[user.called].values()
        places = {index for index, operand in enumerate(user.operands) if operand == op.name}
        entering = [one for one in inner if one.op == "parameter" and one.number in places]
        return all(self._only_slices(user.called, one, size, group) for one in entering)

    def _by_device(self, place: Place, seen: set[Place]) -> bool:
        """Whether a value is computed from the number of the device."""
        if place in seen:
            return False
        seen.add(place)
        computation, name = place
        op = self.ops[computation].get(name)
        if op is None:
            return False
        if op.op in DEVICE:
            return True
        if op.op == "get-tuple-element" and computation in self.loops:
            before = self._before_loop(computation, op)
            return before is not None and self._by_device(before, seen)
        if op.op == "parameter":
            outside = [(outer, self.ops[outer][user].operands) for outer, user in self.callers.get(computation, ())]
            return any(self._by_device((outer, operands[op.number]), seen) for outer, operands in outside)
        return any(self._by_device((computation, operand), seen) for operand in op.operands)

    def _before_loop(self, body: str, op: Op) -> Place | None:
        """What a value that a loop hands on unchanged was before the loop; None of all others.

        XLA computes offsets of slices once, before the loop that needs them.
        """
        ops = self.ops[body]
        root = next((one for one in ops.values() if one.is_root), None)
        if root is None or root.op != "tuple" or ops[op.operands[0]].op != "parameter":
            return None
        handed = ops.get(root.operands[op.number])
        if handed is None or handed.op != op.op or (handed.operands, handed.number) != (op.operands, op.number):
            return None
        outer, loop = self.loops[body]
        start = self.ops[outer].get(self.ops[outer][loop].operands[0])
        if start is None or start.op != "tuple":
            return None
        return outer, start.operands[op.number]
