"""``plan_module``: what partitioning would do with a module, without doing it."""

from __future__ import annotations

from typing import Any

from shardpass.ir.context import UNNAMED
from shardpass.partition.splices import spliced_table
from shardpass.pipeline.run import run_pipeline
from shardpass.planning.plan import ProgramPlan
from shardpass.planning.planner import plan_program


def plan_module(text_or_module: Any, *, filename: str = UNNAMED) -> ProgramPlan:
    """The plan of a module that JAX lowered or that was written by hand; the module stays as it is.

    ``print(plan_module(text))`` tells every op that sends, its split and what is sent; ``plan.bytes_received``,
    ``plan.bytes_by_axes``, ``plan.seconds(profile)`` and ``plan.alive.peak`` are sums over what the plan lists. The
    later passes of the pipeline ``partition`` move and join collectives, and send no more than that.

    Raises as ``run_pipeline``.
    """
    module = run_pipeline(text_or_module, "propagate", filename=filename)
    with module.context:
        table = spliced_table(module)
        return plan_program(table.program, table.found())
