"""The collectives of optimised HLO, and whether XLA added any to those of the module it was given.

The rule of ``added_by_xla``: a collective of the HLO is accounted for by one of the module over the same devices, of
the same kind. XLA may merge several into one, drop one that nothing needs, and turn an all_reduce into a
reduce_scatter or back; so those two count as one kind, and the module may have more than the HLO. What the HLO has
beyond that, XLA's partitioner has put there.

"The same devices": the same sets, in the same order where the order matters (not for a reduction's sum); of a
permute, the same pairs, but those of a device with itself.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from shardpass.ir.annotations import NUM_PARTITIONS
from shardpass.ir.collectives import OPS
from shardpass.ir.tensors import every_op, operation
from shardpass.sharding import AxisRef, Sharding, parse_mesh

Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A collective by kind (StableHLO's name) and by who talks to whom: groups, or pairs of a permute."""

    kind: str
    groups: Groups

    @property
    def key(self) -> tuple[str, frozenset[Any]]:
        """Equal for collectives that account for each other."""
        if self.kind in ("all_reduce", "reduce_scatter"):
            return "reduction", frozenset(map(frozenset, self.groups))
        return self.kind, frozenset(self.groups)

    def __str__(self) -> str:
        return f"{self.kind} {[list(group) for group in self.groups]}"


def added_by_xla(hlo_text: str, module: Any) -> list[Exchange]:
    """What the HLO has that the partitioned module does not account for; empty when XLA added nothing."""
    left = Counter(exchange.key for exchange in emitted(module))
    found = []
    for exchange in collectives_in(hlo_text, module.operation.attributes[NUM_PARTITIONS].value):
        if left[exchange.key] > 0:
            left[exchange.key] -= 1
        else:
            found.append(exchange)
    return found


def emitted(module: Any) -> list[Exchange]:
    """The collectives of a partitioned module, in the order of its text."""
    ops = (inner for op in module.body.operations for inner in every_op(operation(op)))
    devices = module.operation.attributes[NUM_PARTITIONS].value
    return [_of_op(op, devices) for op in ops if op.name in OPS]


def _of_op(op: Any, devices: int) -> Exchange:
    kind = op.name.removeprefix("stablehlo.")
    name = "source_target_pairs" if kind == "collective_permute" else "replica_groups"
    rows = np.array(op.attributes[name]).tolist()
    return Exchange(kind, _moving(kind, rows) or _everybody(kind, devices))


def _moving(kind: str, rows: Any) -> Groups:
    """Rows as tuples, without the padding of short groups and without pairs that move nothing."""
    groups = (tuple(device for device in row if device >= 0) for row in rows)
    return tuple(g for g in groups if kind != "collective_permute" or g[0] != g[1])


def _everybody(kind: str, devices: int) -> Groups:
    return () if kind == "collective_permute" else (tuple(range(devices)),)


# --- HLO's text

_OP = re.compile(
    r"^\s*(?:ROOT )?%?[\w.\-]+ = (?:\(.*?\)|\S+) "
    r"(all-gather|all-reduce|all-to-all|ragged-all-to-all|collective-broadcast|collective-permute|reduce-scatter)"
    r"(?:-start)?\(",
    re.MULTILINE,
)
_ROWS = re.compile(r"\{([0-9, ]*)\}")
_LISTED = re.compile(r"(?:replica_groups|source_target_pairs)=\{((?:\{[0-9, ]*\},? ?)*)\}")
_IOTA = re.compile(r"replica_groups=\[(\d+),(\d+)\]<=\[([0-9,]+)\](?:T\(([0-9,]+)\))?")
_MESH = "replica_groups=mesh['"
_AXIS_ENDS = re.compile(r"'=(\d+)(,'|\])")  # behind a name: its size, and the next name or the end
_DEVICE_IDS = r"(, ?device_ids=\((?:[^()]|\([^()]*\))*\))?,? ?"
_PART = r"(?::\((\d+)\)(\d+))?"


