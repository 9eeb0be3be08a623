"""Read and check the arguments and results of a partitioned module before XLA sees it.

The contract is docs/architecture.md's "partitioned module". XLA takes whatever it is given: a wrong tile or a
missing annotation would end in a wrong result or an aborted process, so everything is compared here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from shardpass.diagnostics import Place, table_runtime
from shardpass.element_types import ElementType, element_type
from shardpass.ir import annotations as names
from shardpass.ir.collectives import OPS
from shardpass.ir.locations import place_of
from shardpass.ir.tensors import every_op, operation
from shardpass.sharding import Sharding, parse_sharding
from shardpass.sharding.common import unreduced_over_all


@dataclass(frozen=True, slots=True)
class Boundary:
    """An argument or result of main: the global array and its sharding.

    ``partial``: the array holds the summands of a value along dimension 0; the sharding of the value.
    """

    where: str  # "argument 3"
    element: ElementType
    shape: tuple[int, ...]  # of the whole array
    sharding: Sharding
    partial: Sharding | None = None

    @property
    def counts(self) -> tuple[int, ...]:
        """Return the number of tiles along each dimension."""
        return (1,) * len(self.shape) if self.sharding.is_maximal else self.sharding.tile_counts(len(self.shape))

    @property
    def tile(self) -> tuple[int, ...]:
        """Return the shape of a device's tile: ceil(size / count)."""
        return tuple(-(-size // count) for size, count in zip(self.shape, self.counts, strict=True))

    @property
    def padded(self) -> tuple[int, ...]:
        """Return the global shape with padding."""
        return tuple(size * count for size, count in zip(self.tile, self.counts, strict=True))

    @property
    def even(self) -> bool:
        """Whether the tiles have no padding."""
        return self.padded == self.shape

    @property
    def dtype(self) -> np.dtype[np.generic]:
        assert self.element.dtype is not None  # ``read_boundary`` refuses others
        return self.element.dtype

    @property
    def type(self) -> str:
        """Return the global type as MLIR writes it."""
        return tensor_type(self.shape, self.element.mlir)

    def holders(self, devices: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the devices that hold each tile, int64 [*counts, copies]."""
        if self.sharding.is_maximal:
            # the one that counts comes first; the others hold copies of the argument, or anything of a result
            rest = [d for d in range(devices) if d != self.sharding.device]
            order = [self.sharding.device, *rest]
            return np.array(order, dtype=np.int64).reshape(*self.counts, -1)
        if math.prod(self.counts) == 1:
            return np.arange(devices, dtype=np.int64).reshape(*self.counts, -1)
        return self.sharding.tile_devices()


def tensor_type(shape: tuple[int, ...], element: str) -> str:
    return f"tensor<{'x'.join([*map(str, shape), element])}>"


@dataclass(frozen=True, slots=True)
class Signature:
    """The number of devices, the arguments and the results of a partitioned module's main."""

    num_devices: int
    arguments: tuple[Boundary, ...]
    results: tuple[Boundary, ...]


def read_signature(module: Any, *, partial_sums: bool = False) -> Signature:
    """Read and check the global types and shardings of the arguments and results of a partitioned main.

    ``partial_sums``: the caller handles arguments and results that are partial sums, arrays of summands as in
    ``Boundary.partial``; otherwise they have no value outside of the program (SP504).

    Raises:
        ShardpassError: SP501 (an annotation is missing), SP502 (a type is no tile of its whole), SP503 (another
            number of devices), SP504, SP505 (no such array can be made), SP506 (custom calls of earlier passes),
            SP507 (a collective that names no partitions).
    """
    place = place_of(module.operation.location)
    attributes = module.operation.attributes
    if names.NUM_PARTITIONS not in attributes:
        raise table_runtime.NOT_PARTITIONED.error(place, missing=f"it has no `{names.NUM_PARTITIONS}`")
    devices = attributes[names.NUM_PARTITIONS].value
    if names.NUM_REPLICAS in attributes and attributes[names.NUM_REPLICAS].value != 1:
        replicas = attributes[names.NUM_REPLICAS].value
        raise table_runtime.NOT_PARTITIONED.error(place, missing=f"`{names.NUM_REPLICAS}` is {replicas}, not 1")
    main = names.main_of(module)
    annotated = names.Signature(main)
    kind = main.attributes["function_type"].value
    place = place_of(main.location)
    signature = Signature(
        devices,
        tuple(_read_all("argument", kind.inputs, annotated.arguments, devices, place)),
        tuple(_read_all("result", kind.results, annotated.results, devices, place)),
    )
    boundaries = (*signature.arguments, *signature.results)
    summands = None if partial_sums else next((b for b in boundaries if b.partial is not None), None)
    if summands is not None:
        raise table_runtime.NO_GLOBAL_VALUE.error(place, where=summands.where, sharding=summands.partial)
    check_body(module, devices)
    return signature


def whole_signature(module: Any) -> Signature:
    """Return the signature of an unpartitioned module on one device.

    Raises ShardpassError (SP505) where NumPy has no array of some type.
    """
    kind, place = names.main_of(module).attributes["function_type"].value, place_of(module.operation.location)
    arguments, results = (
        tuple(read_boundary(f"{role} {i}", of, Sharding.replicated(), place) for i, of in enumerate(types))
        for role, types in (("argument", kind.inputs), ("result", kind.results))
    )
    return Signature(1, arguments, results)


def _read_all(role: str, types: Any, attributes: Any, devices: int, place: Place) -> Iterator[Boundary]:
    for index, (local, row) in enumerate(zip(types, attributes, strict=True)):
        yield _read(f"{role} {index}", local, row, devices, place)


def _read(where: str, local: Any, row: dict[str, Any], devices: int, place: Place) -> Boundary:
    for name in (names.SHARDING, names.GLOBAL_TYPE, names.TILED_SHARDING):
        if name not in row:
            raise table_runtime.NOT_PARTITIONED.error(place, missing=f"{where} of main has no `{name}`")
    if names.text(row[names.SHARDING]) != names.MANUAL:
        annotation = names.text(row[names.SHARDING])
        missing = f'{where} of main has `{names.SHARDING}` "{annotation}", not "{names.MANUAL}"'
        raise table_runtime.NOT_PARTITIONED.error(place, missing=missing)
    sharding = parse_sharding(names.text(row[names.TILED_SHARDING]))
    if not isinstance(sharding, Sharding) or sharding.is_unknown or sharding.is_manual or sharding.unreduced:
        raise table_runtime.NO_GLOBAL_VALUE.error(place, where=where, sharding=sharding)
    if sharding.num_devices not in (None, devices):
        raise table_runtime.WRONG_DEVICE_COUNT.error(
            place, where=where, sharding=sharding, sharding_devices=sharding.num_devices, devices=devices
        )
    whole = row[names.GLOBAL_TYPE].value
    boundary = read_boundary(where, whole, sharding, place)
    tile = tensor_type(boundary.tile, boundary.element.mlir)
    if str(local) != tile:
        raise table_runtime.BAD_BOUNDARY.error(
            place, where=where, local=local, whole=whole, sharding=sharding, tile=tile
        )
    if names.PARTIAL in row:
        partial = parse_sharding(names.text(row[names.PARTIAL]))
        if isinstance(partial, Sharding):
            return replace(boundary, partial=unreduced_over_all(partial, len(boundary.shape) - 1, devices))
    return boundary


def read_boundary(where: str, whole: Any, sharding: Sharding, place: Place) -> Boundary:
    """Return the boundary of a value of type ``whole``. Raises ShardpassError (SP505) if NumPy has no such type."""

    def refuse(reason: str) -> Exception:
        return table_runtime.UNSUPPORTED_TYPE.error(place, where=where, type=whole, reason=reason)

    if not isinstance(whole, ir.RankedTensorType):
        raise refuse("it is not a ranked tensor")
    if not whole.has_static_shape:
        raise refuse("its shape is dynamic")
    try:
        element = element_type(str(whole.element_type))
    except KeyError:
        raise refuse("its elements are of an unknown type") from None
    if element.dtype is None:
        raise refuse("the installed ml_dtypes has no such element type")
    return Boundary(where, element, tuple(whole.shape), sharding)


def check_body(module: Any, devices: int) -> None:
    """Raise an error for custom calls of unfinished passes (SP506) and collectives over replicas (SP507)."""
    unfinished = {names.CONSTRAINT, names.TO_SHARD, names.TO_FULL}

    def visit(op: Any) -> Any:
        name = op.name
        if name == "stablehlo.custom_call":
            target = names.custom_call_target(op)
            if target in unfinished or target.startswith("shardpass."):
                raise table_runtime.LEFT_OVER.error(place_of(op.location), op=f"custom_call @{target}")
        elif name.startswith("sdy.") and name != "sdy.mesh":
            raise table_runtime.LEFT_OVER.error(place_of(op.location), op=name)
        elif name in OPS and devices > 1:
            _check_channel(op)
        return ir.WalkResult.ADVANCE

    for op in module.body.operations:  # an exception may not cross a walk in C++
        for inner in every_op(operation(op)):
            visit(inner)


def _check_channel(op: Any) -> None:
    handle = str(op.attributes["channel_handle"]) if "channel_handle" in op.attributes else ""
    if "type = 1" not in handle:
        channel = f"the channel handle {handle}" if handle else "no channel handle"
        raise table_runtime.BAD_CHANNEL.error(place_of(op.location), op=op.name, channel=channel)
