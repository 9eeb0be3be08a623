"""A complete set of shardings, as another partitioner compiles it: for programs that XLA partitions.

Problem: XLA may decide the shardings between annotations otherwise than shardpass's passes. So every argument and
result is annotated, and the program is compiled with these annotations, in a process of its own, for as many virtual
devices as the mesh has (``runtime.peers``). Nothing runs. Memory is as XLA counts it, and the program's collectives are
priced by the same machine as those of plans.

The module is annotated as JAX does: in Shardy's notation, unless the module itself uses GSPMD's.

Example on d=8: ``x`` in rows and ``w`` whole become ``sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>`` and
``[{}, {}]``, which hold for XLA, as all dimensions are closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from jaxlib.mlir import ir

from shardpass.ir.annotations import SHARDING, Signature, main_of, num_devices, set_num_devices
from shardpass.ir.context import parse_module
from shardpass.ir.doors import Given
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.places.write import Signed, Writer
from shardpass.report.explanation import Explanation
from shardpass.report.hlo.programs import explain_partitioned_by
from shardpass.sharding import Sharding
from shardpass.suggesting.apply import annotated
from shardpass.suggesting.places import ARGUMENT
from shardpass.suggesting.specs import names_of
from shardpass.suggesting.trials import Annotation
from shardpass.targets.target import Target


def compiled(
    partitioner: str,
    data: Given,
    file: str,
    imported: Any,
    annotations: Iterable[Annotation],
    places: dict[int, int],
    mesh: PrimeMesh,
    machine: str,
    target: Target | None = None,
) -> Explanation:
    """Compiles a program with ``annotations`` of arguments and results by ``partitioner`` and reports the result.

    ``imported``: the module, in which values are numbered. ``places``: of each argument. ``target``: the devices for
    which the program is compiled. Raises ShardpassError (SP553, SP911) where there is no program.
    """
    module = parse_module(data, file)
    with module.context, ir.Location.unknown():
        alike = len(Signature(main_of(module)).arguments) == len(places) and SHARDING not in str(module.operation)
        if alike:
            Writer(module, mesh.mesh, shardy=True).sign(_signed(annotations, places, mesh))
            if num_devices(module) in (None, 1):
                set_num_devices(module, mesh.num_devices)
    if not alike:
        module = annotated(imported, annotations)
    return explain_partitioned_by(partitioner, module, file, mesh.mesh, machine, (), target)


def total(built: Explanation) -> int:
    """Returns the bytes of memory that a device needs for a program that ``compiled`` reported."""
    assert built.memory is not None
    return built.memory.total


def _signed(annotations: Iterable[Annotation], places: dict[int, int], mesh: PrimeMesh) -> Iterator[Signed]:
    for one in annotations:
        sharding = Sharding.tiled(mesh.mesh, names_of(one.dims, mesh))
        for value in one.group.values:
            yield one.group.kind, places[value] if one.group.kind == ARGUMENT else value, sharding
