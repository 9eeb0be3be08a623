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

from collections.abc import Sequence

from jaxlib.mlir import ir

from shardpass.advise.place.sites import Reading
from shardpass.advise.place.write import Change, Writer, on_values, signed
from shardpass.ir.annotations import SHARDING, Signature, main_of, num_devices, set_num_devices
from shardpass.ir.context import parse_module
from shardpass.ir.doors import Given
from shardpass.report.explanation import Explanation
from shardpass.report.hlo.programs import explain_partitioned_by
from shardpass.targets.target import Target


def compiled(
    partitioner: str,
    data: Given,
    file: str,
    reading: Reading,
    annotations: Sequence[Change],
    machine: str,
    target: Target | None = None,
) -> Explanation:
    """Compile a program with ``annotations`` of arguments and results by ``partitioner`` and report the result.

    ``reading``: the program, imported. ``target``: the devices for which the program is compiled. Raises ShardpassError
    (SP553, SP911) where there is no program.
    """
    module, mesh = parse_module(data, file), reading.program.mesh.mesh
    with module.context, ir.Location.unknown():
        count = len(reading.program.body.arguments)
        alike = len(Signature(main_of(module)).arguments) == count and SHARDING not in str(module.operation)
        if alike:
            Writer(module, mesh, shardy=True).sign(signed(annotations, mesh))
            if num_devices(module) in (None, 1):
                set_num_devices(module, mesh.size)
    if not alike:
        module = on_values(reading.module, annotations)
    return explain_partitioned_by(partitioner, module, file, mesh, machine, (), target)
