"""Names in locations, and of annotations of arguments and results, that are no UTF-8.

MLIR's strings are bytes. ``NameLoc.name_str`` and the names of a ``DictAttr`` end the process where they are no UTF-8
(jaxlib 0.10, 0.12), and no exception can be caught; printed, such a byte is ``\\FF``, as in MLIR's text. So modules are
asked once, where they come in: those of bytes always, and those of text where the text escapes a byte above 7F.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from shardpass.ir.walk import every_op, operation

_ESCAPED = re.compile(r'\\[\\"]|((?:\\[0-9A-Fa-f]{2})+)')
_KEY = re.compile(r'"((?:[^"\\]|\\.)*)"(?= = |[,}])')
_HIGH = re.compile(rb"\\[89A-Fa-f][0-9A-Fa-f]")


def may_hold_bytes(text: bytes) -> bool:
    """Whether a string of the MLIR text ``text`` may be anything but UTF-8."""
    return b"\\" in text and _HIGH.search(text) is not None


def check_names(module: Any) -> None:
    """Raises UnicodeDecodeError where a location or an annotation in ``module`` has a name that is no UTF-8."""
    known: set[str] = set()
    for location in _locations(module):
        text = str(location)
        if "\\" in text and text not in known:
            known.add(text)
            _decode(text)
    for op in module.body.operations:
        for side in ("arg_attrs", "res_attrs"):
            if side in op.attributes and "\\" in (text := str(op.attributes[side])):
                for key in _KEY.finditer(text):
                    _decode(key[1])


def _decode(text: str) -> None:
    for found in _ESCAPED.finditer(text):
        bytes.fromhex((found[1] or "").replace("\\", "")).decode()


def _locations(module: Any) -> Iterator[Any]:
    for op in every_op(module.operation):
        yield op.location
        for region in operation(op).regions:
            for block in region:
                yield from (argument.location for argument in block.arguments)
