"""The arguments and results of main in both programs, and the tile of each on every device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from shardpass.diagnostics.table_proving import OTHER_SIGNATURE
from shardpass.ir.annotations import Signature, main_of
from shardpass.ir.locations import place_of
from shardpass.proving.relations.evaluate import is_token
from shardpass.proving.relations.sides import Side
from shardpass.runtime.partitioned_signature import Boundary, read_signature

UNNAMED = "shardpass.unnamed"  # on a result of XLA's program whose sharding no text names


def sides(whole: Any, local: Any) -> tuple[list[Side], list[Side], int]:
    """Return arguments, results and the number of devices. Raises ShardpassError SP951 where the mains do not match."""
    signature = read_signature(local)
    kinds = main_of(whole).attributes["function_type"].value
    inputs, outputs = (
        [kind for kind in side if not is_token(kind)] for side in (kinds.inputs, kinds.results)
    )  # shardpass's programs have numbers in the place of tokens
    Signature(main_of(whole))
    place = place_of(main_of(local).location)
    for what, types, boundaries in (
        ("arguments", inputs, signature.arguments),
        ("results", outputs, signature.results),
    ):
        if len(types) != len(boundaries):
            raise OTHER_SIGNATURE.error(
                place, what=f"it has {len(boundaries)} {what}", other=f"the whole program has {len(types)}"
            )
        for kind, boundary in zip(types, boundaries, strict=True):
            if str(kind) != boundary.type:
                raise OTHER_SIGNATURE.error(
                    place, what=f"{boundary.where} is a tile of {boundary.type}", other=f"the whole program has {kind}"
                )
    devices = signature.num_devices
    rows = Signature(main_of(local)).results
    return (
        [_side(b, devices) for b in signature.arguments],
        [replace(_side(b, devices), named=UNNAMED not in row) for b, row in zip(signature.results, rows, strict=True)],
        devices,
    )


def _side(boundary: Boundary, devices: int) -> Side:
    sharding, shape = boundary.sharding, boundary.shape
    counts = np.ones(devices, bool)
    if sharding.is_maximal:
        counts = np.arange(devices) == sharding.device
        offsets = np.zeros((devices, len(shape)), np.int64)
    else:
        offsets = np.asarray(sharding.tile_offsets(shape, devices), np.int64).reshape(devices, len(shape))
    return Side(shape, boundary.element.mlir, boundary.tile, offsets, counts)
