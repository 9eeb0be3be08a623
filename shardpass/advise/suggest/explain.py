"""``shardpass.explain``: the report of a function, of what JAX made of it, of a module, or of a file."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardpass.advise.find.findings import Wanted, with_decided, with_findings
from shardpass.advise.find.planned import find_hints
from shardpass.advise.suggest.take import UNSPECIFIED, decide_for, jitted, put_mesh, read_options, take
from shardpass.cost import machine as cost
from shardpass.cost.chosen import chosen
from shardpass.diagnostics import Place, ShardpassError, collect
from shardpass.diagnostics.arguments import has, text_of, whole, wrong_argument
from shardpass.diagnostics.table_report import NOT_MEASURED
from shardpass.ir.annotations import EXACT
from shardpass.ir.context import parse_module
from shardpass.ir.doors import Given
from shardpass.ir.machines import module_machine
from shardpass.pipeline.base import show_value
from shardpass.pipeline.run import run_in_place
from shardpass.planning.price.loops import OFF
from shardpass.redistribute.terms.limit import read_limit
from shardpass.report.build import PIPELINE, explain_module, is_partitioned
from shardpass.report.explanation import Explanation
from shardpass.report.hlo.explain import explain_hlo
from shardpass.report.hlo.programs import explain_compiled, explain_partitioned_by, is_compiled, partitioned_text
from shardpass.report.naming import Sources
from shardpass.report.rows import HintFact
from shardpass.runtime.peers import OURS
from shardpass.sharding import Mesh
from shardpass.targets.target import Target

if TYPE_CHECKING:
    import jax

NOTHING = Wanted()


def explain(
    f: Any,
    *args: Any,
    mesh: jax.sharding.Mesh | jax.sharding.AbstractMesh | None = None,
    in_shardings: Any = UNSPECIFIED,
    out_shardings: Any = UNSPECIFIED,
    machine: str | os.PathLike[str] | cost.Machine | None = None,
    trips: int | None = None,
    memory_limit: int | str | None = None,
    effort: int = 1,
    hints: bool = False,
    matmul_loops: str = OFF,
    constraints: str = EXACT,
    partitioner: str | None = None,
    target: str | Target | None = None,
    profile_dir: str | os.PathLike[str] | None = None,
    **kwargs: Any,
) -> Explanation:
    """Report the bytes that each device of the partitioned program receives and the memory that it needs, by the lines
    of ``f``.

    Args:
        f: a function; the result of ``jax.jit``, ``shardpass.jax.partition``, ``lower`` or ``compile``; a module, its
            text, or the path of a file with a module. Partitioned HLO and results of ``compile`` are reported
            unchanged.
        args, kwargs: the arguments of a function: arrays or ``jax.ShapeDtypeStruct``. Nothing runs.
        mesh: the jax Mesh or AbstractMesh of each ``PartitionSpec``; by default the mesh of the program.
        in_shardings, out_shardings: the shardings of a function that is not jitted, as for ``jax.jit``, or trees of
            ``PartitionSpec``.
        machine: the machine for which the program is decided and planned, and its time modeled: a name in
            docs/reference/machines.md, the path of a file NAME.toml, or a ``Machine``. The default is the machine of
            the module, else the environment variable SHARDPASS_MACHINE, else the machine of the devices for which JAX
            lowered the program, else h100.
        trips: report bytes for this number of iterations of loops whose trip count is unknown.
        memory_limit: the memory of a device, in bytes or as text such as "16GiB". The report says how much does not
            fit. The default is the memory of the machine; "none" is no limit.
        effort: the effort of ``shardpass-propagate``: 0 only propagates, 1 searches, 2 searches longer.
        hints: look for annotations that reduce cost. Each is tried by planning again, which takes longer than the
            report.
        matmul_loops: the products that are overlapped with a collective (collective matmul); see the option of the
            pipeline.
        constraints: "exact", or "free" to ignore the sharding constraints of the program; see the option of
            ``shardpass-propagate``.
        partitioner: the partitioner of the reported program: "shardpass" (default without ``target``); "xla" (default
            with ``target``), which is what ``jax.jit`` runs; or "shardy", which runs Shardy's own passes. The programs
            of "xla" and "shardy" are compiled in a separate process for virtual CPU devices; ``effort``,
            ``matmul_loops``, ``constraints`` and ``hints`` do not apply to them.
        target: compile for these devices by their own compiler, without the devices: "v5e:16x16", "h100:4x8", and
            others in docs/howto/accelerators.md. Sets ``machine``.
        profile_dir: the folder that ``jax.profiler.trace`` wrote while the program ran, or one of its xplane files. The
            report shows measured beside modeled times of collectives. Only for HLO programs.

    Raises:
        ShardpassError: SP801 and SP803; the errors of lowering and of the pipeline ``partition``; SP553 if another
            partitioner fails; SP629 to SP631 if ``profile_dir`` is not a profile of the program; SP908 to SP912 for
            ``target``.
    """
    read_limit(memory_limit)
    asked = read_options("explain", mesh, machine, target, partitioner, effort, 0)
    over, machine, built_for, partitioner, effort = asked
    constraints = text_of("explain", "constraints", constraints, "exact, or free")
    matmul_loops = text_of("explain", "matmul_loops", matmul_loops, "off, all, memory, or the name of a machine")
    if trips is not None and whole(trips) is None:
        raise wrong_argument("explain", "trips", trips, "a whole number, or None")
    if type(hints) is not bool:
        raise wrong_argument("explain", "hints", hints, "True or False")
    wrapped = jitted(f, mesh, in_shardings=in_shardings, out_shardings=out_shardings)
    if is_compiled(wrapped):
        explanation = explain_compiled(wrapped, over, machine)
        if hints:
            raise no_hints(explanation)
        return measured(dataclasses.replace(within(explanation, memory_limit), trips=trips), profile_dir)
    platform = None if built_for is None else built_for.platform
    data, file, usual = take(wrapped, args, kwargs, platform)
    folders = [Path.cwd()] if isinstance(f, str | bytes | os.PathLike) else None  # of a file, which is not trusted
    passes = pipeline(effort, matmul_loops, constraints=constraints)
    explained = partial(
        explain_data, partitioner=partitioner, over=over, machine=machine, usual=usual, passes=passes, target=built_for
    )
    retracer = None
    if has(wrapped, "trace"):
        from shardpass.advise.repair.trace import Retracer

        retracer = Retracer(wrapped, args, kwargs, platform)
    wanted = Wanted(None if retracer is None else retracer.again)
    with collect():
        explanation = explained(data, file, folders=folders, wanted=wanted)
    if retracer is not None:
        from shardpass.advise.repair.door import with_findings as with_reshards

        explanation = with_reshards(explanation, retracer, lambda text: explained(text, file), folders)
    if hints and explanation.partitioner != OURS:
        raise no_hints(explanation)
    advice = with_hints(data, file, over, effort, machine or usual, folders) if hints else None
    return measured(dataclasses.replace(within(explanation, memory_limit), trips=trips, hints=advice), profile_dir)


def explain_data(
    data: Given,
    file: str,
    partitioner: str = OURS,
    over: Mesh | None = None,
    machine: str | None = None,
    usual: str | None = None,
    *,
    passes: str = PIPELINE,
    folders: Sequence[Path] | None = None,
    target: Target | None = None,
    wanted: Wanted = NOTHING,
) -> Explanation:
    """Report a program in any form. ``over``, ``usual``: the mesh and machine of a program that does not name them.
    ``target``: the devices for which XLA compiles the program.

    ``wanted``: how findings are looked for.

    Raises ShardpassError where the program does not parse, or cannot be partitioned or compiled.
    """
    text = partitioned_text(data, file)
    if text is not None:
        return explain_hlo(text, file, mesh=over, machine=machine or usual, folders=folders)
    module = parse_module(data, file)
    partitioned = is_partitioned(module)
    if not partitioned:
        put_mesh(module, over, file)
    if partitioner != OURS and not partitioned:
        asked = partitioner, module, file, over, machine or usual, folders, target
        explanation = explain_partitioned_by(*asked, named=machine is not None)
        return with_findings(explanation, file, machine or usual, folders, wanted)
    given_text = data if over is None else str(module.operation.get_asm(enable_debug_info=True))
    decide_for(module, machine, usual)
    if target is not None:
        if not partitioned:
            run_in_place(module, passes)
        return explain_partitioned_by(OURS, module, file, over, machine or usual, folders, target)
    explanation = explain_module(module, file, pipeline=passes, folders=folders)
    return with_decided(dataclasses.replace(explanation, given=given_text), file, folders)


def within(explanation: Explanation, memory_limit: int | str | None) -> Explanation:
    """Return ``explanation`` with ``memory_limit``, as ``explain`` takes it; None: the machine's limit.

    Raises ShardpassError (SP412).
    """
    if memory_limit is None:
        return explanation
    limit = read_limit(memory_limit)
    return dataclasses.replace(explanation, memory_limit=limit if isinstance(limit, int) else None)


def measured(explanation: Explanation, profile_dir: str | os.PathLike[str] | None) -> Explanation:
    """Return ``explanation`` with the measured times of the profile in ``profile_dir``; None: without any.

    Raises ShardpassError: SP629 for a folder without a profile, SP630 for that of another program, SP631 for a report
    that is not of HLO.
    """
    if profile_dir is None:
        return explanation
    if not isinstance(profile_dir, str | os.PathLike):
        raise wrong_argument("explain", "profile_dir", profile_dir, "a path, or None")
    if explanation.measure is None:
        raise NOT_MEASURED.error(Place(explanation.file))
    return dataclasses.replace(explanation, measured=explanation.measure(os.fspath(profile_dir)))


def no_hints(explanation: Explanation) -> ShardpassError:
    """Return the error (SP140) for hints about a program that shardpass did not partition."""
    why = f"the program is that of {explanation.partitioner}, and annotations are tried by shardpass's plan"
    return wrong_argument("explain", "hints", True, f"False, as {why}")


def with_hints(
    data: Given,
    file: str,
    mesh: Mesh | None,
    effort: int,
    machine: str | None,
    folders: Sequence[Path] | None,
) -> tuple[HintFact, ...]:
    """Return the annotations that save most in the program ``data``; () if it is partitioned already."""
    module = parse_module(data, file)
    if is_partitioned(module):
        return ()
    with collect():
        put_mesh(module, mesh, file)
        return find_hints(module, effort, chosen(machine or module_machine(module)), Sources(folders))


def pipeline(effort: int, matmul_loops: str = OFF, machine: str | None = None, constraints: str = EXACT) -> str:
    """Return the text of the pipeline "partition" with the options ``effort`` and ``matmul_loops``.

    ``machine``: for which shardings are decided and redistributions planned. ``constraints``: whether they hold.
    """
    given = [] if effort == 1 else [f"effort={effort}"]
    given += [f"machine={show_value(machine)}"] if machine else []
    given += [] if matmul_loops == OFF else [f"matmul-loops={show_value(matmul_loops)}"]
    given += [] if constraints == EXACT else [f"constraints={show_value(constraints)}"]
    return f"{PIPELINE}{{{' '.join(given)}}}" if given else PIPELINE
