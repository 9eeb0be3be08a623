"""A program, and what all decisions about it share: its fold, the bytes that live together, and what plans decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shardpass.cost.machine import Machine
from shardpass.planning.options.choose import Decided, decided_on
from shardpass.planning.price.clock import Clock
from shardpass.planning.price.fold import Folded, fold
from shardpass.planning.price.footprint import Footprint
from shardpass.program.program import Program

# Bytes received that a byte in memory is worth: of plans of one cost, the one of least memory.
RESIDENT = 1 / 256


@dataclass(frozen=True)
class Task:
    """A program to decide about, with what all decisions about it share.

    ``barriers``: for each constraint (by op number) the direction in which shardings may pass it.
    """

    program: Program
    barriers: Mapping[int, str]
    effort: int
    machine: Machine
    folded: Folded
    footprint: Footprint
    decided: Decided

    @classmethod
    def of(cls, program: Program, barriers: Mapping[int, str], effort: int, machine: Machine) -> Task:
        folded = fold(program, barriers)
        decided = decided_on(program.mesh, machine)
        return cls(program, barriers, effort, machine, folded, Footprint(program, folded), decided)


def holding(peak: float, clock: Clock) -> float:
    """Return the seconds that ``peak`` bytes of memory are worth."""
    return peak * RESIDENT * clock.byte
