"""Count the trips of counting loops, to which JAX's ``scan`` and ``fori_loop`` lower.

A loop counts where one of its carried values, k, (1) starts from a constant, (2) is compared with a constant, or with a
carried value that stays a constant, by the condition's result (``k < n``), and (3) is returned as ``k + step``, step a
positive constant. It then runs ceil((n - start) / step) times. Example: start 0, ``k < 12``, ``k + 1``: 12 times.
Anything else is not known (None).
"""

from __future__ import annotations

from typing import Any

from shardpass.ir.blocks import maker, terminator
from shardpass.ir.known_integers import known_integers
from shardpass.ir.tensors import enum_word


def trip_count(loop: Any) -> int | None:
    """Return the number of iterations of a ``stablehlo.while``; None if unknown."""
    condition, body = (region.blocks[0] for region in loop.regions)
    compare = maker(terminator(condition).operands[0])
    if compare is None or compare.name != "stablehlo.compare":
        return None
    direction = enum_word(compare.attributes["comparison_direction"])
    left, right = compare.operands
    place = _place(left, condition)
    if place is None or direction not in ("LT", "LE"):
        return None
    step = _step(body, place)
    start, bound = _number(loop.operands[place]), _bound(right, loop, condition, body)
    if step is None or start is None or bound is None or step < 1:
        return None
    last = bound + (direction == "LE")
    return max(0, -(-(last - start) // step))


def _place(value: Any, block: Any) -> int | None:
    """Return the index of ``value`` among the arguments of ``block``."""
    return next((k for k, argument in enumerate(block.arguments) if argument == value), None)


def _number(value: Any) -> int | None:
    """Return the integer of a constant."""
    known = known_integers(value)
    return int(known) if known is not None and known.ndim == 0 else None


def _bound(value: Any, loop: Any, condition: Any, body: Any) -> int | None:
    """Return the loop's bound: a constant, or the initial value of a carried value that never changes."""
    place = _place(value, condition)
    if place is None:
        return _number(value)
    same = terminator(body).operands[place] == body.arguments[place]
    return _number(loop.operands[place]) if same else None


def _step(body: Any, place: int) -> int | None:
    added = maker(terminator(body).operands[place])
    if added is None or added.name != "stablehlo.add":
        return None
    left, right = added.operands
    if _place(left, body) == place:
        return _number(right)
    return _number(left) if _place(right, body) == place else None
