"""Count the iterations of HLO loops.

1. XLA wrote the count into the loop: ``backend_config={"known_trip_count":{"n":"12"}}``.
2. The loop counts: one of its carried values, k, starts from a constant, the condition is ``k < n`` or ``k <= n`` with
   a constant n, or an n that the loop carries unchanged, and the body returns ``k + step``, step a positive constant.

Values are followed through copies, tuples and the computations of fusions and calls. Any other loop is not known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from shardpass.hlo.read import Computation, HloOp, HloProgram

_KNOWN = re.compile(r'known_trip_count\\?":\{\\?"n\\?":\\?"(\d+)')
_DIRECTION = re.compile(r"\bdirection=(LT|LE)\b")
_SAME = frozenset({"copy", "bitcast", "convert", "reshape"})
_INLINE = frozenset({"fusion", "call"})
_FURTHEST = 256  # copies that a value is followed through
_DEEPEST = 64  # tuples and computations inside of one another
_MOST = 100_000  # steps of all


def trip_count(program: HloProgram, computation: str, loop: HloOp) -> int | None:
    """Return the number of iterations of a ``while`` of ``computation``; None if unknown."""
    if known := _KNOWN.search(loop.attributes):
        return int(known[1])
    called = dict(loop.called)
    condition, body = (program.computations.get(called.get(name, "")) for name in ("condition", "body"))
    around = program.computations.get(computation)
    if condition is None or body is None or around is None or condition.root is None or body.root is None:
        return None
    follow = _Follow(program)
    compare = follow.back(_Value(condition, condition.root))
    direction = _DIRECTION.search(compare.op.attributes)
    if compare.op.opcode != "compare" or direction is None:
        return None
    left, right = follow.operand(compare, 0), follow.operand(compare, 1)
    start_values = follow.operand(_Value(around, loop), 0)
    returned = follow.back(_Value(body, body.root))
    place = _carried(left, condition, follow)
    if place is None:
        return None
    start = _number(follow.element(start_values, place))
    bound = _number(right)
    bound_place = _carried(right, condition, follow)
    if (
        bound is None
        and bound_place is not None
        and _carried(follow.element(returned, bound_place), body, follow) == bound_place
    ):
        bound = _number(follow.element(start_values, bound_place))
    step = _step(follow.element(returned, place), place, body, follow)
    if start is None or bound is None or step is None or step < 1:
        return None
    return max(0, -(-(bound + (direction[1] == "LE") - start) // step))


@dataclass(frozen=True)
class _Value:
    """The result of ``op``. ``bound``: values of the parameters, for an inlined computation."""

    computation: Computation
    op: HloOp
    bound: tuple[_Value | None, ...] | None = field(default=None, repr=False)


class _Follow:
    """Traces values to their sources, for at most ``_MOST`` steps, as a text may contain cycles."""

    def __init__(self, program: HloProgram) -> None:
        self.program = program
        self._depth = self._steps = 0

    def operand(self, value: _Value | None, place: int) -> _Value | None:
        """Return the source of operand ``place`` of ``value``; None without such an operand."""
        operand = None if value is None else self._operand(value, place)
        if operand is None or self._depth >= _DEEPEST or self._steps >= _MOST:
            return operand
        self._depth += 1
        try:
            return self.back(operand)
        finally:
            self._depth -= 1

    def _operand(self, value: _Value, place: int) -> _Value | None:
        op = value.computation.ops.get(value.op.operands[place]) if place < len(value.op.operands) else None
        return None if op is None else _Value(value.computation, op, value.bound)

    def element(self, value: _Value | None, place: int) -> _Value | None:
        """Return the source of element ``place`` of a tuple; None if ``value`` is not a tuple."""
        return self.operand(value, place) if value is not None and value.op.opcode == "tuple" else None

    def back(self, value: _Value) -> _Value:
        """Trace ``value`` through copies, tuples and inlined computations to its source."""
        for _ in range(_FURTHEST):
            self._steps += 1
            before = self._before(value)
            if before is None:
                break
            value = before
        return value

    def _before(self, value: _Value) -> _Value | None:
        op = value.op
        if op.opcode in _SAME:
            return self._operand(value, 0)
        if op.opcode == "parameter" and value.bound is not None and 0 <= op.number < len(value.bound):
            return value.bound[op.number]
        if op.opcode in _INLINE and op.called:
            inner = self.program.computations.get(op.called[0][1])
            if inner is not None and inner.root is not None and inner is not value.computation:
                bound = tuple(self.operand(value, place) for place in range(len(op.operands)))
                return _Value(inner, inner.root, bound)
        if op.opcode == "get-tuple-element":
            return self.element(self.operand(value, 0), op.number)
        return None


def _carried(value: _Value | None, region: Computation, follow: _Follow) -> int | None:
    """Return the index of ``value`` among the values that the loop carries; None for any other value."""
    if value is None or value.op.opcode != "get-tuple-element":
        return None
    whole = follow.operand(value, 0)
    is_parameter = whole is not None and whole.op.opcode == "parameter" and whole.computation is region
    return value.op.number if is_parameter else None


def _number(value: _Value | None) -> int | None:
    text = value.op.inside.strip() if value is not None and value.op.opcode == "constant" else ""
    return int(text) if re.fullmatch(r"-?\d+", text) else None


def _step(value: _Value | None, place: int, body: Computation, follow: _Follow) -> int | None:
    """Return the constant that the loop's body adds to the carried value ``place``; None for other bodies."""
    if value is None or value.op.opcode != "add":
        return None
    left, right = follow.operand(value, 0), follow.operand(value, 1)
    if _carried(left, body, follow) == place:
        return _number(right)
    return _number(left) if _carried(right, body, follow) == place else None
