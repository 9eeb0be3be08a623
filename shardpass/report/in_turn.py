"""Time the permutes of an overlapped loop, in which products alternate with a collective.

The permutes run while products are computed, so their own times do not add to the program's time. What adds is the
difference between the loop and its products alone (``planning.price.loops``), which the permutes share by their
bytes.

Example, 8 devices: 7 permutes of 24 us overlap with products of 168 us, which are 8 blocks of 21 us in the loop. It
takes 21 + 7 * 24 = 189 us instead of 168, so each permute counts 3 us.

A permute is identified by its op's note (``BESIDE``) and by the op of the plan that needed its collective. An op may
have two loops: one for an operand, and one for its result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shardpass.cost.machine import Machine
from shardpass.ir.annotations import BESIDE
from shardpass.ir.collectives import CollectiveUse
from shardpass.planning.price.steps import MatmulLoop
from shardpass.report.watch import Origin


class InTurn:
    """The collective matmuls of a plan, with their modelled seconds on ``machine``."""

    def __init__(self, loops: Iterable[MatmulLoop], machine: Machine) -> None:
        self.at: dict[int, list[MatmulLoop]] = {}
        for loop in loops:
            self.at.setdefault(loop.at, []).append(loop)
        self.machine = machine

    def loop_of(self, origin: Origin, use: CollectiveUse) -> MatmulLoop | None:
        """Return the loop that contains the collective as a permute; None for other collectives."""
        if use.kind != "collective_permute" or not use.reason.endswith(BESIDE):
            return None
        ends = (origin.source, origin.target)
        result = [loop for loop in self.at.get(origin.op, ()) if (loop.step is not None) == bool(origin.source)]
        return next((loop for loop in result if _ends(loop) == ends), result[0] if result else None)

    def seconds(self, origins: Sequence[Origin], use: CollectiveUse) -> float | None:
        """Model the seconds of a row's permutes in all runs, beyond the seconds of the products; None for other rows.

        The seconds of a loop are divided among its permutes in proportion to their bytes, since ``shardpass-join``
        combines permutes between the same devices.
        """
        loops = [loop for origin in origins if (loop := self.loop_of(origin, use)) is not None]
        if not loops:
            return None
        a_byte = sum(loop.price(self.machine).beside / (hops(loop) * tile(loop)) for loop in loops) / len(loops)
        return a_byte * use.bytes_received


def hops(loop: MatmulLoop) -> int:
    """Count the permutes of a loop: for each product, each tile or sum passes through all other devices of its ring."""
    return (loop.pair.count - 1) * len(loop.pair.parts)


def tile(loop: MatmulLoop) -> int:
    """Return the bytes that a device receives by each permute of the loop."""
    return loop.pair.bytes // loop.pair.count


def _ends(loop: MatmulLoop) -> tuple[str, str]:
    return ("", "") if loop.step is None else (str(loop.step.source.sharding), str(loop.step.target))
