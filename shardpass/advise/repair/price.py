"""What a traced program costs, by the one machine: decided and planned as ``explain`` does."""

from __future__ import annotations

from typing import Any

from shardpass.advise.find.verify import figures_as_built
from shardpass.cost.chosen import chosen
from shardpass.diagnostics import ShardpassError, collect
from shardpass.ir.context import parse_module
from shardpass.ir.machines import set_module_machine
from shardpass.pipeline.plan import plan_of
from shardpass.pipeline.run import run_in_place
from shardpass.planning.plan.cost import price
from shardpass.planning.plan.task import holding
from shardpass.planning.price.clock import clock_of
from shardpass.report.findings import Figures


def priced(text: str, machine: str) -> tuple[Figures, float] | None:
    """Return the figures of a module (text) on ``machine``, and its price: the seconds, and a little for the memory.

    Types fix nearly all shardings of such programs, so shardings are propagated and not searched (effort 0). None if
    the module cannot be partitioned.
    """
    try:
        with collect():
            made = figures_as_built(_decided(text, machine))
    except ShardpassError:
        return None
    return made, made.seconds + _of_memory(made.memory, machine)


def quick_price(text: str, machine: str) -> float | None:
    """Return the price of a small module from its plan alone, in seconds; None if it cannot be partitioned."""
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
