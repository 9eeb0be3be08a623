"""Convert unexpected exceptions to diagnostics."""

from __future__ import annotations

import os
import re
import sys
import traceback
from types import TracebackType

from shardpass.diagnostics.core import NOWHERE, Place, ShardpassError
from shardpass.diagnostics.table_driver import FOREIGN, INTERNAL, NO_MEMORY, NOT_A_NAME, TOO_DEEP
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


# whose frames are no code of others: what shardpass stands on, and itself
_KNOWN = (
    frozenset({"shardpass", "jax", "jaxlib", "numpy", "scipy", "lark", "ml_dtypes", "onnx", "google", "rich"})
    | sys.stdlib_module_names
)
_OWN_FILES = os.path.dirname(os.path.dirname(__file__)) + os.sep


def internal_error(where: str, error: Exception, place: Place = NOWHERE) -> ShardpassError:
    """Convert ``error``, which no code caught earlier, to a diagnostic; ``where``: the work in progress.

    If code of another package raised it, that code is named with its place (SP139).

    Some exceptions are due to the input or the machine rather than to a fault: SP124 for too deep nesting, SP125
    where there is no memory, SP135 for strings that are no text, SP245 for attributes that the bindings cannot read.
    The traceback is shown only where the environment says SHARDPASS_TRACEBACK=1.
    """
    if isinstance(error, RecursionError):
        return TOO_DEEP.error(place, name=where, reason=str(error))
    if isinstance(error, MemoryError) or str(error).startswith(_NO_ROOM):
        return NO_MEMORY.error(place, name=where)
    if isinstance(error, UnicodeDecodeError) or any(hint in str(error) for hint in _NO_TEXT):
        return NOT_A_NAME.error(place, name=where)
    if isinstance(error, TypeError) and _NO_CLASS.search(str(error)):
        return UNREADABLE_ATTRIBUTE.error(place, what=f"{where} met a location or an array of complex numbers")
    reason = f"{type(error).__name__}: {error}".strip().removesuffix(":")
    shown = ""
    if os.environ.get(TRACEBACK, "0") not in ("", "0"):
        shown = "".join(traceback.format_exception(error)).rstrip()
    if (step := _foreign_step(error)) is not None:
        code, package = step.tb_frame.f_code, str(step.tb_frame.f_globals.get("__name__", "?"))
        its_place = Place(code.co_filename, step.tb_lineno)
        return FOREIGN.error(
            its_place, excerpt=shown, name=where, package=package, function=code.co_qualname, reason=reason
        )
    return INTERNAL.error(place, excerpt=shown, name=where, reason=reason)


def _foreign_step(error: BaseException) -> TracebackType | None:
    """Return the innermost call between the handler and ``error`` that is in code of the user or another package.

    File names decide too, as ``__main__`` may be a module of shardpass, run by ``python -m``.
    """
    foreign, step = None, error.__traceback__
    step = None if step is None else step.tb_next  # the first is of who caught it, which is shardpass
    while step is not None:
        package = str(step.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in _KNOWN and not step.tb_frame.f_code.co_filename.startswith((_OWN_FILES, "<frozen")):
            foreign = step
        step = step.tb_next
    return foreign
