"""What a traced program costs, by the one machine: decided and planned as ``explain`` does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shardpass.cost.chosen import chosen
from shardpass.diagnostics import ShardpassError, collect
from shardpass.ir.context import UNNAMED, parse_module
from shardpass.ir.machines import set_module_machine
from shardpass.pipeline.named import BEHIND_PROPAGATION
from shardpass.pipeline.plan import plan_of
from shardpass.pipeline.run import run_in_place
from shardpass.planning.clock import clock_of
from shardpass.planning.cost import price
from shardpass.planning.task import holding
from shardpass.report.build import explain_module


@dataclass(frozen=True)
class Cost:
    """What one run costs a device: bytes received, the most bytes alive at once, and modelled seconds.

    ``price``: the seconds, and a little for the memory.
    """

    bytes: int
    memory: int
    seconds: float
    price: float


def priced(text: str, machine: str) -> Cost | None:
    """Returns the cost of a module (text) on ``machine``; None if it cannot be partitioned.

    Types fix nearly all shardings of such programs, so shardings are propagated and not searched (effort 0).
    """
    try:
        with collect():
            module = _decided(text, machine)
            peak = plan_of(module).alive.peak
            built = explain_module(module, UNNAMED, pipeline=BEHIND_PROPAGATION, folders=())
    except ShardpassError:
        return None
    seconds = built.step_seconds or built.seconds
    return Cost(built.total_bytes_received, peak, seconds, seconds + _of_memory(peak, machine))


def quick_price(text: str, machine: str) -> float | None:
    """Returns the price of a small module from its plan alone, in seconds; None if it cannot be partitioned."""
    try:
        with collect():
            plan = plan_of(_decided(text, machine))
    except ShardpassError:
        return None
    return price(plan) + _of_memory(plan.alive.peak, machine)


def _decided(text: str, machine: str) -> Any:
    module = parse_module(text)
    set_module_machine(module, machine)
    run_in_place(module, "shardpass-import")
    run_in_place(module, "shardpass-propagate{effort=0}")
    return module


def _of_memory(peak: int, machine: str) -> float:
    return holding(peak, clock_of(chosen(machine)))
