"""Check the arguments of public functions, and name the wrong argument in errors.

An argument may be any object of Python, also one whose ``repr``, attributes or comparisons raise.
"""

from __future__ import annotations

import operator
from typing import Any

from shardpass.diagnostics.core import ShardpassError
from shardpass.diagnostics.table_driver import ARGUMENT

MOST_SHOWN = 60


def shown(value: object) -> str:
    """Format ``value`` for a message: its text or ``repr``, shortened; if that raises, its class."""
    try:
        text = value if isinstance(value, str) else repr(value)
        return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."
    except Exception:
        return f"<an object of class {type(value).__name__}, whose repr raises>"


def wrong_argument(function: str, argument: str, value: object, wanted: str) -> ShardpassError:
    """Make the error (SP140) for an ``argument`` of a public ``function`` that is not ``wanted``."""
    kind = type(value).__name__
    return ARGUMENT.error(function=function, argument=argument, value=shown(value), type=kind, wanted=wanted)


def text_of(function: str, argument: str, value: object, wanted: str) -> str:
    """Return ``value`` as a plain str. Raises ShardpassError (SP140) for other types."""
    if type(value) is str:
        return value
    if not isinstance(value, str):
        raise wrong_argument(function, argument, value, wanted)
    return "".join([value])  # of a class of the user's, which may have no hash


def whole(value: Any) -> int | None:
    """Return ``value`` as an int; None if ``value`` is not a whole number (bool included)."""
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return None
    try:
        return operator.index(value)
    except Exception:
        return None


def has(value: Any, name: str) -> bool:
    """Return whether an object that may raise anything has the attribute ``name``."""
    try:
        return hasattr(value, name)
    except Exception:
        return False
