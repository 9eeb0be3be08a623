"""Watch a pipeline while it partitions, to trace each collective to the op that needs it.

Problem: a collective of the final module has a kind and bytes, but does not show why it exists. During the pipeline,
redistributions move past other ops and out of loops, and are merged.

Three passes of the pipeline are replaced by equivalent ones that record what they know:

1. propagation: its ``Decision``;
2. partition: its plan. The location of every op is marked with the op's number, ``sp@12``, and the mark stays on
everything built for the op, wherever it moves. ``partition.emit`` appends ``operand_1`` for ops that it builds for
an operand, and ``ir.locations.joined`` keeps the names of all ops that are joined. The end of a block has the mark
of the op that contains it; the end of main has the number of ops;
3. redistribution: each ``custom_call @shardpass.redistribute`` is marked, too, ``r@7``, and recorded with its
shardings.

``origins`` reads the marks of a location. A pipeline without these passes, or a module that is already partitioned,
leaves no marks: only the ops themselves describe its collectives.

Cost: one location for each op and each redistribution.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxlib.mlir import ir

from shardpass.ir import annotations as names
from shardpass.ir.locations import named
from shardpass.ir.walk import every_op
from shardpass.partition.emit import emit
from shardpass.passes.partition import Partition
from shardpass.passes.propagate import Propagate
from shardpass.passes.redistribute import Redistribute
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.resolve import Step, resolve
from shardpass.pipeline.run import run_steps
from shardpass.planning.decide.search import Decision
from shardpass.planning.plan.plan import ProgramPlan
from shardpass.program.program import NO_ANNOTATION
from shardpass.program.shardings import Shardings
from shardpass.program.table import keep, table_of

_MARK = re.compile(r"sp@(\d+)(?:/(operand|result)_(\d+))?")
_MOVE = re.compile(r"r@(\d+)")


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a collective: the number of the op in the plan's program that needs it, and which of its values.

    ``side``: "operand" or "result"; "" for a collective of the op itself. ``source``, ``target``: the texts of the
    shardings of a redistribution; "" for other collectives. ``whole``: the type of the whole array.
    """

    op: int
    side: str = ""
    index: int = 0
    source: str = ""
    target: str = ""
    whole: Any = None


@dataclass
class Watched:
    """The facts that a watched pipeline records for a report. ``plan`` is None if no pass of the pipeline plans.

    Attributes:
        decision: the decision of propagation.
        annotated_arguments, annotated_results: the positions of those that the user annotated.
        locations: the locations of the ops of the plan's program, before they were marked.
        argument_locations: the locations of main's arguments.
        results: JAX's names of the results; "" if unknown.
        moves: the redistributions by their marks.
    """

    decision: Decision | None = None
    annotated_arguments: frozenset[int] = frozenset()
    annotated_results: frozenset[int] = frozenset()
    plan: ProgramPlan | None = None
    shardings: Shardings | None = None
    locations: tuple[str, ...] = ()
    argument_locations: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    moves: list[Origin] = field(default_factory=list)

    def origins(self, location: Any) -> tuple[Origin, ...]:
        """Return the origins of the op at ``location``: several where small collectives were combined."""
        text = location.name_str if isinstance(location, ir.NameLoc) else ""
        moves = [self.moves[int(number)] for number in _MOVE.findall(text)]
        return tuple(dict.fromkeys(moves)) or tuple(dict.fromkeys(_origins(text)))


def _origins(text: str) -> list[Origin]:
    return [Origin(int(number), side, int(index or 0)) for number, side, index in _MARK.findall(text)]


def watch(module: Any, pipeline: str) -> Watched:
    """Run ``pipeline`` on ``module``, in place. Raises as ``run_in_place``."""
    seen = Watched()
    watched = [_watched(step, seen) for step in resolve(pipeline, module.context)]
    run_steps(module, tuple(watched))
    return seen


def _watched(step: Step, seen: Watched) -> Step:
    replaced: dict[type[ModulePass], Callable[[Any, Any, Watched], Any]] = {
        Propagate: _propagate,
        Partition: _partition,
        Redistribute: _redistribute,
    }
    does = replaced.get(type(step.own)) if step.own is not None else None
    return step if does is None else Step(step.text, _Instead(step.own, lambda module: does(step.own, module, seen)))


@dataclass(frozen=True)
class _Instead(ModulePass):
    """Run ``does`` instead of the pass ``own``, under the name of the pass."""

    own: Any
    does: Callable[[Any], Any]

    summary = "a pass, watched"

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the pass."""
        return str(self.own.name)

    @property
    def keeps_table(self) -> bool:  # type: ignore[override]
        """Whether the table read by ``own`` is kept for the following passes."""
        return bool(self.own.keeps_table)

    def run(self, module: Any) -> bool | None:
        changed: bool | None = self.does(module)
        return changed

    def __str__(self) -> str:
        return str(self.own)


def _propagate(own: Propagate, module: Any, seen: Watched) -> None:
    own.say_constraints(module)
    table = table_of(module, "propagate")
    keep(table)  # what the pass reads is this
    seen.decision, _ = own.decided(module)
    program = table.program  # of the decision's own, a folded one, equal arguments and results are one
    seen.annotated_arguments = frozenset(
        k for k, value in enumerate(program.body.arguments) if value in program.annotations
    )
    seen.annotated_results = frozenset(
        k for k, row in enumerate(program.result_annotations) if row is not NO_ANNOTATION
    )


def _partition(own: Partition, module: Any, seen: Watched) -> None:
    table, seen.plan = own.plan(module)
    handles, seen.shardings = table.handles, table.all_shardings()
    seen.argument_locations = tuple(str(argument.location) for argument in handles.arguments[None])
    seen.results = tuple(
        names.text(row["jax.result_info"]) if "jax.result_info" in row else "" for row in handles.signature.results
    )
    texts: dict[Any, str] = {}
    locations = []
    for number, op in enumerate(handles.ops):
        location = op.location
        key = location.attr
        if key not in texts:
            texts[key] = str(location)
        locations.append(texts[key])
        op.location = marked(location, f"sp@{number}")
    seen.locations = tuple(locations)
    for holder, end in handles.ends.items():
        end.location = marked(end.location, f"sp@{table.program.count if holder is None else holder[0]}")
    emit(seen.plan, handles)


def _redistribute(own: Redistribute, module: Any, seen: Watched) -> bool:
    for op in every_op(module.operation):
        if op.name == "stablehlo.custom_call" and names.custom_call_target(op) == names.REDISTRIBUTE:
            location = op.location
            text = location.name_str if isinstance(location, ir.NameLoc) else ""
            for first in _origins(text)[:1]:
                move = _move(first, op.attributes)
                op.location = marked(location, f"r@{len(seen.moves)}")
                seen.moves.append(move)
    return own.run(module)


def _move(first: Origin, attributes: Any) -> Origin:
    source, target = (names.text(attributes[name]) for name in (names.FROM, names.TO))
    whole = ir.TypeAttr(attributes[names.GLOBAL_TYPE]).value
    return Origin(first.op, first.side, first.index, source, target, (tuple(whole.shape), str(whole.element_type)))


def marked(location: Any, mark: str) -> Any:
    """Append ``mark`` to the name of ``location``."""
    name, stack = named(location)
    return ir.Location.name(f"{name}/{mark}" if name else mark, stack)


def marks(text: str) -> Sequence[str]:
    """List the marks in a name, for callers that show the name without them."""
    return [match[0] for match in (*_MARK.finditer(text), *_MOVE.finditer(text))]
