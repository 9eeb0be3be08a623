"""The smallest part of a sequence that still fails: pieces are left out, from halves down to single elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T", bound=Any)  # bytes, a text or a list: it is cut and joined


def smallest(whole: T, fails: Callable[[T], bool], tries: int) -> T:
    """``whole`` without all that can be left out while it ``fails``; no more than ``tries`` questions."""
    size = max(1, len(whole) // 2)
    while tries > 0 and len(whole):
        at, before = 0, len(whole)
        while at < len(whole) and tries > 0:
            less = whole[:at] + whole[at + size :]
            tries -= 1
            if fails(less):
                whole = less
            else:
                at += size
        if size == 1 and len(whole) == before:
            break
        size = max(1, min(size // 2, len(whole) // 2))
    return whole
