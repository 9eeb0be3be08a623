"""Annotations put on an imported module, and the plan that the passes then make of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from shardpass.diagnostics import collect
from shardpass.pipeline.plan import plan_of
from shardpass.pipeline.run import run_in_place
from shardpass.places.write import on_values
from shardpass.planning.plan import ProgramPlan
from shardpass.program.read import read_program
from shardpass.suggesting.places import ARGUMENT, Group
from shardpass.suggesting.trials import Annotation


def planned(imported: Any, annotations: Iterable[Annotation], propagate: str) -> ProgramPlan:
    """Returns the plan of a copy of ``imported`` with ``annotations``. ``propagate``: the pass, with options."""
    return plan_of(propagated(imported, annotations, propagate))


def propagated(imported: Any, annotations: Iterable[Annotation], propagate: str) -> Any:
    """Returns a copy of ``imported`` with ``annotations`` after the pass ``propagate``."""
    module = annotated(imported, annotations)
    with collect():  # remarks are for those who partition
        run_in_place(module, propagate)
    return module


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
