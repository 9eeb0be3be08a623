"""The least and the greatest number that an integer of the program may be, or a float that counts.

A sum that does not wrap, and that no float rounds, is the sum of its operands as whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from shardpass.element_types import element_type
from shardpass.proving.rules.integers import is_integer, limits
from shardpass.proving.scalars.rows import segments, shift_of
from shardpass.proving.scalars.table import CHOICE, FUNCTION, Scalars

WIDE = 2**70  # beyond all integers of a program
_DIGITS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}  # of the integers that a float holds exactly
_ANY = -WIDE, WIDE
_OF_ENDS: Mapping[str, Callable[..., int]] = {"add": sum, "minimum": min, "maximum": max}


def exact(element: str) -> int:
    """Return the number up to which a float type has all integers."""
    return 1 << _DIGITS.get(element, 0)


def room(element: str) -> tuple[int, int]:
    """Return the numbers up to which sums of a type are those of whole numbers."""
    return limits(element) if is_integer(element) else (-exact(element), exact(element))


def name_of(key: Any) -> str:
    """Return the name of a term's op without its dialect; "" of other terms."""
    return str(key[0]).split(".")[-1] if isinstance(key, tuple) else ""


def element_of(key: Any) -> str:
    """Return the type of the elements of a term; "" of other terms."""
    if not isinstance(key, tuple):
        return ""
    if key[0] == "compare":
        return "i1"
    if key[0] == "product":
        return str(key[3])
    if isinstance(key[0], str) and key[0].startswith(("stablehlo.", "chlo.")):
        return str(key[2]) if len(key) > 2 else ""
    return str(key[1]) if len(key) > 1 else ""


class Bounds:
    """The bounds of the terms of ``table``."""

    def __init__(self, table: Scalars) -> None:
        self.table = table
        self._known: dict[int, tuple[int, int]] = {}

    def of(self, number: int) -> tuple[int, int]:
        """Return the least and the greatest number that a term may be."""
        result = self._known.get(number)
        if result is None:
            result = self._known[number] = self._limits(number)
        return result

    def has(self, number: int) -> bool:
        return self.of(number) != _ANY

    def fits(self, operands: Sequence[int], element: str) -> bool:
        """Return whether a sum does not wrap, or round."""
        rows, (low, high) = [self.of(n) for n in operands], room(element)
        return low <= sum(r[0] for r in rows) and sum(r[1] for r in rows) <= high

    def constant(self, number: int) -> float | None:
        """Return the number that a constant of a float type is; None of other terms, and of great ones."""
        key = self.table.terms[number][0]
        if not isinstance(key, tuple) or key[0] != "constant" or key[1].startswith("complex"):
            return None
        value = float(np.frombuffer(key[2], element_type(key[1]).dtype)[0])
        return value if np.isfinite(value) and abs(value) < WIDE else None

    def is_integers(self, number: int) -> bool:
        """Return whether all that a table chooses from are integers."""
        _, rows = segments(self.table, number)
        return all(self.table.is_known(c) or shift_of(self.table, c) is not None for _, c in rows)

    def _limits(self, number: int) -> tuple[int, int]:
        table = self.table
        key, operands = table.terms[number]
        if table.is_known(number):
            return (table.number(number),) * 2
        if table.head_of(number) in (CHOICE, FUNCTION) and self.is_integers(number):
            base, rows = segments(table, number)
            ends = [*(s for s, _ in rows[1:]), table.ranges[base][1]]
            spans = [(start + by, end - 1 + by) if (by := shift_of(table, c)) is not None else self.of(c)
                     for (start, c), end in zip(rows, ends, strict=True)]  # fmt: skip
            return min(low for low, _ in spans), max(high for _, high in spans)
        most = _ANY
        if number in table.ranges:
            low, high = table.ranges[number]
            most = low, high - 1
        name, element = name_of(key), element_of(key)
        if element == "i1":
            return 0, 1
        if name == "constant":
            value = self.constant(number)
            return (int(value),) * 2 if value is not None and value == int(value) else most
        if name == "convert" and is_integer(str(key[2])) and not is_integer(element):
            low, high = self.of(operands[0])
            return (low, high) if -exact(element) <= low and high <= exact(element) else most
        if is_integer(element) and most == _ANY:
            most = limits(element)
        if name in _OF_ENDS and len(key) == 2:
            low, high = (_OF_ENDS[name](ends) for ends in zip(*map(self.of, operands), strict=True))
            least, greatest = room(element)
            return (low, high) if least <= low and high <= greatest else most
        return most
