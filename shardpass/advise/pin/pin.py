"""``pin_module``: a module with shardpass's decisions written as constraints, for XLA to partition."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from jaxlib.mlir import ir

from shardpass.advise.pin.choose import MOST, choose
from shardpass.advise.pin.points import ARGUMENT, OPERAND, Point, decided, pinned_module
from shardpass.cost.chosen import chosen, machine_text
from shardpass.diagnostics.printable import joined
from shardpass.ir.annotations import get_text
from shardpass.ir.context import copy_module
from shardpass.ir.machines import module_machine, set_module_machine
from shardpass.passes.propagate import Propagate
from shardpass.pipeline.resolve import resolve
from shardpass.report.findings import Figures
from shardpass.report.text import show_bytes, show_seconds
from shardpass.targets.compiled import Compiled
from shardpass.targets.machine import installed_on, machine_of
from shardpass.targets.target import Target

PROPAGATE = "propagate"


@dataclass(frozen=True)
class Pins:
    """The pins of a program, with its costs before and after.

    Attributes:
        name, axes, machine: the program's name, its mesh as text, and the machine for which it is decided.
        constraints: the text of each constraint, in program order.
        before, after: the figures of XLA's program without and with the pins, as compiled for GPUs and TPUs; None if
            nothing was compiled.
        compiled: the number of compiled variants.
    """

    name: str
    axes: str
    machine: str
    constraints: tuple[str, ...]
    before: Figures | None = None
    after: Figures | None = None
    compiled: int = 0

    def json(self) -> str:
        """Return the pins as text that ``from_json`` reads."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Pins:
        """Read what ``json`` wrote. Raises ValueError, KeyError or TypeError for any other text."""
        given = json.loads(text)
        for side in ("before", "after"):
            given[side] = None if given[side] is None else Figures(**given[side])
        return Pins(**{**given, "constraints": tuple(given["constraints"])})

    def __str__(self) -> str:
        return joined(self._lines())

    def _lines(self) -> Iterable[str]:
        count = len(self.constraints)
        number = f"{count} constraint{'' if count == 1 else 's'}" if count else "no constraint"
        yield f"{self.name or 'program'}: {number} over {self.axes}, decided for {self.machine}"
        if self.before is None or self.after is None:
            yield "not compared with XLA's program without them (verify=False)"
        elif not count:
            yield f"XLA's own program is kept: of {self.compiled} that were compiled, none is cheaper within its memory"
        else:
            pairs: tuple[tuple[str, Callable[[Any], str], float, float], ...] = (
                ("received", show_bytes, self.before.bytes, self.after.bytes),
                ("temporaries", show_bytes, self.before.temporaries, self.after.temporaries),
                ("memory", show_bytes, self.before.memory, self.after.memory),
                ("modelled", show_seconds, self.before.seconds, self.after.seconds),
            )
            for word, show, before, after in pairs:
                yield f"  {word:12} {show(before):>12} -> {show(after):>12}"
            yield f"  {self.compiled} variants were compiled with XLA"
        yield from self.constraints


def pin_module(
    module: Any,
    *,
    machine: str | None = None,
    verify: bool = True,
    most: int = MOST,
    pipeline: str = PROPAGATE,
    target: Target | None = None,
    named: bool = False,
    improved: Callable[[Figures], None] = lambda figures: None,
) -> tuple[Any, Pins]:
    """Pin shardpass's decisions in ``module``, as JAX lowered it or a person annotated it. Returns the module with
    constraints, and the pins.

    ``machine``: for which the program is decided; by default the one that the module names, or the usual one.
    ``verify``: XLA compiles variants in a child process, ``most`` at most, and those constraints are kept under which
    its program is cheapest, and above the plain one in nothing; else all that shardpass decides is written.
    ``pipeline``: imports and decides. ``target``: the devices for which variants are compiled; their machine
    decides unless one is named. ``named``: the user named the machine, whose own compiler is then the default, where it
    is installed. ``improved``: called with the figures of each variant that is better than all before it.

    Raises ShardpassError as the pipeline does; SP553 and SP911 where XLA makes no program of the module as it is.
    """
    copy = copy_module(module)
    machine = machine or (None if target is None else machine_text(machine_of(target)))
    if machine is not None:
        set_module_machine(copy, machine)
    on = chosen(module_machine(copy))
    decision = decided(copy, pipeline)
    if named:
        target = target or installed_on(machine, decision.mesh.size)
    name = (get_text(module.operation, "sym_name") or "").removeprefix("jit_")
    axes = ", ".join(f"{axis}={size}" for axis, size in decision.mesh.axes)
    points: tuple[Point, ...] = decision.points
    compared: tuple[Any, ...] = ()
    if verify:
        best = choose(
            module,
            decision,
            on,
            most,
            lambda limit: decided(copy, within(pipeline, limit)),
            target,
            lambda *made: improved(_figures(*made)),
        )
        figures = (_figures(*side) for side in zip((best.plain, best.pinned), best.seconds, strict=True))
        points, compared = best.points, (*figures, best.compiled)
    made = pinned_module(module, decision.mesh, points)
    return made, Pins(name, axes, on.name, tuple(map(constraint_text, points)), *compared)


def within(pipeline: str, limit: int) -> str:
    """Return ``pipeline`` with a limit of ``limit`` bytes alive on a device."""
    steps = resolve(pipeline, ir.Context())
    return ",".join(
        str(replace(step.own, fit=str(max(0, limit))) if isinstance(step.own, Propagate) else step) for step in steps
    )


def _figures(program: Compiled, seconds: float) -> Figures:
    return Figures(program.bytes_scattered, program.memory, 0, seconds, temporaries=program.temporaries)


def constraint_text(point: Point) -> str:
    """Format the constraint as JAX code, with its place, for a user to write there."""
    op = point.called.removeprefix("stablehlo.")
    name = point.name or f"the result of {op}"
    at = f"  # {point.at.file}:{point.at.line}" if point.at.line else ""
    if point.backward:
        side = f", operand {point.spot.place} of {op}" if point.spot.side == OPERAND else ""
        return f"# {name}: {point.spec_text}{at and ' ' + at.strip('# ')}{side} (of a derivative)"
    text = f"jax.lax.with_sharding_constraint({name}, {point.spec_text})"
    if point.spot.side == ARGUMENT:
        return f"{text}  # argument {point.spot.place}"
    if point.spot.side == OPERAND:
        return f"{text}{at or '  #'}{',' if at else ''} for {op}"
    return text + at
