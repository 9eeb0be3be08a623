"""Memory limits of plans.

``"max"``: no tile is greater than the greater of the source's and the target's, as in Rink et al. It is the default,
and is kept wherever the borders of tiles nest; of the candidates that keep it, ``choice`` prefers those that need few
tiles at once. A number: bytes that may be alive together on a device at any moment, as ``program.memory`` counts; a
plan that takes more is not handed out. ``None``: any number.
"""

from __future__ import annotations

import re
from typing import Literal

from shardpass.diagnostics import table_redistribute as table
from shardpass.diagnostics.arguments import shown, whole

Limit = int | None | Literal["max"]

_UNITS = {"": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_BYTES = re.compile(r"\s*(?P<number>[0-9]{1,18}(?:\.[0-9]{1,9})?)\s*(?P<unit>[A-Za-z]*)\s*")


def read_limit(given: int | str | None) -> Limit:
    """Read a limit: ``"max"``, ``"none"`` or None, or bytes as a number or as text like ``24MiB``.

    Raises ShardpassError (SP412).
    """
    if given is None or (isinstance(given, str) and given == "none"):
        return None
    if isinstance(given, str) and given == "max":
        return "max"
    number = whole(given)
    if number is not None and number >= 0:
        return number
    match = _BYTES.fullmatch(given) if isinstance(given, str) else None
    if match is None or match["unit"] not in _UNITS or ("." in match["number"] and not match["unit"]):
        raise table.MEMORY_LIMIT.error(limit=shown(given))
    if "." in match["number"]:
        return int(float(match["number"]) * _UNITS[match["unit"]])
    return int(match["number"]) * _UNITS[match["unit"]]


def show_limit(limit: Limit) -> str:
    """Format a limit in the form that ``read_limit`` reads."""
    return "none" if limit is None else str(limit)


def show_bytes(count: int) -> str:
    """Format bytes with a unit: exact below 10 KiB, else three figures."""
    if count < 10240:
        return f"{count} B"
    value, units = float(count), iter(("KiB", "MiB", "GiB", "TiB", "PiB"))
    unit = "B"
    while value >= 1024 and (following := next(units, None)):
        value, unit = value / 1024, following
    return f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}"
