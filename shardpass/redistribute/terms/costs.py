"""The time that a redistribution takes on a machine: its collectives, and the local work between them.

Problem: choose between plans that trade bytes for steps and memory traffic. Every second is the machine's
(``cost.machine``, ``cost.groups``); what is here is the sum. Steps follow one another, and so does local work: slices,
transposes, boxes that are cut out and put in place (``program.local_work``). Bytes, bounds and proofs depend on none of
it. With no latency and bytes as the price it is the model of section 6.2 of Rink et al. (machine "paper").

Example: an all_gather in a group of 8 in two hosts of 4 gathers a fourth of the array over the cards between hosts on
each device, and then the whole inside of the host.

O(steps) where one switch joins all devices, else O(steps * devices), vectorised.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from shardpass.cost.groups import seconds
from shardpass.cost.machine import Machine
from shardpass.redistribute.problem.sub_axes import SubAxes
from shardpass.redistribute.program.build import Builder
from shardpass.redistribute.program.local_work import LocalPrices, usual_prices
from shardpass.redistribute.program.steps import Step


def cost(machine: Machine, built: Builder) -> float:
    """Return modelled seconds of a whole plan."""
    return collectives_seconds(machine, built.steps, built.sub_axes) + local_seconds(machine, built)


def local_seconds(machine: Machine, built: Builder) -> float:
    """Return modelled seconds of the local work of a whole plan."""
    return local_prices(machine).seconds(built.work)


def collectives_seconds(machine: Machine, steps: Iterable[Step], sub_axes: SubAxes) -> float:
    """Return modelled seconds of the collectives among ``steps``."""
    return sum(
        [seconds(machine, step.kind, step.bytes, step.groups, sub_axes.borders) for step in steps if step.is_collective]
    )


@lru_cache(maxsize=64)
def local_prices(machine: Machine) -> LocalPrices:
    """Return the prices of local work; missing prices are derived from the memory bandwidth in the machine's file."""
    usual, given = usual_prices(machine.memory_bandwidth), dict[str, Any](machine.local)
    for rate in ("runs", "elements", "places"):
        given.setdefault(rate, getattr(usual, rate))
    return LocalPrices(usual.copies, **given)
