"""Choose the programs that are reported from HLO, and obtain their HLO.

1. A file, or a text, of HLO that is partitioned already, before or after XLA's optimizations: as it is.
2. A ``jax.stages.Compiled``: the text that it prints, with XLA's statistics of its memory.
3. An annotated module for which another partitioner or a target is asked: a process of its own compiles the module,
   for virtual CPU devices or for those of the target (``targets.compiler``). Nothing runs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from shardpass.cost.collective import KINDS, hlo_name
from shardpass.cost.machine import Machine
from shardpass.diagnostics import NOWHERE, Place, ShardpassError
from shardpass.diagnostics.table_cost import TARGET_FAILED, TARGET_PARTITIONER, TARGET_SIZE
from shardpass.diagnostics.table_suggest import NOT_A_PROGRAM
from shardpass.ir.annotations import mesh_of, num_devices, set_num_devices
from shardpass.ir.context import UNNAMED
from shardpass.ir.doors import Format, Given, LargeFile, format_of, hlo_text_of
from shardpass.ir.replica_groups import meshes_of
from shardpass.ir.written import bytecode
from shardpass.report.build import called
from shardpass.report.explanation import Explanation
from shardpass.report.hlo.explain import explain_hlo
from shardpass.report.rows import MemoryFacts
from shardpass.runtime.peers import SHARDY
from shardpass.sharding import Mesh
from shardpass.targets.compiled import Compiled
from shardpass.targets.compiler import shared
from shardpass.targets.machine import target_on
from shardpass.targets.target import CPU, Target, cpu
from shardpass.targets.versions import extra_of, is_installed

_HEADER = re.compile(r"^HloModule\s[^\n]*", re.MULTILINE)
_SCHEDULED = re.compile(r"\bis_scheduled=true\b")
_PARTITIONED = re.compile(r"^ENTRY %?[\w.\-]+_spmd\b", re.MULTILINE)
_COLLECTIVE = re.compile(rf" (?:{'|'.join(map(hlo_name, KINDS))})(?:-start)?\(")
_ORDER = ", devices ordered as jax.make_mesh orders them"
_ANNOTATED = re.compile(r'custom_call_target="(?:Sharding|SPMD\w+|xla\.sdy\.\w+)"|\bxla\.sdy\.(?:meshes|sharding)\b')


def partitioned_text(data: Given, file: str) -> str | None:
    """Return the text of HLO that is already partitioned; None for any other program.

    That is HLO with a schedule, which XLA makes last, or whose entry XLA's partitioner made, or with collectives and
    without annotations. Raises ShardpassError (SP127) for a proto that XLA does not read.
    """
    if isinstance(data, LargeFile):
        return None
    raw = data.encode("utf-8", "replace") if isinstance(data, str) else data
    if format_of(raw) not in (Format.HLO_TEXT, Format.HLO_PROTO):
        return None
    text = hlo_text_of(raw, file)
    header = _HEADER.search(text)
    if (header is not None and _SCHEDULED.search(header[0])) or _PARTITIONED.search(text):
        return text
    return text if _COLLECTIVE.search(text) and not _ANNOTATED.search(text) else None


def is_compiled(given: Any) -> bool:
    """Return whether ``given`` is a ``jax.stages.Compiled``."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(given, jax.stages.Compiled)


def explain_compiled(
    compiled: Any, mesh: Mesh | None, machine: Machine | str | None, partitioner: str = "xla"
) -> Explanation:
    """Explain a ``jax.stages.Compiled`` over ``mesh``; by default, the mesh of its arguments and results."""
    text = compiled.as_text()
    if not text:
        raise NOT_A_PROGRAM.error(given="a compiled program of which the backend gives no HLO")
    stats = compiled.memory_analysis()
    memory = None
    if stats is not None and hasattr(stats, "argument_size_in_bytes"):
        memory = MemoryFacts(
            stats.argument_size_in_bytes,
            stats.output_size_in_bytes,
            stats.temp_size_in_bytes,
            donated=stats.alias_size_in_bytes,
        )
    over = _mesh_of_compiled(compiled) if mesh is None else mesh
    return explain_hlo(text, UNNAMED, partitioner=partitioner, mesh=over, machine=machine, memory=memory)


def _mesh_of_compiled(compiled: Any) -> Mesh | None:
    import jax

    for sharding in jax.tree.leaves((compiled.input_shardings, compiled.output_shardings)):
        if isinstance(sharding, jax.sharding.NamedSharding):
            return Mesh([(str(name), int(size)) for name, size in dict(sharding.mesh.shape).items()])
    return None


def explain_partitioned_by(
    partitioner: str,
    module: Any,
    file: str,
    mesh: Mesh | None,
    machine: Machine | str | None,
    folders: Sequence[Path] | None,
    target: Target | None = None,
    *,
    named: bool = False,
) -> Explanation:
    """Explain the program that ``partitioner`` makes of ``module``. The module is annotated, or partitioned by
    shardpass.
    """
    with module.context:
        meshes = [one for one in meshes_of(module).values() if isinstance(one, Mesh)]
        mesh = mesh or mesh_of(module) or max(meshes, key=lambda one: one.size, default=None)
        devices = num_devices(module)
        if devices is None:
            devices = 1 if mesh is None else mesh.size
            set_num_devices(module, devices)
    asked = named and isinstance(machine, str) and target is None and partitioner != SHARDY
    meant = target_on(str(machine), devices) if asked else None
    stand_in = (
        "" if meant is None else f"XLA:CPU in place of {meant.compiler}: pip install 'shardpass[{extra_of(meant)}]'"
    )
    if meant is not None and is_installed(meant):
        try:
            return explain_partitioned_by(partitioner, module, file, mesh, machine, folders, meant)
        except ShardpassError as error:
            if error.code != TARGET_FAILED.id:
                raise
            stand_in = f"XLA:CPU, as {error.diagnostics[0].message}"
    target = cpu(devices) if target is None else target
    if target.devices != devices:
        where = NOWHERE if file == UNNAMED else Place(file)
        raise TARGET_SIZE.error(where, count=devices, target=str(target), size=target.devices)
    if partitioner == SHARDY and target.platform != CPU:
        raise TARGET_PARTITIONER.error(target=str(target), partitioner=partitioner)
    given = bytecode(module)
    program = shared(target).compile(given, way=partitioner)
    compiler = "" if target.platform == CPU else f"{target.compiler} for {target} ({program.version}){_ORDER}"
    report = explain_built(program, called(module, file), partitioner, mesh, machine, folders, compiler, lists=True)
    return replace(report, given=given, built=program, stand_in=stand_in)


def explain_built(
    program: Compiled,
    file: str,
    partitioner: str,
    mesh: Mesh | None,
    machine: Machine | str | None,
    folders: Sequence[Path] | None,
    compiler: str = "",
    *,
    lists: bool = False,
) -> Explanation:
    """Explain a program compiled by ``partitioner``, with the compiler's memory statistics. ``lists``: as in
    ``explain_hlo``.
    """
    return explain_hlo(
        program.hlo,
        file,
        partitioner=partitioner,
        mesh=mesh,
        machine=machine,
        memory=MemoryFacts(program.arguments, program.results, program.temporaries, donated=program.donated),
        folders=folders,
        compiler=compiler,
        lists=lists,
    )
