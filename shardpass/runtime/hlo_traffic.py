"""Count the bytes that devices receive, by kind of collective, in optimized HLO of another partitioner.

Bytes are added up by device, and the greatest sum counts (``hlo.collectives`` has the cases).
``tools/bench/hlo_traffic.py`` is a witness of the same numbers and shares no code with this.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from shardpass.hlo.collectives import HloCollectives, Sums
from shardpass.hlo.read import read_program


@dataclass
class Received:
    """The number of runs and the bytes that each device receives, by kind of collective in StableHLO's names."""

    runs: Counter[str] = field(default_factory=Counter)
    by_device: dict[str, Sums] = field(default_factory=dict)

    @property
    def bytes(self) -> dict[str, int]:
        """Return, for each kind, the bytes of the device that receives most by that kind."""
        return {kind: int(max(sums)) for kind, sums in self.by_device.items()}

    @property
    def total(self) -> int:
        """Return the bytes of the device that receives most, summed over all kinds."""
        sums = list(self.by_device.values())
        return int(max(np.sum(sums, axis=0))) if sums else 0


def received(hlo: str, devices: int) -> Received:
    """Count the collectives of one run of the program ``hlo``."""
    counts = Received()
    for row in HloCollectives(read_program(hlo), devices).rows:
        if row.counted:
            sums = row.by_device(devices) * row.times
            counts.runs[row.kind] += row.times
            counts.by_device[row.kind] = counts.by_device[row.kind] + sums if row.kind in counts.by_device else sums
    return counts
