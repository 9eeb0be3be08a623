"""Determine the number of devices, and the mesh whose axes express all shardings of a program.

Example: ``{devices=[4,2]<=[8] last_tile_dim_replicate}`` and ``{devices=[2,4]<=[8] last_tile_dim_replicate}`` of
vectors need three axes of 2: the mesh is ``['axis_0'=2,'axis_1'=2,'axis_2'=2]``, unless the module names one that
fits. A device order that fits none of the more frequent shardings gets no axes, and a remark (SP217).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from shardpass.diagnostics import report
from shardpass.diagnostics.table_passes import NO_DEVICE_COUNT, OWN_ORDER
from shardpass.importing.read_annotations import Annotation
from shardpass.ir.annotations import num_devices
from shardpass.ir.locations import place_of
from shardpass.sharding import Mesh, Sharding, common_mesh


def device_count(module: Any, annotations: list[Annotation], sdy_mesh: Mesh | None) -> int:
    declared = num_devices(module)
    if declared is not None:
        return declared
    if sdy_mesh is not None:
        return sdy_mesh.size
    for annotation in annotations:
        for sharding in annotation.shardings:
            if sharding.num_devices:
                return int(sharding.num_devices)
    report(NO_DEVICE_COUNT.at(place_of(module.operation.location)))
    return 1


def find_mesh(annotations: list[Annotation], replicated_along: list[Sharding], count: int, prefer: Mesh | None) -> Mesh:
    """Find the coarsest mesh. Device orders that conflict with more frequent shardings are omitted, with a remark."""
    if prefer is not None and prefer.size != count:
        prefer = None
    uses: Counter[Sharding] = Counter()
    first: dict[Sharding, Annotation] = {}
    for annotation in annotations:
        for sharding in annotation.shardings:
            if sharding.is_tiled:
                uses[sharding] += 1
                first.setdefault(sharding, annotation)
    # the manual axes of a region must be axes of the mesh; any other value may keep an order of its own
    chosen = sorted((s for s, _ in uses.most_common()), key=lambda sharding: not sharding.manual)
    chosen += [s for s in dict.fromkeys(replicated_along) if s not in uses]
    mesh = common_mesh(chosen, prefer=prefer)
    if mesh is None:
        fitting: list[Sharding] = []
        alien: list[Sharding] = []
        for sharding in chosen:
            fits = common_mesh([*fitting, sharding], prefer=prefer) is not None
            (fitting if fits else alien).append(sharding)
        mesh = common_mesh(fitting, prefer=prefer)
        for sharding in filter(first.__contains__, alien):
            report(OWN_ORDER.at(first[sharding].place, text=str(sharding), mesh=str(mesh)))
    if mesh is None or mesh.size != count:
        mesh = prefer or Mesh((("axis_0", count),))
    return mesh
