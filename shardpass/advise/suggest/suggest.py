"""``suggest``: the few annotations under which a program is cheapest on a mesh, and fits into memory.

Problem: for a program with few or no annotations, find the shardings of its arguments, results and lines that a user
should write, in JAX's notation.

Steps:

1. The program is lowered and imported over the mesh; what the user annotated stays.
2. ``solution.Suggesting`` solves it within the limit of memory, and finds few annotations that lead to the solution.
3. Where no splits beside the user's own annotations of arguments and results keep the limit, the program is asked about
   again without these; constraints inside of it stay. What the answer has as the user wrote it is left out of the
   advice, and what it has otherwise says in place of which annotation it stands. Momentum that is annotated over one
   axis of two may be what a device has no memory for, and then no annotation of anything else helps.

Example of step 3 on d=4, m=2, of ``m = P(None, 'm')``: ``m = P('d', 'm')  # in place of P(None, 'm')``. For others see
docs/suggest.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jaxlib.mlir import ir

from shardpass.advise.place.sites import Reading
from shardpass.advise.suggest.report import Advice, Suggestion
from shardpass.advise.suggest.solution import Suggesting
from shardpass.advise.suggest.take import UNSPECIFIED, imported, is_abstract, jitted, read_options, take
from shardpass.cost import machine as cost
from shardpass.cost.chosen import chosen, machine_text
from shardpass.diagnostics import ShardpassError
from shardpass.diagnostics.table_suggest import LIMIT_TOO_LOW
from shardpass.ir.annotations import ANNOTATIONS, Signature, main_of
from shardpass.ir.context import UNNAMED, copy_module
from shardpass.ir.doors import Given
from shardpass.ir.machines import module_machine
from shardpass.pipeline.base import show_value
from shardpass.program.read import read_program
from shardpass.redistribute.terms.limit import read_limit
from shardpass.runtime.peers import OURS, XLA
from shardpass.sharding import Mesh
from shardpass.targets.machine import installed_on
from shardpass.targets.target import Target

if TYPE_CHECKING:
    import jax

    from shardpass.advise.repair.repair import Repairs


def suggest(
    f: Any,
    *args: Any,
    mesh: jax.sharding.Mesh | jax.sharding.AbstractMesh | None = None,
    in_shardings: Any = UNSPECIFIED,
    out_shardings: Any = UNSPECIFIED,
    memory_limit: int | str | None = None,
    effort: int = 1,
    machine: str | os.PathLike[str] | cost.Machine | None = None,
    partitioner: str | None = None,
    target: str | Target | None = None,
    **kwargs: Any,
) -> Suggestion | Repairs:
    """Suggest the annotations that make ``f`` cheapest on ``mesh``.

    If JAX raises a sharding type error while it traces ``f``, as for a mesh with Explicit axes, the result is
    ``Repairs``: the cheapest edits with which ``f`` traces.

    Args:
        f: a function, the result of ``jax.jit`` or ``lower``, a module, or the path of a file with a module.
        args, kwargs: the arguments of a function: arrays or ``jax.ShapeDtypeStruct``. Nothing runs.
        mesh: a jax Mesh or AbstractMesh; by default the mesh of the program.
        in_shardings, out_shardings: the given shardings of a function that is not jitted, as in ``explain``.
        memory_limit: the memory of a device, in bytes or as text such as "16GiB". The default is the memory of the
            machine; "none" is no limit.
        effort: 1 searches, 2 searches longer.
        machine: the machine for which the program is decided and its figures modeled, as in ``explain``.
        partitioner: "shardpass"; or "xla" or "shardy", which compile the program with every argument and result
            annotated, to measure its memory and the bytes sent. With ``target`` the default is "xla".
        target: the devices for which XLA compiles the program, as in ``explain``; sets ``machine``. For "xla" the
            default is ``machine``, if its compiler is installed.

    Raises:
        ShardpassError: SP412, SP413, SP801 to SP804, SP840, SP843; the errors of lowering and import; SP553 if another
            partitioner fails.
    """
    asked = read_options("suggest", mesh, machine, target, partitioner, effort, 1)
    read_limit(memory_limit)
    f = jitted(f, mesh, in_shardings=in_shardings, out_shardings=out_shardings)
    try:
        data, file, usual = take(f, args, kwargs, None if asked.target is None else asked.target.platform)
    except ShardpassError:
        raise
    except Exception as error:  # whatever the user's function raises
        from shardpass.advise.repair.repair import repairs
        from shardpass.jax.here import machine_here

        repaired = repairs(f, args, kwargs, error, asked.machine or machine_here(), memory_limit, asked.partitioner)
        if repaired is None:
            raise
        return repaired
    on = asked.machine or (None if is_abstract(mesh) else usual)
    return suggest_module(data, file, asked.mesh, memory_limit, asked.effort, on, asked.partitioner, asked.target)


def suggest_module(
    data: Given,
    file: str = UNNAMED,
    mesh: Mesh | None = None,
    memory_limit: int | str | None = None,
    effort: int = 1,
    machine: str | None = None,
    partitioner: str = OURS,
    target: Target | None = None,
) -> Suggestion:
    """Suggest annotations, as ``suggest``, for a module's text or bytecode."""
    limit = read_limit(memory_limit)
    reading = imported(data, file, mesh)
    if target is None and partitioner == XLA:
        target = installed_on(machine, reading.program.mesh.mesh.size)
    machine = machine_text(machine or module_machine(reading.module))
    on = chosen(machine)
    allowed = on.memory_limit if memory_limit is None else limit if isinstance(limit, int) else None
    options = [f"effort={effort}"] if effort != 1 else []
    propagate = f"shardpass-propagate{{{' '.join([*options, f'machine={show_value(machine)}'])}}}"
    rest = data, file, allowed, effort, on, propagate, target
    with reading.module.context:
        asked = Suggesting(reading, *rest)
    try:
        return asked.answer(partitioner)
    except ShardpassError as error:
        if error.code != LIMIT_TOO_LOW.id or not asked.written:
            raise
    reading = _without_annotations(reading)
    with reading.module.context:
        suggestion = Suggesting(reading, *rest, user=asked).answer(partitioner)
    return replace(suggestion, advice=tuple(_changes(suggestion.advice, asked.written)))


def _without_annotations(reading: Reading) -> Reading:
    """Return a copy of an imported program without the annotations of main's arguments and results."""
    module = copy_module(reading.module)
    with module.context, ir.Location.unknown():
        signature = Signature(main_of(module))
        for row in (*signature.arguments, *signature.results):
            for name in ANNOTATIONS:
                row.pop(name, None)
        signature.write()
        program, handles = read_program(module, "propagate")
    return replace(reading, module=module, program=program, handles=handles)


def _changes(advice: tuple[Advice, ...], written: Mapping[tuple[str, int], str]) -> Iterator[Advice]:
    """Yield ``advice`` as changes of the user's annotations (``written``)."""
    for one in advice:
        site = one.annotation.site
        before = [written.get((site.kind, place)) for place in site.positions]
        texts = list(dict.fromkeys(text for text in before if text is not None))
        if not texts:
            yield one
        elif texts != [one.spec] or None in before:
            yield replace(one, note=f"in place of {', '.join(texts)}", instead=tuple(texts))
