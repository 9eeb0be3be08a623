"""List the collectives of a per-device module, with their bytes, axes, source lines and causes.

Bytes are those that one device receives from others, its own data not counted, with tiles of the per-device program
(``cost.collective`` has the formulas). Of a permute and a broadcast not every device receives; a total is added up by
device (``by_device``).

A collective in the body of a loop counts once for each trip (``trip_counts``); in a loop whose trips are not known it
counts once and is marked. Of the branches of a conditional only one runs, so only the branch that receives most counts.
Cost: one walk over the module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shardpass.by_device import Receivers, most_received
from shardpass.cost.collective import ALL_GATHER, BY_GLOBAL_IDS, FACTS, KINDS, bytes_received
from shardpass.diagnostics import NOWHERE, Place, ShardpassError
from shardpass.ir.annotations import AXES, CAUSE, get_text, mesh_of, num_devices
from shardpass.ir.frames import user_place
from shardpass.ir.order import bytes_of
from shardpass.ir.trip_counts import trip_count
from shardpass.ir.walk import BRANCHES
from shardpass.sharding import Mesh
from shardpass.sharding.axes import part_name, refs
from shardpass.sharding.primes import prime_factors
from shardpass.sharding.quoting import listed

Ints = npt.NDArray[np.int64]

OPS = frozenset(f"stablehlo.{kind}" for kind in KINDS)
OPS_BY_GLOBAL_IDS = frozenset(f"stablehlo.{kind}" for kind in BY_GLOBAL_IDS)
_LOOP = "stablehlo.while"


@dataclass(frozen=True, slots=True)
class CollectiveUse:
    """A collective op with its traffic.

    Attributes:
        axes: 'x', or 'x,y', major to minor; sub-axes as x:(2)4; "" if the groups are not along axes of the module's
            mesh.
        operand, result: the types of the tiles, 'tensor<4x8xf32>'; several are joined with ', '.
        group_size: the size of the largest group; for a permute 2 if anything moves.
        bytes_each: the bytes that a device receives in one execution.
        receivers: the receiving devices; None for every device.
        place: the user's line.
        reason: the reason of the op; "" without one.
        times: the number of executions; a loop with an unknown trip count counts once.
        unknown_loops: the number of enclosing loops with unknown trip counts.
        counted: False in a branch of a conditional if another branch receives more.
    """

    kind: str
    axes: str
    operand: str
    result: str
    group_size: int
    bytes_each: int
    place: Place
    reason: str
    receivers: Receivers = None
    times: int = 1
    unknown_loops: int = 0
    counted: bool = True

    @property
    def bytes_received(self) -> int:
        """Count the bytes that a receiver of the collective receives in one run of the program."""
        return self.bytes_each * self.times if self.counted else 0

    def __str__(self) -> str:
        over = f" over {self.axes}" if self.axes else ""
        where = f" at {self.place}" if self.place != NOWHERE else ""
        times = f", {self.times} times" if self.times != 1 else ""
        loop = ", in a loop of unknown length" if self.unknown_loops else ""
        reason = f": {self.reason}" if self.reason else ""
        return f"{self.kind}{over}, {self.bytes_each} bytes{times}{loop}{where}{reason}"

    def as_dict(self) -> dict[str, object]:
        """Convert to JSON: plain values under the names of the fields; ``axes`` as a list, ``place`` as file, line,
        column.
        """
        fields: dict[str, object] = {name: getattr(self, name) for name in self.__slots__ if name != "place"}
        fields["axes"] = listed(self.axes)
        place = {"file": self.place.file, "line": self.place.line, "column": self.place.column}
        return {**fields, "bytes_received": self.bytes_received, **place}


def collectives(module: Any) -> list[CollectiveUse]:
    """List every collective of ``module`` (a per-device ``ir.Module``), in the order of its text."""
    return [use for _, use in collective_ops(module)]


def collective_ops(module: Any) -> list[tuple[Any, CollectiveUse]]:
    """List every collective as ``collectives`` does, with its op."""
    return _below(module.operation, _Around(1, 0), num_devices(module) or 1, _mesh(module))


def total_bytes(uses: Sequence[CollectiveUse]) -> int:
    """Return the bytes that the device with the most traffic receives in one run of the program."""
    return most_received((use.bytes_received, use.receivers) for use in uses)


class _Around(NamedTuple):
    """The loops around ops: the product of known trips, and the number of loops of unknown trips."""

    times: int
    unknown: int


def _below(operation: Any, around: _Around, devices: int, mesh: Mesh | None) -> list[tuple[Any, CollectiveUse]]:
    return [row for region in operation.regions for row in _of_region(region, around, devices, mesh)]


def _of_region(region: Any, around: _Around, devices: int, mesh: Mesh | None) -> list[tuple[Any, CollectiveUse]]:
    ops = [view.operation for block in region for view in block.operations]
    return [row for op in ops for row in _one(op, around, devices, mesh)]


def _one(op: Any, around: _Around, devices: int, mesh: Mesh | None) -> list[tuple[Any, CollectiveUse]]:
    name = op.name
    if name.removeprefix("stablehlo.") in KINDS:  # its region is its reduction
        return [(op, _use(op, around, devices, mesh))]
    if not len(op.regions):
        return []
    if name not in BRANCHES:
        return _below(op, _in_loop(op, around) if name == _LOOP else around, devices, mesh)
    branches = [_of_region(region, around, devices, mesh) for region in op.regions]
    dearest = max(range(len(branches)), key=lambda k: total_bytes([use for _, use in branches[k]]))
    return [
        (inner, use if k == dearest else replace(use, counted=False))
        for k, branch in enumerate(branches)
        for inner, use in branch
    ]


def _in_loop(loop: Any, around: _Around) -> _Around:
    trips = trip_count(loop)
    return _Around(around.times, around.unknown + 1) if trips is None else _Around(around.times * trips, around.unknown)


def _use(op: Any, around: _Around, devices: int, mesh: Mesh | None) -> CollectiveUse:
    kind = op.name.removeprefix("stablehlo.")
    operands, results = [v.type for v in op.operands], [v.type for v in op.results]
    groups = groups_of(op, devices)
    written = get_text(op, AXES)
    return CollectiveUse(
        kind=kind,
        axes=written or ("" if mesh is None else axes_of_groups(mesh, groups, kind != "collective_permute")),
        operand=", ".join(map(str, operands)),
        result=", ".join(map(str, results)),
        group_size=groups.shape[1] if groups.size else 1,
        bytes_each=_received(kind, operands, results, groups),
        place=user_place(op.location),
        reason=get_text(op, CAUSE) or "",
        receivers=_receivers(kind, groups),
        times=around.times,
        unknown_loops=around.unknown,
    )


def _received(kind: str, operands: Sequence[Any], results: Sequence[Any], groups: Ints) -> int:
    whole = sum(map(bytes_of, results if kind == ALL_GATHER else operands))
    return bytes_received(kind, whole, groups.shape[1] if groups.size else 1)


def _receivers(kind: str, groups: Ints) -> Receivers:
    """Return the devices that receive, or None for all; in a permute or broadcast, not all devices do."""
    return None if FACTS[kind].passes else tuple(groups[:, 1:][groups[:, 1:] >= 0].tolist())


def groups_of(op: Any, devices: int) -> Ints:
    """Return the groups of devices that communicate, int64 [groups, size]; rows of short groups end in -1.

    Of a permute: the pairs of a source and another device as target.
    """
    if op.name == "stablehlo.collective_permute":
        pairs: Ints = np.array(op.attributes["source_target_pairs"], dtype=np.int64).reshape(-1, 2)
        moves: Ints = pairs[pairs[:, 0] != pairs[:, 1]]
        return moves
    groups: Ints = np.array(op.attributes["replica_groups"], dtype=np.int64)
    return groups if groups.size else np.arange(devices, dtype=np.int64).reshape(1, -1)


def axes_of_groups(mesh: Mesh, groups: Ints, whole: bool = True) -> str:
    """Return the axes and sub-axes of ``mesh`` along which the devices of each row of ``groups`` differ.

    With ``whole``, each group must hold every device that these axes join, else the answer is "". The pairs
    of a permute use a part of the axes that they are named with.
    """
    if not groups.size or groups.min() < 0 or groups.max() >= mesh.size:
        return ""
    positions = mesh.position[groups]
    primes = [prime for size in mesh.shape for prime in prime_factors(size)]
    strides = [prod(primes[place + 1 :]) for place in range(len(primes))]
    every = zip(strides, primes, strict=True)
    digits = [(stride, size) for stride, size in every if np.ptp(positions // stride % size, axis=1).any()]
    if whole and prod(n for _, n in digits) != groups.shape[1]:
        return ""
    parts = [(ref, mesh.sizes[ref.name]) for ref in refs(mesh, digits) or ()]
    return ",".join(part_name(ref.name, ref.pre, ref.size or full, full) for ref, full in parts)


def _mesh(module: Any) -> Mesh | None:
    """Return the module's mesh, to name axes with; None for an invalid text."""
    try:
        return mesh_of(module)
    except ShardpassError:
        return None
