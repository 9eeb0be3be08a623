"""The pieces of XLA's sharding text, printed from plain data.

The functions take digits, device lists and words, and know no mesh and no sharding. So the meshes and shardings
above this module can print themselves (``str``), and the notations use the same pieces.
The spelling is that of XLA's HloSharding::Print, IotaTileAssignment::Print and NamedSharding, but for names that XLA
prints so that nobody can read them again: those have the escapes that XLA's parser takes (``quoting``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shardpass.sharding.digits import Digit, Ints, merge, shape_and_perm
from shardpass.sharding.quoting import c_quoted


def comma_separated(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


def list_text(devices: Ints) -> str:
    """Format a V1 device list: ``0,2,1,3``."""
    return comma_separated(devices.tolist())


def iota_text(digits: Iterable[Digit]) -> str:
    """Format a V2 device order, from digits that cover all positions: ``[2,4]T(1,0)``."""
    parts = merge(digits)
    if len(parts) < 2:
        return f"[{parts[0][1] if parts else 1}]"
    shape, perm = shape_and_perm(parts)
    return f"[{comma_separated(shape)}]T({comma_separated(perm)})"


def subgroups_text(kinds: Sequence[str]) -> str:
    """Format the attribute that names the subgroups, the last dimensions of a tile assignment, after a blank."""
    if not kinds:
        return ""
    if list(kinds) == ["replicated"]:
        return " last_tile_dim_replicate"
    return f" last_tile_dims={{{', '.join(kinds)}}}"


def tiles_text(counts: Iterable[int], devices: str, kinds: Sequence[str]) -> str:
    """Format a tile assignment without braces; ``devices``: a V1 list, or ``<=`` and a V2 order."""
    return f"devices=[{comma_separated(counts)}]{devices}{subgroups_text(kinds)}"


def group_text(group: tuple[str, int] | None) -> str:
    """Format ``shard_as`` or ``shard_like`` with the number of the group, after a blank."""
    return f" {group[0]} {group[1]}" if group else ""


def mesh_text(axes: Iterable[tuple[str, int]], device_ids: str | None = None) -> str:
    """Format a V3 mesh: ``mesh['x'=4,'y'=2], device_ids=([2,4]T(1,0))``; no ids where devices count up."""
    shown = ",".join(f"{c_quoted(name)}={size}" for name, size in axes)
    return f"mesh[{shown}]" if device_ids is None else f"mesh[{shown}], device_ids=({device_ids})"


def with_metadata(text: str, entries: Sequence[str], *, named: bool) -> str:
    """Insert ``metadata={..}`` before the last brace of ``text``; the named form (V3) always has a list."""
    if not entries:
        return text
    listed = ", ".join("{" + entry + "}" for entry in entries)
    if named:
        return f"{text[:-1]}, metadata={{{listed}}}}}"
    return f"{text[:-1]} metadata={{{entries[0] if len(entries) == 1 else listed}}}}}"
