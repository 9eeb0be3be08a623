"""Annotations put on an imported module, and the plan that the passes then make of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from shardpass.diagnostics import collect
from shardpass.pipeline.named import BEHIND_PROPAGATION
from shardpass.pipeline.plan import plan_of
from shardpass.pipeline.run import run_in_place
from shardpass.places.write import on_values
from shardpass.planning.plan import ProgramPlan
from shardpass.program.read import read_program
from shardpass.report.build import explain_module
from shardpass.report.explanation import Explanation
from shardpass.report.report import Report
from shardpass.suggesting.places import ARGUMENT, Group
from shardpass.suggesting.trials import Annotation


@dataclass(frozen=True)
class Figures:
    """What one run costs a device.

    Attributes:
        bytes: received, counting every trip of a loop.
        seconds, compute_seconds: modelled, of collectives and of computing; ``step_seconds``: of both.
        memory: the most bytes alive at once, arguments included.
    """

    bytes: int
    seconds: float
    compute_seconds: float
    step_seconds: float
    memory: int


def figures(plan: ProgramPlan, built: Report | None = None) -> Figures:
    """Returns the figures of a plan; of the program built by it instead, if ``built``, its report, is given."""
    memory = plan.alive.peak
    if built is None or built.compute_seconds is None or built.step_seconds is None:
        return Figures(plan.bytes_received, plan.seconds(), plan.compute_seconds(), plan.step_seconds(), memory)
    return Figures(built.total_bytes_received, built.seconds, built.compute_seconds, built.step_seconds, memory)


def figures_of(built: Explanation, plan: ProgramPlan) -> Figures:
    """Returns the figures of a program by another partitioner: its collectives and memory, and the work of ``plan``."""
    memory = 0 if built.memory is None else built.memory.total
    work = plan.compute_seconds()
    return Figures(built.total_bytes_received, built.seconds, work, built.seconds + work, memory)


def planned(imported: Any, annotations: Iterable[Annotation], propagate: str) -> ProgramPlan:
    """Returns the plan of a copy of ``imported`` with ``annotations``. ``propagate``: the pass, with options."""
    return plan_of(propagated(imported, annotations, propagate))


def propagated(imported: Any, annotations: Iterable[Annotation], propagate: str) -> Any:
    """Returns a copy of ``imported`` with ``annotations`` after the pass ``propagate``."""
    module = annotated(imported, annotations)
    with collect():  # remarks are for those who partition
        run_in_place(module, propagate)
    return module


def built(module: Any, file: str) -> Explanation:
    """Runs the passes after propagation on ``module``, in place, and returns the report of the program."""
    with collect():
        return explain_module(module, file, pipeline=BEHIND_PROPAGATION, folders=())


def annotated(imported: Any, annotations: Iterable[Annotation]) -> Any:
    """Copies ``imported`` and writes ``annotations`` into the copy."""
    with imported.context:
        program, _ = read_program(imported, "propagate")
    number = {value: place for place, value in enumerate(program.body.arguments)}

    def places(group: Group) -> Sequence[int]:
        return [number[value] for value in group.values] if group.kind == ARGUMENT else group.values

    return on_values(
        imported, [(one.group.kind, places(one.group), program.mesh.sharding(one.dims)) for one in annotations]
    )
