"""``Compiled``: the figures of a compiled program, for comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shardpass.cost.collective import ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER
from shardpass.cost.groups import seconds
from shardpass.cost.machine import Machine
from shardpass.hlo.collectives import HloCollective, HloCollectives
from shardpass.hlo.estimates import estimated_cycles
from shardpass.hlo.read import HloProgram, read_program
from shardpass.hlo.slices import Slices
from shardpass.hlo.work import work_of
from shardpass.runtime.hlo_traffic import received
from shardpass.targets.target import Target


@dataclass(frozen=True)
class Compiled:
    """A program as XLA compiles it for ``target``: optimized HLO, and XLA's memory statistics of one device.

    ``donated``: bytes of results that lie in buffers of arguments. ``peak``: the most bytes alive at once by the
    compiler's own account; 0 where it has none. ``version``: the package of the compiler, with its version.
    ``spent``: processor seconds of the compile.
    """

    hlo: str
    target: Target
    arguments: int
    results: int
    temporaries: int
    donated: int
    peak: int = 0
    version: str = ""
    spent: float = 0.0

    @property
    def devices(self) -> int:
        return self.target.devices

    @property
    def memory(self) -> int:
        """Bytes of arguments, results and temporaries; a buffer that an argument and a result share counts once."""
        return self.arguments + self.results + self.temporaries - self.donated

    @cached_property
    def bytes_received(self) -> int:
        """Bytes received by the device that receives most, with collectives in loops multiplied by the trips."""
        return received(self.hlo, self.devices).total

    @cached_property
    def bytes_scattered(self) -> int:
        """The bytes received by the program that XLA compiles for GPUs and TPUs, counted as ``bytes_received``.

        A sum of which each device keeps its slice alone is a reduce_scatter there, of half the bytes.
        """
        sums = np.zeros(self.devices, object)
        for one, sliced in self._counted:
            sums += one.by_device(self.devices) * one.times * (1 - sliced / 2)
        most: int = round(max(sums))
        return most

    def seconds(self, machine: Machine, borders: Sequence[int] = ()) -> float:
        """Model the seconds of the collectives on ``machine``, in sequence, and then of the work of a device.

        Work takes what the compiler estimates, where it does. Sums are scattered as in ``bytes_scattered``. A loop
        counts as often as it runs, once where that is unknown. ``borders``: the strides of the mesh's axes, as
        ``cost.groups.seconds`` takes them.
        """
        clock = self.target.chip.clock
        total = 0.0
        for work in work_of(self._program):
            cycles = estimated_cycles(work.op) if clock else None
            total += work.times * (machine.seconds(work.work) if cycles is None else cycles / clock)
        for one, sliced in self._counted:
            whole = max(one.received, default=0)
            size = max(map(len, one.groups))
            groups = np.array([group for group in one.groups if len(group) == size], dtype=np.int64)
            kind = ALL_TO_ALL if one.kind == "ragged_all_to_all" else one.kind
            for each, part in ((kind, whole * (1 - sliced)), (REDUCE_SCATTER, whole * sliced / 2)):
                total += one.times * seconds(machine, each, round(part), groups, borders)
        return total

    @cached_property
    def _program(self) -> HloProgram:
        return read_program(self.hlo)

    @cached_property
    def _counted(self) -> list[tuple[HloCollective, float]]:
        """List the collectives, each with the fraction of its result that devices use only as slices; 0 unless it is
        an all_reduce.
        """
        slices = Slices(self._program)
        rows = (one for one in HloCollectives(self._program, self.devices).rows if one.counted)
        result = []
        for one in rows:
            size = sum(shape.bytes for shape in one.op.results)
            result.append((one, slices.sliced_bytes(one) / size if one.kind == ALL_REDUCE and size else 0.0))
        return result
