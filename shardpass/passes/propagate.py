"""``shardpass-propagate``: chooses a sharding for every value, with the engine in ``propagation``."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from jaxlib.mlir import ir

from shardpass.cost.chosen import chosen
from shardpass.diagnostics import Place, on_one_line
from shardpass.diagnostics.table_driver import OPTION_TYPE
from shardpass.ir.annotations import (
    ANNOTATIONS,
    BARRIER,
    CONFLICT,
    CONSTRAINTS,
    COPY,
    DECIDED,
    EXACT,
    FIT,
    FREE,
    SHARDING,
    SPLIT,
    WAITS,
    get_text,
)
from shardpass.ir.locations import place_of
from shardpass.ir.machines import machine_for, set_module_machine
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.registry import register
from shardpass.planning.decide.search import Decision, decide
from shardpass.program.program import OpKind, Program
from shardpass.program.read import Handles
from shardpass.program.shardings import Shardings, split_text
from shardpass.program.table import Table, keep, table_of
from shardpass.propagation.engine import describe
from shardpass.redistribute.terms.limit import read_limit
from shardpass.sharding import Sharding

OF_MACHINE = "machine"  # the limit that is the machine's memory
MOST_COPIES = 8  # of all arrays, whole: no plan needs more at once


@register
@dataclass(frozen=True)
class Propagate(ModulePass):
    """Chooses a sharding for every tensor of ``main``, based on the user's annotations.

    Shardings propagate through ops in both directions, along the dimensions that an op's rule maps to each other;
    ``shardpass/propagation/engine.py`` describes the rounds and how conflicts are resolved. Annotated shardings do not
    change.

    Options:
        effort: 0: propagate only; 1: then search for shardings whose plan is cheaper (see
            ``shardpass/planning/decide/search.py``); 2: search longer, and value by value in small programs
        machine: the machine for which plans are priced: "h100", "v5p", or another of docs/reference/machines.md; or a
            file NAME.toml that `shardpass calibrate` writes; "" for the machine that the module names, or else that of
            the environment (SHARDPASS_MACHINE), or else h100. The module states the machine for later passes
            (`shardpass.machine`)
        fit: the most bytes that may be alive on a device at once, arguments included, such as 16GiB: chooses the
            cheapest shardings whose plan needs no more memory; "none" sets no limit. The default "machine" is the
            memory of a device of the machine: if no shardings fit, the cheapest are chosen, and a remark says so
        constraints: "exact": results of constraints and of annotated ops have exactly their annotated shardings, and
            their users start from that copy; "free": users may start from any copy of the array, and the array is
            redistributed to the constraint's sharding only if that is cheapest, which shows the cost of constraints.
            The module records the choice for later passes (`shardpass.constraints`)
        settle-results: main's results keep the shardings that propagation chooses, as in JAX. A result whose sharding
            does not follow from annotations through ops that change no dimension gets another sharding if that receives
            fewer bytes and saves 5% of the time. Only without a memory limit
        verbose: print on stderr each factor for which values of one op have different splits: the chosen split, and the
            bytes of the values that have it (two factors that compete for one axis are not printed)
        trace: print each change on stderr: the op, the value that was split further, and the axes; also how many plans
            were compared, and how near the decision is to the best shardings in the model of its tables

    Input:

        module attributes {mhlo.num_partitions = 2 : i32, shardpass.mesh = "mesh['x'=2]"} {
          func.func @main(%x: tensor<8x4xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) -> tensor<4x8xf32> {
            %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
            return %0 : tensor<4x8xf32>
          }
        }

    Output:

        module attributes {mhlo.num_partitions = 2 : i32, shardpass.machine = "h100", shardpass.mesh = "mesh['x'=2]"} {
          func.func @main(%x: tensor<8x4xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) -> (tensor<4x8xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"}) {
            %0 = stablehlo.transpose %x, dims = [1, 0] {mhlo.sharding = "{devices=[1,2]<=[2]}"} : (tensor<8x4xf32>) -> tensor<4x8xf32>
            return %0 : tensor<4x8xf32>
          }
        }
    """  # noqa: E501  IR is not wrapped

    name = "shardpass-propagate"
    summary = "a sharding for every value, from those that the user fixed"
    example = "{machine=h100}"

    keeps_table: ClassVar[bool] = True
    shared = frozenset({"machine"})

    effort: int = 1
    machine: str = ""
    fit: str = OF_MACHINE
    constraints: str = EXACT
    settle_results: bool = False
    verbose: bool = False
    trace: bool = False

    def run(self, module: Any) -> None:
        decision, handles = self.decided(module)
        log = DecisionLog(decision, handles)
        for line in (*(log.trace() if self.trace else ()), *(log.conflicts() if self.verbose else ())):
            print(on_one_line(line), file=sys.stderr)

    def decided(self, module: Any) -> tuple[Decision, Handles]:
        """Decide the shardings of ``module`` and write the machine and the limit of the decision into it."""
        self.say_constraints(module)
        machine = machine_for(module, self.name, self.machine)
        set_module_machine(module, machine)
        table = table_of(module, "propagate")
        program, handles = table.program, table.handles
        decision = self._decided(program, barriers(program, handles), machine)
        program = replace(program, memory=decision.memory)
        if decision.memory is not None:
            module.operation.attributes[FIT] = ir.StringAttr.get(str(decision.memory), module.context)
        write(program, handles, decision.shardings)
        plan = decision.plan if decision.memory is None else None
        keep(Table(program, handles, decision.shardings, decision.decided, plan))
        return decision, handles

    def refuse_unknown(self) -> None:
        """Raise ShardpassError (SP107) unless ``constraints`` is ``exact`` or ``free``."""
        if self.constraints not in (EXACT, FREE):
            raise OPTION_TYPE.error(
                option="constraints", name=self.name, type="exact or free", value=self.constraints, default=EXACT
            )

    def say_constraints(self, module: Any) -> None:
        """Record on ``module`` whether its constraints apply. Call before the module is read."""
        self.refuse_unknown()
        attributes = module.operation.attributes
        if self.constraints == FREE:
            attributes[CONSTRAINTS] = ir.StringAttr.get(FREE, module.context)
        elif CONSTRAINTS in attributes:
            del attributes[CONSTRAINTS]
        if FIT in attributes:  # of an earlier decision
            del attributes[FIT]

    def _decided(self, program: Program, directions: dict[int, str], machine: str) -> Decision:
        on, asked = chosen(machine), self.fit != OF_MACHINE
        limit = read_limit(self.fit) if asked else on.memory_limit
        if limit == "max":  # which limits redistributions
            raise OPTION_TYPE.error(
                option="fit", name=self.name, type="bytes, as in 16GiB", value="max", default=OF_MACHINE
            )
        if limit is None or (not asked and MOST_COPIES * program.bytes <= limit):
            return decide(program, directions, self.effort, on, settle_results=self.settle_results)
        from shardpass.planning.decide.limited import decide_within  # where a program must fit, which most need not

        settle = self.settle_results and not asked
        return decide_within(limit, program, directions, self.effort, on, settle_results=settle, asked=asked)


def barriers(program: Program, handles: Handles) -> dict[int, str]:
    """Read the constraints that pass shardings in one direction only, or NONE; by op number."""
    directions = {}
    for op in program.body.every_op():
        if op.kind is OpKind.CONSTRAINT and (direction := get_text(handles.ops[op.number], BARRIER)) is not None:
            directions[op.number] = direction
    return directions


def write(program: Program, handles: Handles, shardings: Shardings) -> None:
    """Write the shardings into the module: on arguments, results, and every op with arrays."""
    signature = handles.signature
    for value, row in zip(program.body.arguments, signature.arguments, strict=True):
        if value in shardings.of:
            _annotate(row, shardings.of[value])
        row.pop(COPY, None)
        if value in shardings.copies:
            row[COPY] = ir.StringAttr.get(str(shardings.copies[value]))
    for sharding, row in zip(shardings.results, signature.results, strict=True):
        if sharding is not None:
            _annotate(row, sharding)
    signature.write()
    texts: dict[tuple[Sharding | None, ...], Any] = {}
    for op in program.body.every_op():
        if op.is_manual:
            continue
        of_op = tuple([shardings.of.get(value) for value in op.results])
        if not any(of_op):
            continue
        if of_op not in texts:
            written = [str(s or Sharding.replicated()) for s in of_op]  # tokens among them are everywhere
            texts[of_op] = ir.StringAttr.get(written[0] if len(written) == 1 else "{" + ", ".join(written) + "}")
        attributes = handles.ops[op.number].attributes
        if any(value in program.annotations for value in op.results):
            for name in ANNOTATIONS:
                if name in attributes:
                    del attributes[name]
        attributes[SHARDING] = texts[of_op]
    for op in program.body.every_op():
        attributes = handles.ops[op.number].attributes
        for name in DECIDED:
            if name in attributes:
                del attributes[name]
        if len(op.results) == 1 and op.results[0] in shardings.copies:
            attributes[COPY] = ir.StringAttr.get(str(shardings.copies[op.results[0]]))
        if op.number in shardings.ways:
            attributes[SPLIT] = ir.StringAttr.get(split_text(op, shardings.ways[op.number]))
        if len(op.results) == 1 and op.results[0] in shardings.partial:
            waits = op.mesh.sharding((shardings.partial[op.results[0]],))
            attributes[WAITS] = ir.StringAttr.get(str(waits))
    for number, conflict in shardings.conflicts.items():
        handles.ops[number].attributes[CONFLICT] = ir.StringAttr.get(conflict)


def _annotate(row: dict[str, Any], sharding: Sharding) -> None:
    """Replace the user's annotation in the attributes of an argument or result by ``sharding``."""
    for name in ANNOTATIONS:
        row.pop(name, None)
    row[SHARDING] = ir.StringAttr.get(str(sharding))


