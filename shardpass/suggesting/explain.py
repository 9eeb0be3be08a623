"""``shardpass.explain``: the report of a function, of what JAX made of it, of a module, or of a file."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shardpass.cost import machine as cost
from shardpass.cost.chosen import chosen
from shardpass.diagnostics import collect
from shardpass.diagnostics.arguments import text_of, whole, wrong_argument
from shardpass.diagnostics.table_suggest import SHARDINGS_OF_WHAT
from shardpass.ir.annotations import EXACT
from shardpass.ir.context import parse_module
from shardpass.ir.doors import Given
from shardpass.ir.machines import module_machine
from shardpass.pipeline.base import show_value
from shardpass.pipeline.run import run_in_place
from shardpass.planning.loop_price import OFF
from shardpass.redistribute.terms.limit import read_limit
from shardpass.report.build import PIPELINE, explain_module, is_partitioned
from shardpass.report.explanation import Explanation
from shardpass.report.naming import Sources
from shardpass.report.rows import HintFact
from shardpass.sharding import Mesh
from shardpass.suggesting.hints import find_hints
from shardpass.suggesting.take import decide_for, effort_of, machine_of, put_mesh, read_mesh, take

UNSAID = object()


def explain(
    f: Any,
    *args: Any,
    mesh: Any = None,
    in_shardings: Any = UNSAID,
    out_shardings: Any = UNSAID,
    machine: str | os.PathLike[str] | cost.Machine | None = None,
    trips: int | None = None,
    memory_limit: int | str | None = None,
    effort: int = 1,
    hints: bool = False,
    matmul_loops: str = OFF,
    constraints: str = EXACT,
    profile: str | None = None,
    **kwargs: Any,
) -> Explanation:
    """What each device of the partitioned program receives and holds, by the line of ``f`` that it comes from.

    ``f``: a function with its arguments (arrays or ``jax.ShapeDtypeStruct``), what ``jax.jit``,
    ``shardpass.jax.partition`` or ``lower`` returned, a module, its text, or the path of a file that holds one.

    Args:
        mesh: a jax Mesh or AbstractMesh, over which each ``PartitionSpec`` here is said; by default the one that the
            program names.
        in_shardings, out_shardings: as ``jax.jit`` takes them, or trees of ``PartitionSpec``; of a function.
        machine: the machine for which the program is decided and planned, and whose time is modelled: a name of
            docs/reference/machines.md, the path of a file NAME.toml, or a ``Machine``. By default the one that the
            module names, or that of the environment (SHARDPASS_MACHINE), or of the devices for which JAX lowered the
            program, or else h100.
        trips: of loops whose trips are not known, the number to show bytes for too.
        memory_limit: of a device, bytes or text as "16GiB"; the report says what does not fit.
        effort: of ``shardpass-propagate``: 0 propagates alone, 1 searches, 2 looks longer.
        hints: look for annotations that save; each is tried by planning again, which takes longer than the report.
        matmul_loops: which products are done in turn with the collective beside them, as the pipeline's option.
        constraints: "exact", or "free" to see what the program would cost if its constraints did not hold; as the
            option of ``shardpass-propagate``.
        profile: the old name of ``machine``.

    Raises ShardpassError: SP801 and SP803, what lowering raises, and what the pipeline ``partition`` raises.
    """
    limit = None if memory_limit is None else read_limit(memory_limit)
    machine = machine_of("explain", machine, profile)
    constraints = text_of("explain", "constraints", constraints, "exact, or free")
    over = read_mesh(mesh, "explain")
    effort = effort_of("explain", effort, 0)
    matmul_loops = text_of("explain", "matmul_loops", matmul_loops, "off, all, memory, or the name of a machine")
    if trips is not None and whole(trips) is None:
        raise wrong_argument("explain", "trips", trips, "a whole number, or None")
    if type(hints) is not bool:
        raise wrong_argument("explain", "hints", hints, "True or False")
    given = {"in_shardings": in_shardings, "out_shardings": out_shardings}
    said = {name: value for name, value in given.items() if value is not UNSAID}
    data, file, usual = take(_jitted(f, mesh, said), args, kwargs)
    folders = [Path.cwd()] if _is_file(f) else None
    module = parse_module(data, file)
    if not is_partitioned(module):
        put_mesh(module, over, file)
    given_text = data if mesh is None else str(module.operation.get_asm(enable_debug_info=True))
    decide_for(module, machine, usual)
    passes = pipeline(effort, matmul_loops, constraints=constraints)
    with collect():
        found = explain_module(module, file, pipeline=passes, folders=folders)
    allowed = None if limit is None or limit == "max" else int(limit)
    advice = with_hints(data, file, over, effort, machine or usual, folders) if hints else None
    return dataclasses.replace(found, trips=trips, memory_limit=allowed, hints=advice, given=given_text)


def with_hints(
    data: Given,
    file: str,
    mesh: Mesh | None,
    effort: int,
    machine: str | None,
    folders: Sequence[Path] | None,
) -> tuple[HintFact, ...]:
    """The annotations that save most in the program ``data``; none of one that is partitioned already."""
    module = parse_module(data, file)
    if is_partitioned(module):
        return ()
    with collect():
        put_mesh(module, mesh, file)
        run_in_place(module, "shardpass-import")
        return find_hints(module, effort, chosen(machine or module_machine(module)), Sources(folders))


def pipeline(effort: int, matmul_loops: str = OFF, machine: str | None = None, constraints: str = EXACT) -> str:
    """The pipeline "partition": its search at ``effort``, its products in turn as ``matmul_loops`` says.

    ``machine``: for which shardings are decided and redistributions planned. ``constraints``: whether they hold.
    """
    given = [] if effort == 1 else [f"effort={effort}"]
    given += [f"machine={show_value(machine)}"] if machine else []
    given += [] if matmul_loops == OFF else [f"matmul-loops={show_value(matmul_loops)}"]
    given += [] if constraints == EXACT else [f"constraints={show_value(constraints)}"]
    return f"{PIPELINE}{{{' '.join(given)}}}" if given else PIPELINE


def _is_file(f: Any) -> bool:
    """Whether ``f`` names a file, which a stranger may have written, and not a program of this process."""
    return isinstance(f, str | bytes | os.PathLike)


def _jitted(f: Any, mesh: Any, said: dict[str, Any]) -> Any:
    """``f`` under ``jax.jit`` with the shardings that are ``said``; anything but a function as it is."""
    if not callable(f) or hasattr(f, "lower") or hasattr(f, "as_text"):
        if said:
            raise SHARDINGS_OF_WHAT.error(given=f"an object of class {type(f).__name__}", names=" and ".join(said))
        return f
    import jax

    from shardpass.jax.partition import over

    return jax.jit(f, **{name: over(mesh, value) for name, value in said.items()})
