"""Reducers: the op of a reduction, its type, and of sums of floats whether they begin at 0.

    ("add", "f32")         sums to which 0 was added: of -0 alone such a sum is 0
    ("add", "f32", BARE)   sums of their summands alone, as of -0: of -0 alone such a sum is -0

A sum is -0 only if all that is added is -0, in whatever order, so the two are all that there is to know of 0: to add 0
to a sum of the first kind changes nothing, and -0 changes no sum at all. A program of one device adds 0 once for each
device, which is as good as once.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from shardpass.element_types import element_type
from shardpass.proving.relations.terms import Terms

BARE = "bare"
Reducer = tuple[str, ...]


@cache
def has_negative_zero(element: str) -> bool:
    """Return whether a type has 0 and -0."""
    dtype = element_type(element).dtype
    if element.startswith("complex"):
        return True
    if dtype is None or "f" not in element:
        return False
    value = np.array(-0.0).astype(dtype).astype(np.float64)
    return bool(value == 0 and np.signbit(value))


def bare(name: str, element: str) -> Reducer:
    """Return the reducer without a start value."""
    return (name, element, BARE) if name == "add" and has_negative_zero(element) else (name, element)


def adds_up(inner: Hashable, outer: Reducer) -> bool:
    """Return whether parts of a reduction by ``inner`` are reduced by the op and in the type of ``outer``."""
    return isinstance(inner, tuple) and inner[:2] == outer[:2]


def goes_on(inner: Hashable, outer: Reducer) -> bool:
    """Return whether a reduction by ``outer`` of reductions by ``inner`` is one by ``outer`` of what these reduce."""
    return inner == outer or (adds_up(inner, outer) and isinstance(inner, tuple) and len(inner) > len(outer))


def from_zero(terms: Terms, number: int) -> int:
    """Return the sum from 0 in place of a sum without a start, if the table has it; otherwise ``number``.

    Beside a sum from 0 the two are one: what both add up to has 0 in it.
    """
    term = terms.all[number]
    if term.key[0] != "reduce" or not isinstance(term.reducer, tuple) or len(term.reducer) < 3:
        return number
    reducer = term.reducer[:2]
    for part in dict.fromkeys((term.parts[0], from_zero(terms, term.parts[0]))):
        key = (term.key[0], reducer, *term.key[2:])
        known = terms.known(replace(term, key=key, parts=(part,), reducer=reducer))
        if known is not None:
            return known
    return number


def has_zero(reducer: Any) -> bool:
    """Return whether 0 was added to the sums of ``reducer``."""
    return isinstance(reducer, tuple) and len(reducer) == 2 and reducer[0] == "add" and has_negative_zero(reducer[1])
