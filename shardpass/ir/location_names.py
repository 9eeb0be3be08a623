"""Check that names in locations, attributes and annotations are UTF-8 without NUL.

MLIR's strings are bytes. ``NameLoc.name_str`` and the names of a ``DictAttr`` or of an op's attributes end the process
where they are no UTF-8 (jaxlib 0.10, 0.12), and no exception can be caught; printed, such a byte is ``\\FF``, as in
MLIR's text. So a module is checked once, when it is read: as printed text without large constants, and name by name
only where that text escapes a byte above 7F. The value of an attribute may be any bytes, as a backend's are.
A name with a NUL is cut off there by the bindings, or has none at all.
"""

from __future__ import annotations

import re
from typing import Any

from shardpass.ir.text_locations import located
from shardpass.ir.walk import every_op, operation

_ESCAPED = re.compile(r'\\[\\"]|((?:\\[0-9A-Fa-f]{2})+)')
_STRING = r'"((?:[^"\\]|\\.)*)"'
_KEY = re.compile(f"{_STRING}(?= = )|(?<={{){_STRING}(?=[,}}])|(?<=, ){_STRING}(?=}})")  # the last two: without a value
_STRANGE = re.compile(rb"\\(?:[89A-Fa-f][0-9A-Fa-f]|00)")


def may_hold_bytes(text: bytes) -> bool:
    """Return whether a string in the MLIR text ``text`` may contain NUL or bytes that are not UTF-8."""
    return b"\\" in text and _STRANGE.search(text) is not None


def is_utf8(text: bytes) -> bool:
    """Return whether all strings of the MLIR text ``text`` are UTF-8."""
    try:
        _decode(text.decode())
    except UnicodeDecodeError:
        return False
    return True


def check_names(module: Any) -> None:
    """Raise UnicodeDecodeError for a name that is not UTF-8, or, except in locations, that contains a NUL.

    Checks the names of locations, attributes and annotations.
    """
    shown = module.operation.get_asm(
        enable_debug_info=True,
        use_local_scope=True,
        large_elements_limit=1,
        large_resource_limit=1,
        assume_verified=True,
    )
    if not may_hold_bytes(shown.encode()):
        return
    known: set[str] = set()
    for _, location in located(module):
        text = str(location)
        if "\\" in text and text not in known:
            known.add(text)
            _decode(text)
    for op in (module.operation, *every_op(module.operation)):
        alone = operation(op).get_asm(
            print_generic_op_form=True,
            skip_regions=True,
            use_local_scope=True,
            large_elements_limit=1,
            assume_verified=True,
        )
        for key in _KEY.finditer(alone):
            _decode(key[1] or key[2] or key[3] or "", nul=False)


def _decode(text: str, *, nul: bool = True) -> None:
    for match in _ESCAPED.finditer(text):
        raw = bytes.fromhex((match[1] or "").replace("\\", ""))
        raw.decode()
        if not nul and 0 in raw:
            raise UnicodeDecodeError("utf-8", raw, 0, len(raw), "a NUL in a name")
