"""Exceptions that nobody expected, as diagnostics."""

from __future__ import annotations

import os
import traceback

from shardpass.diagnostics.core import ShardpassError
from shardpass.diagnostics.table_driver import INTERNAL, NO_MEMORY, NOT_A_NAME, TOO_DEEP

TRACEBACK = "SHARDPASS_TRACEBACK"
# what MLIR's bindings say where a string is no UTF-8: jaxlib 0.10, 0.12
_NO_TEXT = ("str_from_cstr_and_size(): conversion error", "nanobind::str(): conversion error")


def internal_error(where: str, error: Exception) -> ShardpassError:
    """``error``, which should never have come this far, as a diagnostic that says ``where`` it arose.

    Three exceptions tell of the input or the machine rather than of a fault: SP124 for what nests too deep, SP125 where
    there is no memory, SP135 for strings that are no text. The traceback is shown only where the environment says
    SHARDPASS_TRACEBACK=1.
    """
    if isinstance(error, RecursionError):
        return TOO_DEEP.error(name=where, reason=str(error))
    if isinstance(error, MemoryError):
        return NO_MEMORY.error(name=where)
    if isinstance(error, UnicodeDecodeError) or any(said in str(error) for said in _NO_TEXT):
        return NOT_A_NAME.error(name=where)
    shown = ""
    if os.environ.get(TRACEBACK, "0") not in ("", "0"):
        shown = "".join(traceback.format_exception(error)).rstrip()
    reason = f"{type(error).__name__}: {error}".strip().removesuffix(":")
    return INTERNAL.error(excerpt=shown, name=where, reason=reason)
