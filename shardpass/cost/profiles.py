"""Machines of switches from files of the older form, which were called profiles.

The file is a JSON object of a machine of switches; seconds, bytes, bytes a second::

    {"name": "two hosts", "latency": 5e-05, "bandwidth": 3e9, "copies": 1e12,
     "blocks": [{"devices": 8, "latency": 1e-05, "bandwidth": 5e10}]}

``blocks`` are tiers of neighbouring device ids, the innermost first. ``about``, ``products`` (multiplications with an
addition each, a second) and ``blocks`` may be left out; likewise what local work takes (``runs``, ``elements`` and
``places`` a second, and ``gathers_by_pieces``, ``cuts_by_slices`` and ``floats_as_bits``, true or false;
``program.local_work``). Other fields are notes.
"""

from __future__ import annotations

import json
import math
from functools import lru_cache
from pathlib import Path
from typing import Any

from shardpass.cost.links import Link
from shardpass.cost.machine import Machine, switched
from shardpass.diagnostics import table_redistribute as table

LEAST, MOST = 1e-50, 1e50  # what a number may be, so that no time and no price grows beyond all floats
MOST_SHOWN = 60  # characters of a number
RATES = ("runs", "elements", "places")
FLAGS = ("gathers_by_pieces", "cuts_by_slices", "floats_as_bits")
PRODUCTS = 3.2e12  # of a file that does not say it


def read_profile(file: str) -> Machine:
    """Read the machine in ``file``. Raises ShardpassError (SP414) if it cannot be read or describes none."""
    try:
        state = Path(file).stat()
        return _read(file, state.st_mtime_ns, state.st_size)
    except OSError as error:
        raise table.PROFILE_FILE.error(file=file, reason=error.strerror or str(error)) from None
    except ValueError as error:  # not UTF-8, no JSON, or no machine
        raise table.PROFILE_FILE.error(file=file, reason=str(error)) from None


@lru_cache(maxsize=16)
def _read(file: str, changed: int, size: int) -> Machine:
    return from_json(json.loads(Path(file).read_text()), Path(file).stem)


def from_json(data: Any, name: str) -> Machine:
    """Build the machine of parsed JSON, called ``name`` if it names none. Raises ValueError."""
    if not isinstance(data, dict):
        raise ValueError("it is not a JSON object")
    if "axes" in data:
        raise ValueError("links by mesh axis are read no longer; say them as blocks of neighbouring devices")
    blocks = data.get("blocks", [])
    if not isinstance(blocks, list):
        raise ValueError("blocks must be a list")
    sizes = [_number(block, "devices", f"blocks[{i}]") for i, block in enumerate(blocks)]
    if sizes != sorted(set(sizes)) or any(n != int(n) for n in sizes):
        raise ValueError("the devices of blocks must be whole numbers, the smallest first")
    inner = [_link(block, f"blocks[{i}]") for i, block in enumerate(blocks)]
    products = PRODUCTS if "products" not in data else _number(data, "products", "the profile", infinite=True)
    local = {field: _rate(data, field) for field in RATES} | {field: _flag(data, field) for field in FLAGS}
    return switched(
        str(data.get("name", name)),
        *_link(data, "the profile"),
        _number(data, "copies", "the profile", infinite=True),
        blocks=[(int(n), *link) for n, link in zip(sizes, inner, strict=True)],
        flops=2 * products,
        about=str(data.get("about", "")),
        **{field: value for field, value in local.items() if value},
    )


def to_json(machine: Machine) -> dict[str, Any]:
    """Write ``machine``, one of switches, as JSON for ``from_json``."""
    *inner, outer = machine.links
    data: dict[str, Any] = {"name": machine.name, "about": machine.about, **_link_json(outer)}
    data |= {"copies": machine.memory_bandwidth, "products": machine.rate("f32") / 2, **machine.local}
    if inner:
        data["blocks"] = [{"devices": link.devices, **_link_json(link)} for link in inner]
    return data


def _link_json(link: Link) -> dict[str, float]:
    return {"latency": link.latency, "bandwidth": link.bandwidth}


def _link(data: Any, where: str) -> tuple[float, float]:
    return _number(data, "latency", where, zero=True), _number(data, "bandwidth", where, infinite=True)


def _rate(data: dict[str, Any], field: str) -> float | None:
    return _number(data, field, "the profile", infinite=True) if field in data else None


def _flag(data: dict[str, Any], field: str) -> bool:
    value = data.get(field, False)
    if not isinstance(value, bool):
        raise ValueError(f"{field!r} of the profile is {value!r}, which is neither true nor false")
    return value


def _number(data: Any, field: str, where: str, *, zero: bool = False, infinite: bool = False) -> float:
    """Check a positive number from ``LEAST`` to ``MOST``; ``zero`` also allows 0, ``infinite`` also infinity."""
    value = data.get(field) if isinstance(data, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:  # NaN
        raise ValueError(f"{where} has no number {field!r}")
    if value < 0 or (value == 0 and not zero):
        raise ValueError(f"{field!r} of {where} is {_shown(value)}, which is not {'from 0 up' if zero else 'above 0'}")
    if value and not LEAST <= value <= MOST and not (infinite and value == math.inf):
        raise ValueError(
            f"{field!r} of {where} is {_shown(value)}, which is too {'large' if value > 1 else 'small'}: a number is "
            f"from {LEAST:g} to {MOST:g}"
        )
    return float(value)


def _shown(value: float) -> str:
    text = str(value)
    return text if len(text) <= MOST_SHOWN else f"a number of {len(text.lstrip('-'))} digits"