class DecisionLog:
    """Formats the steps of propagation and search as lines for stderr."""

    def __init__(self, decision: Decision, handles: Handles) -> None:
        self.decision = decision
        self.engine = decision.propagated.engine
        self.mesh = decision.propagated.program.mesh
        self.handles = handles

    def conflicts(self) -> list[str]:
        """List the ops where two splits disagreed, with the chosen one and the reason; then the search's changes."""
        lines = [f"{self._where(c.step)}: {describe(c, self.mesh)}" for c in self.engine.conflicts.values()]
        for change in self.decision.changes:
            lines.append(f"{change.message}: {change.before * 1e6:.4g} us -> {change.after * 1e6:.4g} us")
        return lines

    def trace(self) -> list[str]:
        """List every step of propagation, in order."""
        lines = []
        for event in self.engine.events:
            operands = len(self.engine.steps[event.step].rule.operands)
            inside = event.position < operands
            which = f"operand {event.position}" if inside else f"result {event.position - operands}"
            before, after = (
                "[" + ", ".join("{" + self.mesh.names(axes) + "}" for axes in dims) + "]"
                for dims in (event.before, event.after)
            )
            lines.append(f"{self._where(event.step)}: {which}: {before} -> {after}")
        decision = self.decision
        if decision.searched is not None:
            lines.append(f"search: {decision.tried} plans compared, {len(decision.changes)} taken")
        if decision.bound is not None:
            lines.append(f"decision: {decision.bound}")
        return lines

    def _where(self, step: int) -> str:
        of_engine = self.engine.steps[step]
        if of_engine.op is None:
            return of_engine.name
        return f"{self._place(of_engine.op)}: {of_engine.name}"

    def _place(self, op: int) -> Place:
        """Return the source line of an op of the decided program, which may be part of one of the user's ops."""
        return place_of(self.handles.ops[self.decision.parts.get(op, op)].location)
