"""``plan_module``: plans the partitioning of a module without changing it."""

from __future__ import annotations

from typing import Any

from shardpass.cost.chosen import machine_text
from shardpass.ir.annotations import EXACT
from shardpass.ir.context import UNNAMED
from shardpass.ir.machines import machine_of
from shardpass.partition.splices import spliced_table
from shardpass.pipeline.base import show_value
from shardpass.pipeline.run import run_pipeline
from shardpass.planning.plan.loops import with_loops
from shardpass.planning.plan.plan import ProgramPlan
from shardpass.planning.plan.planner import plan_program
from shardpass.planning.price.loops import OFF, LoopTerms


def plan_module(
    text_or_module: Any,
    *,
    filename: str = UNNAMED,
    matmul_loops: str = OFF,
    matmul_one_way: bool = False,
    constraints: str = EXACT,
    machine: object = None,
) -> ProgramPlan:
    """Plan a module that JAX lowered or that was written by hand; the module stays unchanged.

    ``print(plan_module(text))`` lists every op that sends, its split and its collectives; ``plan.bytes_received``,
    ``plan.bytes_by_axes``, ``plan.seconds(machine)`` and ``plan.alive.peak`` are sums over what the plan lists. The
    later passes of the pipeline ``partition`` move and join collectives, and send no more than that.

    ``matmul_loops``, ``matmul_one_way``: as those options of the pipeline; ``plan.loops`` are the products that are
    overlapped with their collectives then. ``constraints``: as that option of ``shardpass-propagate``.
    ``machine``: for which the program is decided and planned, a name of docs/reference/machines.md, the path of a file
    NAME.toml, or a ``Machine``; by default the one that the module names, or that of the environment, or else h100.

    Raises as ``run_pipeline``.
    """
    options = f"constraints={show_value(constraints)}"
    if machine is not None:
        options += f" machine={show_value(machine_text(machine))}"
    module = run_pipeline(text_or_module, f"propagate{{{options}}}", filename=filename)
    with module.context:
        return with_loops(plan_of(module), LoopTerms(matmul_loops, matmul_one_way))


def plan_of(module: Any) -> ProgramPlan:
    """Return the plan of a propagated module, in which concatenates of slices become splices."""
    with module.context:
        table = spliced_table(module)
        return plan_program(table.program, table.all_shardings(), machine=machine_of(module))
