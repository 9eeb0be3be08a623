"""Collectives, and the one formula of the bytes that a device receives by each.

Bytes are those that come from other devices; a device's own data is not counted. ``whole`` is the larger of what a
device gives and what it gets, in bytes, and g the number of devices in a group:

    kind                  whole               received
    all_gather            the result          whole * (g-1)/g      every other device's part of the result
    all_to_all            the operand         whole * (g-1)/g      one block of each other device
    reduce_scatter        the operand         whole * (g-1)/g      ring: one block of each other device, partly summed
    all_reduce            the operand         2 * whole * (g-1)/g  a reduce_scatter, then an all_gather
    collective_permute    the operand         whole
    collective_broadcast  the operand         whole

In a group of one device nothing is received. The blocks that a device keeps, whole / g, are rounded down to a byte.

Example: an all_gather over 4 devices to 64 bytes brings 48 bytes to each, an all_reduce of 64 bytes 96.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

ALL_GATHER = "all_gather"
ALL_REDUCE = "all_reduce"
ALL_TO_ALL = "all_to_all"
BROADCAST = "collective_broadcast"
PERMUTE = "collective_permute"
REDUCE_SCATTER = "reduce_scatter"
KINDS = (ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, BROADCAST, PERMUTE, REDUCE_SCATTER)


def bytes_received(kind: str, whole: int, devices: int) -> int:
    """Returns the bytes that a device receives in a collective of ``kind`` in a group of ``devices``.

    ``whole``: bytes of the larger of its operand and result.
    """
    if kind in (PERMUTE, BROADCAST):
        return whole if devices > 1 else 0
    received = whole - whole // devices
    return 2 * received if kind == ALL_REDUCE else received


def whole_of(kind: str, received: int, devices: int) -> int:
    """Returns the bytes of the larger array of a collective by which a device receives ``received`` bytes.

    This is the inverse of ``bytes_received``, for a group of ``devices``.
    """
    if kind in (PERMUTE, BROADCAST) or devices < 2:
        return received
    return received * devices // ((devices - 1) * (2 if kind == ALL_REDUCE else 1))


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
