"""Parse the groups of a collective in HLO: replica groups, and the pairs of a permute.

Replica groups have three forms: lists, ``{{0,1},{2,3}}``; iota tiles, ``[4,2]<=[2,4]T(1,0)``, which is iota(8) in the
shape [2,4], transposed, in rows of 2; and mesh axes, ``mesh['x'=4,'y'=2] {'x'}``. No groups are everybody.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from shardpass.sharding import AxisRef, Sharding, parse_mesh

Groups = tuple[tuple[int, ...], ...]
MOST_DEVICES = 1 << 20

_ROWS = re.compile(r"\{([0-9, ]*)\}")
_LISTED = re.compile(r"(?:replica_groups|source_target_pairs)=\{((?:\{[0-9, ]*\},? ?)*)\}")
_IOTA = re.compile(r"replica_groups=\[(\d+),(\d+)\]<=\[([0-9,]+)\](?:T\(([0-9,]+)\))?")
_MESH = "replica_groups=mesh['"
_AXIS_ENDS = re.compile(r"'=(\d+)(,'|\])")  # behind a name: its size, and the next name or the end
_DEVICE_IDS = r"(, ?device_ids=\((?:[^()]|\([^()]*\))*\))?,? ?"
_OVER_AXES = re.compile(r"replica_groups=mesh\['[^\]]*\](?:, ?device_ids=\((?:[^()]|\([^()]*\))*\))? ?\{[^}]*\}")
_PART = r"(?::\((\d+)\)(\d+))?"


def groups_of_line(kind: str, line: str, devices: int) -> Groups:
    """Parse the groups of a collective from the line of its HLO op; for a permute, pairs of different devices.

    Raises ValueError for iota tiles that are none, or of more than ``MOST_DEVICES``.
    """
    return moving(kind, _rows(line, devices)) or everybody(kind, devices)


def with_listed_groups(text: str, devices: int) -> str:
    """Rewrite groups over mesh axes in HLO text as lists, as XLA's conversion to StableHLO drops device ids.

    Raises ValueError for groups that have no reading.
    """

    def listed(match: re.Match[str]) -> str:
        rows = _rows(match[0], devices)
        if not rows:
            raise ValueError(f"{match[0]} has no reading on {devices} devices")
        return f"replica_groups={{{','.join('{' + ','.join(map(str, row)) + '}' for row in rows)}}}"

    result = _OVER_AXES.sub(listed, text)
    if _MESH in result:
        raise ValueError("groups over axes of a mesh have no reading")
    return result


def check_count(devices: int) -> None:
    """Raise ValueError for more devices than a report supports."""
    if devices > MOST_DEVICES:
        raise ValueError(f"{devices:,} devices are more than {MOST_DEVICES:,}")


def devices_of_line(line: str) -> int:
    """Count the devices that the groups of a collective of HLO name."""
    if _LISTED.search(line):
        return 1 + max((device for row in _rows(line, 0) for device in row), default=0)
    if match := _IOTA.search(line):
        return math.prod(_numbers(match[3]))
    _, mesh, rest = line.partition(_MESH)
    return max((math.prod(size for _, size in axes) for axes, _ in _meshes(rest)), default=1) if mesh else 1


def moving(kind: str, rows: Any) -> Groups:
    """Convert rows to tuples, without the padding of short groups and without pairs that move nothing."""
    groups = (tuple(device for device in row if device >= 0) for row in rows)
    return tuple(g for g in groups if kind != "collective_permute" or g[0] != g[1])


def everybody(kind: str, devices: int) -> Groups:
    """Return the group of a collective that names none: all devices. A permute without pairs moves nothing."""
    return () if kind == "collective_permute" else (tuple(range(devices)),)


def _rows(line: str, devices: int) -> list[list[int]]:
    if match := _LISTED.search(line):
        return [_numbers(row) for row in _ROWS.findall(match[1])]
    if match := _IOTA.search(line):
        check_count(math.prod(_numbers(match[3])))
        order = np.arange(np.prod(_numbers(match[3]))).reshape(_numbers(match[3]))
        if match[4]:
            order = order.transpose(_numbers(match[4]))
        rows: list[list[int]] = order.reshape(int(match[1]), int(match[2])).tolist()
        return rows
    _, mesh, rest = line.partition(_MESH)
    return _mesh_groups(rest, devices) if mesh else []


def _mesh_groups(text: str, devices: int) -> list[list[int]]:
    """Parse the groups in ``a'=4,'b'=2] {'b'}``, the text after ``mesh['``.

    XLA prints names without escapes, quotes, brackets and commas too. Of the possible readings of the text, the result
    is the first whose axes have ``devices`` devices and whose groups are over its axes.
    """
    for axes, rest in _meshes(text):
        index = {name: k for k, (name, _) in enumerate(axes)}
        one = f"'({'|'.join(map(re.escape, sorted(index, key=len, reverse=True)))})'{_PART}"
        match = re.match(rf"{_DEVICE_IDS}\{{((?:{one}(?:,(?=')|(?=\}})))*)\}}", rest)
        if match is None or math.prod(size for _, size in axes) != devices:
            continue
        numbered = ",".join(f"'x{k}'={size}" for k, (_, size) in enumerate(axes))  # plain names need no grammar
        mesh = parse_mesh(f"mesh[{numbered}]{match[1] or ''}")
        over = [
            AxisRef(f"x{index[name]}", int(pre or 1), int(size) if size else None)
            for name, pre, size in re.findall(rf"{one}(?:,|$)", match[2])
        ]
        groups: list[list[int]] = Sharding.tiled(mesh, ()).groups(over).tolist()
        return groups
    return []


def _meshes(text: str, begin: int = 0) -> Iterator[tuple[tuple[tuple[str, int], ...], str]]:
    """Yield the possible axes at ``begin`` in ``text``, with the text after them; shortest names first."""
    for end in _AXIS_ENDS.finditer(text, begin):
        axis = (text[begin : end.start()], int(end[1]))
        if end[2] == "]":
            yield (axis,), text[end.end() :]
        else:
            yield from (((axis, *axes), rest) for axes, rest in _meshes(text, end.end()))


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.replace(" ", "").split(",") if number]
