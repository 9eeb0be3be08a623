"""Adds up the bytes that each device receives.

The greatest sum over devices is what the program costs in traffic. It is not the sum of the greatest: where device 0
sends 1 KiB to device 1, and then 1 KiB to device 2, no device receives 2 KiB.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

Receivers = tuple[int, ...] | None  # ids of devices, each once; None: every device


def most_received(parts: Iterable[tuple[int, Receivers]]) -> int:
    """Return the bytes of the device that receives most. Each part: (bytes, the devices that receive these bytes)."""
    everywhere = 0
    some: list[tuple[int, tuple[int, ...]]] = []
    for size, receivers in parts:
        if receivers is None:
            everywhere += size
        elif size and receivers:
            some.append((size, receivers))
    if not some:
        return everywhere
    sums = np.zeros(1 + max(max(receivers) for _, receivers in some), object)  # no bound on how often a loop runs
    for size, receivers in some:
        sums[list(receivers)] += size
    return everywhere + int(max(sums))