def collectives_in(hlo_text: str, devices: int) -> Iterator[Exchange]:
    """The collectives of optimised HLO, in the order of the text; an asynchronous pair counts once.

    Replica groups are read in the three forms that XLA prints: lists, iota tiles and mesh axes.
    """
    for kind, line in collective_lines(hlo_text):
        yield Exchange(kind, _moving(kind, _rows(line, devices)) or _everybody(kind, devices))


def collective_lines(hlo_text: str) -> Iterator[tuple[str, str]]:
    """(kind, line) of each collective of optimised HLO, as ``collectives_in`` takes them."""
    for match in _OP.finditer(hlo_text):
        end = hlo_text.find("\n", match.end())
        yield match[1].replace("-", "_"), hlo_text[match.start() : end if end >= 0 else None]


_APPLIED = re.compile(r"to_apply=%?([\w.\-]+)")
_FLOAT_EXTREME = re.compile(r"= b?f\d\w*\[\]\S* (?:maximum|minimum)\(")


def has_float_extremes(hlo_text: str) -> bool:
    """Whether collectives of optimised HLO take the max or min of floats."""
    applied = {found[1] for _, line in collective_lines(hlo_text) if (found := _APPLIED.search(line))}
    bodies = (re.search(rf"^%?{re.escape(name)} .*?^\}}", hlo_text, re.MULTILINE | re.DOTALL) for name in applied)
    return any(body is not None and _FLOAT_EXTREME.search(body[0]) for body in bodies)


def _rows(line: str, devices: int) -> list[list[int]]:
    if found := _LISTED.search(line):
        return [_numbers(row) for row in _ROWS.findall(found[1])]
    if found := _IOTA.search(line):
        order = np.arange(np.prod(_numbers(found[3]))).reshape(_numbers(found[3]))
        if found[4]:
            order = order.transpose(_numbers(found[4]))
        rows: list[list[int]] = order.reshape(int(found[1]), int(found[2])).tolist()
        return rows
    _, mesh, rest = line.partition(_MESH)
    return _mesh_groups(rest, devices) if mesh else []


def _mesh_groups(text: str, devices: int) -> list[list[int]]:
    """The groups of ``a'=4,'b'=2] {'b'}``, which follows ``mesh['``.

    XLA prints names as they are, quotes, brackets and commas too: of the ways to read the text, the first is taken
    whose axes have ``devices`` devices and whose groups are over its axes.
    """
    for axes, rest in _meshes(text):
        index = {name: k for k, (name, _) in enumerate(axes)}
        one = f"'({'|'.join(map(re.escape, sorted(index, key=len, reverse=True)))})'{_PART}"
        found = re.match(rf"{_DEVICE_IDS}\{{((?:{one}(?:,(?=')|(?=\}})))*)\}}", rest)
        if found is None or math.prod(size for _, size in axes) != devices:
            continue
        numbered = ",".join(f"'{k}'={size}" for k, (_, size) in enumerate(axes))
        mesh = parse_mesh(f"mesh[{numbered}]{found[1] or ''}")
        over = [
            AxisRef(str(index[name]), int(pre or 1), int(size) if size else None)
            for name, pre, size in re.findall(rf"{one}(?:,|$)", found[2])
        ]
        groups: list[list[int]] = Sharding.tiled(mesh, ()).groups(over).tolist()
        return groups
    return []


def _meshes(text: str, begin: int = 0) -> Iterator[tuple[tuple[tuple[str, int], ...], str]]:
    """The axes that ``text`` may list from ``begin``, and what follows them; the shortest names first."""
    for end in _AXIS_ENDS.finditer(text, begin):
        axis = (text[begin : end.start()], int(end[1]))
        if end[2] == "]":
            yield (axis,), text[end.end() :]
        else:
            yield from (((axis, *axes), rest) for axes, rest in _meshes(text, end.end()))


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.replace(" ", "").split(",") if number]
