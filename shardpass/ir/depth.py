"""Measure the nesting depth of MLIR text before it is parsed.

MLIR's parser calls itself for each level of regions, types and attributes, and ends the process where its stack is
full: at 2,500 nested regions, 4,000 modules, 10,000 lists or 20,000 tuples (jaxlib 0.10.2, a stack of 8 MiB).

The depth of a place is the number of brackets ``( [ { <`` that are open there. Brackets in strings and comments, and
the ``>`` of ``->``, do not count. O(size of the text), in NumPy; strings are matched one by one only where the text has
``//``, which may begin a comment.
"""

from __future__ import annotations

import re

import numpy as np

MOST = 2500  # a region in MLIR's generic form opens two brackets

_OPEN, _CLOSE = b"([{<", b")]}>"
_STEP = np.zeros(256, np.int8)
_STEP[list(_OPEN)] = 1
_STEP[list(_CLOSE)] = -1
# possessive: the elements of a large constant are one string, and a way back from each character is memory
_STRING_OR_COMMENT = re.compile(rb'"(?:[^"\\\n]++|\\.)*+"|//[^\n]*')
_ELEMENTS = re.compile(rb'"0x[0-9A-Fa-f]{64,}+"')


def too_deep(text: bytes) -> tuple[int, int] | None:
    """Return (line, depth) of the first place nested deeper than ``MOST``; lines count from 1. None without any."""
    if sum(text.count(bracket) for bracket in _OPEN) <= MOST:
        return None
    raw = _ELEMENTS.sub(b'""', text)
    if b"//" in raw:
        raw = _STRING_OR_COMMENT.sub(lambda match: b" " * len(match[0]), raw)
    data = np.frombuffer(raw, np.uint8)
    steps = _STEP[data]
    before = np.concatenate(([0], data[:-1]))
    quotes = (data == ord('"')) & (before != ord("\\"))
    steps[np.cumsum(quotes) % 2 == 1] = 0
    steps[(data == ord(">")) & (before == ord("-"))] = 0
    depth = np.cumsum(steps, dtype=np.int64)
    deep = np.flatnonzero(depth > MOST)
    if not len(deep):
        return None
    return raw.count(b"\n", 0, int(deep[0])) + 1, int(depth.max())
