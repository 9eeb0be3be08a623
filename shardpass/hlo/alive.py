"""List the arrays that are alive at the memory peak of a scheduled program.

Problem: a compiler's statistics say how much a device holds, and not which arrays. In a scheduled program the order of
the ops is that in which a device runs them. So an array lives from the op that makes it to the last op that reads it.

1. What only names an array (tuples and their elements, bitcasts, ends of asynchronous ops, loops and their carried
   values) makes none. An update in place has the array that it changes.
2. Parameters and results are no temporaries; neither is what lies in another memory of the device, as a TPU's S(1).
3. While a loop, a branch or a call runs, the most that lives inside of it lives too.

Example: ``b`` of 8 KiB from ``a`` of 4 KiB, ``c`` of 4 KiB from ``b``, the result from ``a`` and ``c``:
16 KiB at ``c``.

Cost: O(ops and operands).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from shardpass.hlo.read import Computation, HloOp, HloProgram, Shape

_NAMES = frozenset({"bitcast", "opt-barrier", "optimization-barrier", "while", "after-all", "copy-done"})
_NOTHING = frozenset({"parameter", "constant", "iota", "partition-id", "replica-id"})
_UPDATE = "dynamic-update-slice"
_RUNS = frozenset({"call", "while", "conditional"})
_ELSEWHERE = re.compile(r"S\([1-9]\d*\)")

_Key = tuple[str, int]  # an op, and which of its results
_Value = tuple[frozenset[_Key], ...]  # of each element of a tuple, the arrays that it may be


@dataclass(frozen=True, slots=True)
class Alive:
    """An array that is alive: a result of ``op``."""

    op: HloOp
    shape: Shape


def alive_at_peak(program: HloProgram) -> tuple[Alive, ...]:
    """Return the temporaries that are alive when they need most memory, the largest first."""
    most = _Peaks(program).of(program.entry)
    return tuple(sorted(most, key=lambda one: -one.shape.bytes))


class _Peaks:
    """The temporaries at the memory peak of each computation; cached."""

    def __init__(self, program: HloProgram) -> None:
        self.program = program
        self.known: dict[str, tuple[Alive, ...]] = {}

    def of(self, name: str) -> tuple[Alive, ...]:
        if name not in self.known:
            self.known[name] = ()  # to a call back to it
            computation = self.program.computations.get(name)
            self.known[name] = () if computation is None else self._peak(computation)
        return self.known[name]

    def _peak(self, computation: Computation) -> tuple[Alive, ...]:
        ops = list(computation.ops.values())
        values: dict[str, _Value] = {}
        made: dict[_Key, Alive] = {}
        ends: dict[_Key, int] = {}
        for place, op in enumerate(ops):
            for key in (key for name in op.operands for keys in values.get(name, ()) for key in keys):
                ends[key] = place
            values[op.name] = self._value(op, values, made)
            ends |= {key: place for keys in values[op.name] for key in keys if key[0] == op.name}
        root = computation.root
        for key in () if root is None else frozenset().union(*values[root.name]):
            made.pop(key, None)
        dying: dict[int, list[_Key]] = {}
        for key in made:
            dying.setdefault(ends[key], []).append(key)
        alive: dict[_Key, Alive] = {}
        most, size, best = 0, 0, tuple[Alive, ...]()
        for place, op in enumerate(ops):
            new = {key: made[key] for keys in values[op.name] for key in keys if key[0] == op.name and key in made}
            alive |= new
            size += _size(new)
            inside = self._inside(op)
            if size + sum(one.shape.bytes for one in inside) > most:
                most, best = size + sum(one.shape.bytes for one in inside), (*alive.values(), *inside)
            for key in dying.get(place, ()):
                size -= alive.pop(key).shape.bytes
        return best

    def _inside(self, op: HloOp) -> tuple[Alive, ...]:
        """Return the temporaries at the peak of the computation that ``op`` runs; of several, of the largest."""
        peaks = [self.of(name) for _, name in op.called] if op.opcode in _RUNS else []
        return max(peaks, key=lambda some: sum(one.shape.bytes for one in some), default=())

    def _value(self, op: HloOp, values: Mapping[str, _Value], made: dict[_Key, Alive]) -> _Value:
        given = [values.get(name, ()) for name in op.operands]
        if op.opcode in _NOTHING:
            return ()
        if op.opcode == "tuple":
            return tuple(frozenset().union(*one) for one in given)
        if op.opcode == "get-tuple-element":
            whole = given[0] if given else ()
            return whole[op.number : op.number + 1] if 0 <= op.number < len(whole) else ()
        if op.opcode in _NAMES or op.opcode.endswith("-done"):
            return given[0] if given else ()
        if (changed := self._changed(op)) < len(given):
            return given[changed]
        shapes = op.results
        elsewhere = _ELSEWHERE.search(op.type) is not None and len(op.shapes) == 1
        for number, shape in enumerate(() if elsewhere else shapes):
            made[op.name, number] = Alive(op, shape)
        return tuple(frozenset({(op.name, number)}) for number in range(len(shapes)))

    def _changed(self, op: HloOp) -> int:
        """Return the index of the operand that ``op`` updates in place; the number of operands if there is none."""
        if op.opcode != "fusion":
            return 0 if op.opcode == _UPDATE else len(op.operands)
        inner = self.program.computations.get(next((name for how, name in op.called if how == "calls"), ""))
        root = None if inner is None else inner.root
        if inner is None or root is None or root.opcode != _UPDATE:
            return len(op.operands)
        first = inner.ops.get(root.operands[0])
        return first.number if first is not None and first.opcode == "parameter" else len(op.operands)


def _size(some: Mapping[_Key, Alive]) -> int:
    return sum(one.shape.bytes for one in some.values())
