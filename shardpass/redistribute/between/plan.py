"""``TransferPlan``, the answer: rounds of messages, their price beside the bound, and the memory of each device."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shardpass.cost.machine import Machine
from shardpass.diagnostics.printable import joined
from shardpass.redistribute.between.bound import least_seconds
from shardpass.redistribute.between.cells import Cells, cells_of, demands
from shardpass.redistribute.between.facts import members, simple_seconds
from shardpass.redistribute.between.ports import ports_of
from shardpass.redistribute.between.sent import Message, Sent
from shardpass.redistribute.between.waves import MovedArray, Wave
from shardpass.redistribute.between.written import written
from shardpass.redistribute.problem.device_arrays import IntArray
from shardpass.redistribute.terms.choice import show_seconds
from shardpass.redistribute.terms.limit import show_bytes

FloatArray = NDArray[np.float64]

MANY = 4096  # cells, beyond which a bound that is within NEAR of the plan is enough
NEAR = 1.02
SHOWN = 8  # rounds that are printed


@dataclass(frozen=True, eq=False)
class TransferPlan:
    """A plan that moves arrays from the devices of their sources to the devices of their targets.

    Attributes:
        arrays: the arrays, in the order of their numbers in messages.
        waves: the rounds, grouped by the arrays that move together.
        machine: the machine whose ports and links the plan assumes.
        way: the name of the chosen candidate.
        refused: the makespan of each other candidate, in seconds.
    """

    arrays: tuple[MovedArray, ...]
    waves: tuple[Wave, ...]
    machine: Machine
    way: str
    refused: Mapping[str, float] = field(repr=False)

    @cached_property
    def rounds(self) -> tuple[tuple[Message, ...], ...]:
        """List the messages of each round; in a round, each port sends or receives at most one message."""
        return tuple(messages for wave in self.waves for messages in wave.rounds)

    @property
    def seconds(self) -> float:
        """Return the modeled makespan in seconds."""
        return sum(wave.seconds for wave in self.waves)

    @cached_property
    def _cells(self) -> Cells:
        return cells_of([move for wave in self.waves for move in wave.moves])

    @cached_property
    def bound_seconds(self) -> float:
        """The least makespan of any plan for all arrays at once; of huge problems a simpler bound, where near."""
        ports = ports_of(self.machine)
        simple = simple_seconds(self._cells, ports)
        if self.seconds <= simple * (1 + 1e-9) or (len(self._cells) > MANY and self.seconds <= NEAR * simple):
            return simple
        return least_seconds(demands(self._cells, None), ports)

    @cached_property
    def sent(self) -> dict[int, int]:
        """Bytes that each device sends."""
        return self._bytes("sender")

    @cached_property
    def received(self) -> dict[int, int]:
        """Return the bytes received by each device."""
        return self._bytes("receiver")

    def _bytes(self, end: str) -> dict[int, int]:
        total: dict[int, float] = defaultdict(float)
        for wave in self.waves:
            devices, which = np.unique(getattr(wave.sent, end), return_inverse=True)
            bits = np.bincount(which, wave.sent.message_bits, minlength=len(devices))
            for device, count in zip(devices.tolist(), bits.tolist(), strict=True):
                total[device] += count / 8
        return {device: math.ceil(count) for device, count in sorted(total.items())}

    @property
    def bytes_received(self) -> int:
        """Return the bytes received by the busiest device."""
        return max(self.received.values(), default=0)

    @cached_property
    def lower_bound_bytes(self) -> int:
        """The least bytes that some device must receive in any plan: the greatest missing part of a device's target
        tiles.
        """
        cell, device = members(self._cells, self._cells.receivers)
        _, number = np.unique(device, return_inverse=True)
        lacks = np.bincount(number.reshape(-1), self._cells.bits[cell] / 8)
        return math.ceil(float(lacks.max(initial=0)))

    @cached_property
    def peak_bytes(self) -> int:
        """The peak of bytes alive on a device: tiles not yet freed, tiles being filled, and messages of one round."""
        return max(self.alive.values(), default=0)

    @cached_property
    def alive(self) -> dict[int, int]:
        """The peak of each device, in bytes."""
        devices = np.unique([d for array in self.arrays for d in (*array.source.devices, *array.target.devices)])
        resident = np.zeros(len(devices))
        for array in self.arrays:
            self._add(resident, devices, array, "source", 1)
        peak = resident.copy()
        for wave in self.waves:
            for number in wave.arrays:
                self._add(resident, devices, self.arrays[number], "target", 1)
            peak = np.maximum(peak, resident + _buffers(wave.sent, devices))
            for number in wave.arrays:
                self._add(resident, devices, self.arrays[number], "source", -1)
        return {device: math.ceil(size) for device, size in zip(devices.tolist(), peak.tolist(), strict=True) if size}

    def _add(self, resident: FloatArray, devices: IntArray, array: MovedArray, side: str, sign: int) -> None:
        holders, volumes = getattr(array, side).volumes
        resident[np.searchsorted(devices, holders)] += sign * -(-volumes * array.element_type.bits // 8)

    def json(self) -> str:
        """Return the schedule as text (docs/device_sets.md)."""
        facts = {
            "machine": self.machine.name,
            "seconds": self.seconds,
            "bound_seconds": self.bound_seconds,
            "peak_bytes": self.peak_bytes,
        }
        return written(facts, self.arrays, self.waves)

    def __str__(self) -> str:
        lines = [_title(self.arrays)]
        for number, messages in enumerate(self.rounds[:SHOWN]):
            size = math.ceil(max((message.bytes for message in messages), default=0))
            lines.append(f"  round {number}: {len(messages)} messages of at most {show_bytes(size)}")
        if len(self.rounds) > SHOWN:
            lines.append(f"  ... and {len(self.rounds) - SHOWN} rounds more")
        if not self.rounds:
            lines.append("  nothing to do")
        bound = self.bound_seconds
        ratio = f" ({self.seconds / bound:.3f}x the least possible {show_seconds(bound)})" if bound else ""
        lines.append(f"  {show_seconds(self.seconds)} on {self.machine.name}{ratio}, {self.way}")
        most = max(self.sent.values(), default=0)
        lines.append(
            f"  busiest sender {show_bytes(most)}, busiest receiver {show_bytes(self.bytes_received)} "
            f"(least possible {show_bytes(self.lower_bound_bytes)}), live together {show_bytes(self.peak_bytes)}"
        )
        return joined(lines)


def _title(arrays: Sequence[MovedArray]) -> str:
    if len(arrays) == 1:
        (one,) = arrays
        extent = "x".join(map(str, (*one.shape, one.element_type)))
        devices = f"{len(one.source.devices)} devices to {len(one.target.devices)}"
        return f"{extent}: {one.source.sharding} -> {one.target.sharding}, from {devices}"
    senders = {device for array in arrays for device in array.source.devices}
    receivers = {device for array in arrays for device in array.target.devices}
    return f"{len(arrays)} arrays from {len(senders)} devices to {len(receivers)}"


def _buffers(sent: Sent, devices: IntArray) -> FloatArray:
    """Return the most bytes of a round's messages on each device."""
    most = np.zeros(len(devices))
    if len(sent.sender):
        ends = [np.searchsorted(devices, ends) for ends in (sent.sender, sent.receiver)]
        keys, which = np.unique(np.concatenate([sent.round * len(devices) + end for end in ends]), return_inverse=True)
        bits = np.bincount(which.reshape(-1), np.concatenate([sent.message_bits, sent.message_bits]))
        np.maximum.at(most, keys % len(devices), bits / 8)
    return most
