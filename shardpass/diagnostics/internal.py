"""Exceptions that nobody expected, as diagnostics."""

from __future__ import annotations

import os
import re
import traceback

from shardpass.diagnostics.core import NOWHERE, Place, ShardpassError
from shardpass.diagnostics.table_driver import INTERNAL, NO_MEMORY, NOT_A_NAME, TOO_DEEP
from shardpass.diagnostics.table_passes import UNREADABLE_ATTRIBUTE

TRACEBACK = "SHARDPASS_TRACEBACK"
# what LLVM says of a list longer than it counts, which comes here as a ValueError
_NO_ROOM = "SmallVector unable to grow"
# what MLIR's bindings say where a string is no UTF-8: jaxlib 0.10, 0.12
_NO_TEXT = ("str_from_cstr_and_size(): conversion error", "nanobind::str(): conversion error")
# and where they have no class for the value of an attribute
_NO_CLASS = re.compile(
    r"Can't cast unknown element type|-> jaxlib[\w.]*\.ir\.\w*Loc\n\nInvoked with types: \S*\.Attribute$"
)


def internal_error(where: str, error: Exception, place: Place = NOWHERE) -> ShardpassError:
    """``error``, which should never have come this far, as a diagnostic that says ``where`` it arose.

    Some exceptions tell of the input or the machine rather than of a fault: SP124 for what nests too deep, SP125 where
    there is no memory, SP135 for strings that are no text, SP245 for attributes that the bindings cannot read. The
    traceback is shown only where the environment says SHARDPASS_TRACEBACK=1.
    """
    if isinstance(error, RecursionError):
        return TOO_DEEP.error(place, name=where, reason=str(error))
    if isinstance(error, MemoryError) or str(error).startswith(_NO_ROOM):
        return NO_MEMORY.error(place, name=where)
    if isinstance(error, UnicodeDecodeError) or any(said in str(error) for said in _NO_TEXT):
        return NOT_A_NAME.error(place, name=where)
    if isinstance(error, TypeError) and _NO_CLASS.search(str(error)):
        return UNREADABLE_ATTRIBUTE.error(place, what=f"{where} met a location or an array of complex numbers")
    shown = ""
    if os.environ.get(TRACEBACK, "0") not in ("", "0"):
        shown = "".join(traceback.format_exception(error)).rstrip()
    reason = f"{type(error).__name__}: {error}".strip().removesuffix(":")
    return INTERNAL.error(place, excerpt=shown, name=where, reason=reason)
