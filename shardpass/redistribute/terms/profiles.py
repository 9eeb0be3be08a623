"""Profiles by name or from a file, as ``python -m tools.bench.calibrate`` writes them and ``profile=`` takes them.

The file is a JSON object with the fields of ``Profile``; seconds, bytes, bytes a second::

    {"name": "two hosts", "latency": 5e-05, "bandwidth": 3e9, "copies": 1e12,
     "blocks": [{"devices": 8, "latency": 1e-05, "bandwidth": 5e10}],
     "axes": {"model": {"latency": 1e-05, "bandwidth": 5e10}}}

``about``, ``products``, ``blocks`` and ``axes`` may be left out, and not both of the last two be there; likewise what
local work takes (``runs``, ``elements`` and ``places`` a second, and ``gathers_by_pieces``, ``cuts_by_slices`` and
``floats_as_bits``, true or false; ``program.local_work``). Other fields are notes.
"""

from __future__ import annotations

import json
import math
from functools import lru_cache
from pathlib import Path
from typing import Any

from shardpass.diagnostics import table_redistribute as table
from shardpass.diagnostics.arguments import shown
from shardpass.redistribute.terms.costs import PRODUCTS, PROFILES, Link, Profile

LEAST, MOST = 1e-50, 1e50  # what a number may be, so that no time and no price grows beyond all floats
MOST_SHOWN = 60  # characters of a number
LOCAL = ("runs", "elements", "places", "gathers_by_pieces", "cuts_by_slices", "floats_as_bits")


def find_profile(given: str | Profile) -> Profile:
    """The profile of that name, or that the file ``given`` (its name ends in .json) holds.

    Raises ShardpassError: SP411 (no such name), SP414 (a file that cannot be read, or holds no profile).
    """
    if isinstance(given, Profile):
        return _checked(given)
    if type(given) is str and given in PROFILES:
        return PROFILES[given]
    if type(given) is not str or not given.endswith(".json"):
        raise table.PROFILE.error(name=shown(given), known=", ".join(PROFILES))
    try:
        state = Path(given).stat()
        return _read(given, state.st_mtime_ns, state.st_size)
    except OSError as error:
        raise table.PROFILE_FILE.error(file=given, reason=error.strerror or str(error)) from None
    except ValueError as error:  # not UTF-8, no JSON, or no profile
        raise table.PROFILE_FILE.error(file=given, reason=str(error)) from None


def _checked(profile: Profile) -> Profile:
    try:
        hash(profile)
    except TypeError:
        reason = f"{shown(profile)}, whose blocks and axes must be tuples"
        raise table.PROFILE.error(name=reason, known=", ".join(PROFILES)) from None
    return profile


@lru_cache(maxsize=16)
def _read(file: str, changed: int, size: int) -> Profile:
    return from_json(json.loads(Path(file).read_text()), Path(file).stem)


def from_json(data: Any, name: str) -> Profile:
    """The profile that parsed JSON means; ``name`` where it says none. Raises ValueError."""
    if not isinstance(data, dict):
        raise ValueError("it is not a JSON object")
    blocks, axes = data.get("blocks", []), data.get("axes", {})
    if not isinstance(blocks, list) or not isinstance(axes, dict):
        raise ValueError("blocks must be a list and axes an object")
    if blocks and axes:
        raise ValueError("it has both blocks and axes; give only one of the two")
    sizes = [_number(block, "devices", f"blocks[{i}]") for i, block in enumerate(blocks)]
    if sizes != sorted(set(sizes)) or any(n != int(n) for n in sizes):
        raise ValueError("the devices of blocks must be whole numbers, the smallest first")
    link = _link(data, "the profile")
    return Profile(
        str(data.get("name", name)),
        link.latency,
        link.bandwidth,
        _number(data, "copies", "the profile", infinite=True),
        str(data.get("about", "")),
        tuple((int(n), _link(block, f"blocks[{i}]")) for i, (n, block) in enumerate(zip(sizes, blocks, strict=True))),
        tuple((axis, _link(link, f"axes[{axis!r}]")) for axis, link in axes.items()),
        PRODUCTS if "products" not in data else _number(data, "products", "the profile", infinite=True),
        _rate(data, "runs"),
        _rate(data, "elements"),
        _rate(data, "places"),
        _flag(data, "gathers_by_pieces"),
        _flag(data, "cuts_by_slices"),
        _flag(data, "floats_as_bits"),
    )


def to_json(profile: Profile) -> dict[str, Any]:
    """What ``from_json`` reads as ``profile``."""
    data: dict[str, Any] = {"name": profile.name, "about": profile.about, **_link_json(profile.link)}
    data["copies"], data["products"] = profile.copies, profile.products
    data |= {field: value for field in LOCAL if (value := getattr(profile, field))}
    if profile.blocks:
        data["blocks"] = [{"devices": n, **_link_json(link)} for n, link in profile.blocks]
    if profile.axes:
        data["axes"] = {axis: _link_json(link) for axis, link in profile.axes}
    return data


def _link_json(link: Link) -> dict[str, float]:
    return {"latency": link.latency, "bandwidth": link.bandwidth}


def _link(data: Any, where: str) -> Link:
    return Link(_number(data, "latency", where, zero=True), _number(data, "bandwidth", where, infinite=True))


def _rate(data: dict[str, Any], field: str) -> float | None:
    return _number(data, field, "the profile", infinite=True) if field in data else None


def _flag(data: dict[str, Any], field: str) -> bool:
    value = data.get(field, False)
    if not isinstance(value, bool):
        raise ValueError(f"{field!r} of the profile is {value!r}, which is neither true nor false")
    return value


def _number(data: Any, field: str, where: str, *, zero: bool = False, infinite: bool = False) -> float:
    """A positive number from ``LEAST`` to ``MOST``; with ``zero`` also 0, with ``infinite`` also the infinite one."""
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
