"""Collectives, with a single formula for the bytes that a device receives.

Bytes are those that come from other devices; a device's own data is not counted. ``whole`` is the larger of what a
device gives and what it gets, in bytes, and g the number of devices in a group:

    kind                  whole               received
    all_gather            the result          whole * (g-1)/g      every other device's part of the result
    all_to_all            the operand         whole * (g-1)/g      one block of each other device
    reduce_scatter        the operand         whole * (g-1)/g      ring: one block of each other device, partly summed
    all_reduce            the operand         2 * whole * (g-1)/g  a reduce_scatter, then an all_gather
    collective_permute    the operand         whole
    collective_broadcast  the operand         whole

``FACTS`` has a row for each kind: the only place where the rest of shardpass learns that a kind exists, and what it is.
A new kind is a row there, its rule (``ops.families.collectives``), its definition (``runtime.lockstep``), and which of
its results are replicated (``replication.rules``).

In a group of one device nothing is received. The blocks that a device keeps, whole / g, are rounded down to a byte.

Example: an all_gather over 4 devices to 64 bytes brings 48 bytes to each, an all_reduce of 64 bytes 96.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

ALL_GATHER = "all_gather"
ALL_REDUCE = "all_reduce"
ALL_TO_ALL = "all_to_all"
BROADCAST = "collective_broadcast"
PERMUTE = "collective_permute"
REDUCE_SCATTER = "reduce_scatter"
RAGGED_ALL_TO_ALL = "ragged_all_to_all"


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of a kind of collective.

    Attributes:
        passes: how many times a device receives the blocks of the others; 0: one other device sends it the whole array.
        by_global_ids: its groups name replicas unless ``use_global_device_ids`` is set.
        hlo_only: StableHLO has no op for it.
    """

    passes: int = 1
    by_global_ids: bool = False
    hlo_only: bool = False


FACTS: Mapping[str, Facts] = {
    ALL_GATHER: Facts(by_global_ids=True),
    ALL_REDUCE: Facts(passes=2, by_global_ids=True),
    ALL_TO_ALL: Facts(),
    BROADCAST: Facts(passes=0),
    PERMUTE: Facts(passes=0),
    REDUCE_SCATTER: Facts(by_global_ids=True),
    RAGGED_ALL_TO_ALL: Facts(hlo_only=True),
}
KINDS = tuple(kind for kind, facts in FACTS.items() if not facts.hlo_only)
BY_GLOBAL_IDS = tuple(kind for kind, facts in FACTS.items() if facts.by_global_ids)


def hlo_name(kind: str) -> str:
    """Return the HLO name of a kind of collective: ``all-gather`` for ``all_gather``."""
    return kind.replace("_", "-")


def bytes_received(kind: str, whole: int, devices: int) -> int:
    """Return the bytes that a device receives in a collective of ``kind`` in a group of ``devices``.

    ``whole``: bytes of the larger of its operand and result.
    """
    passes = FACTS[kind].passes
    return passes * (whole - whole // devices) if passes else whole * (devices > 1)


def whole_of(kind: str, received: int, devices: int) -> int:
    """Return the bytes of the larger array of a collective by which a device receives ``received`` bytes.

    This is the inverse of ``bytes_received``, for a group of ``devices``.
    """
    passes = FACTS[kind].passes if devices > 1 else 0
    return received * devices // ((devices - 1) * passes) if passes else received


@dataclass(frozen=True, slots=True)
class Axis:
    """A mesh axis of a group: ``size`` devices, whose ids are ``stride`` apart."""

    size: int
    stride: int = 1


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective, in all groups of devices at once.

    Attributes:
        axes: the mesh axes along which the devices of a group lie; the product of their sizes is that of a group.
        bytes: of its larger array on one device, the operand or the result.
    """

    kind: str
    axes: tuple[Axis, ...]
    bytes: int

    @property
    def devices(self) -> int:
        """The number of devices in a group."""
        return prod(axis.size for axis in self.axes)

    @property
    def received(self) -> int:
        """Bytes that a device receives."""
        return bytes_received(self.kind, self.bytes, self.devices)
