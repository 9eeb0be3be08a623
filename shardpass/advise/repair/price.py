"""What a traced program costs, by the one machine: decided and planned as ``explain`` does."""

from __future__ import annotations

from shardpass.advise.find.verify import figures_as_built, figures_of
from shardpass.cost.chosen import chosen
from shardpass.diagnostics import ShardpassError, collect
from shardpass.ir.context import parse_module
from shardpass.ir.machines import set_module_machine
from shardpass.pipeline.plan import plan_of
from shardpass.pipeline.run import run_in_place
from shardpass.planning.plan.task import holding
from shardpass.planning.price.clock import clock_of
from shardpass.report.findings import Figures


def priced(text: str, machine: str, *, as_built: bool = True) -> tuple[Figures, float] | None:
    """Return the figures of a module (text) on ``machine``, and its price: the seconds, and a little for the memory.

    Types fix nearly all shardings of such programs, so shardings are propagated and not searched (effort 0).
    ``as_built``: of the program that is built, in place of its plan. None if the module cannot be partitioned.
    """
    try:
        with collect():
            module = parse_module(text)
            set_module_machine(module, machine)
            run_in_place(module, "shardpass-import, shardpass-propagate{effort=0}")
            figures = figures_as_built(module) if as_built else figures_of(plan_of(module))
    except ShardpassError:
        return None
    return figures, figures.seconds + holding(figures.memory, clock_of(chosen(machine)))
