"""Exceptions that nobody expected, as diagnostics."""

from __future__ import annotations

import os
import traceback

from shardpass.diagnostics.core import ShardpassError
from shardpass.diagnostics.table_driver import INTERNAL

TRACEBACK = "SHARDPASS_TRACEBACK"


def internal_error(where: str, error: Exception) -> ShardpassError:
    """``error``, which should never have come this far, as a diagnostic that says ``where`` it arose.

    The traceback is shown only where the environment says SHARDPASS_TRACEBACK=1.
    """
    shown = ""
    if os.environ.get(TRACEBACK, "0") not in ("", "0"):
        shown = "".join(traceback.format_exception(error)).rstrip()
    reason = f"{type(error).__name__}: {error}".strip().removesuffix(":")
    return INTERNAL.error(excerpt=shown, name=where, reason=reason)
