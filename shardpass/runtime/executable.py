"""Run a compiled per-device program on whole arrays.

State: the signature, XLA's executable, its devices in order (device id d of the program is ``devices[d]``), and
for each boundary the JAX sharding that says the same.

Invariants: on CPU no call returns before its results are there. Several executions with collectives in flight
would starve XLA's threads on a small machine until it aborts the process.

Where the devices belong to several processes, all of them make the same calls. Arrays are global: a process gives, and
gets, the tiles of its own devices.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from shardpass.diagnostics import table_runtime
from shardpass.ir import jax_private
from shardpass.runtime.partitioned_signature import Boundary, Signature
from shardpass.runtime.processes import everywhere, whole_value
from shardpass.runtime.tiles import check_arguments, join, pad, typed

_in_flight = threading.Lock()
# Gloo's words, and those of XLA's coordination service
_LOST = re.compile(r"[Cc]onnection (closed|reset) by peer|tasks are unhealthy|Socket closed|Broken pipe")


class Executable:
    """Call a compiled program with whole arrays, or use ``place`` once and ``run`` many times.

    ``machine``: the machine for which the program was decided, according to its module.
    """

    machine: str | None = None

    def __init__(self, signature: Signature, loaded: Any, devices: Sequence[Any]) -> None:
        self.signature = signature
        self.devices = tuple(devices)
        self._loaded = loaded
        self._arguments = [_Placement(b, self.devices) for b in signature.arguments]
        self._results = [_Placement(b, self.devices) for b in signature.results]

    def __call__(self, *arrays: Any) -> list[Any]:
        """Place whole arrays on the devices and run the program: ``run(*place(*arrays))``."""
        return self.run(*self.place(*arrays))

    def place(self, *arrays: Any, padding: Any = 0) -> list[Any]:
        """Convert whole arrays (NumPy or jax.Array) to sharded jax.Arrays, one for each argument of main.

        If the tiles do not divide an argument evenly, it is padded at the end, and the returned array has the padded
        shape. ``padding``: the padding value, or a function that returns it for a Boundary. A correct program ignores
        it.

        Raises:
            ShardpassError: SP520 or SP521 if the arrays do not fit the program.
        """
        check_arguments(self.signature, arrays)
        return [p.place(a, padding) for p, a in zip(self._arguments, arrays, strict=True)]

    def run(self, *placed: Any) -> list[Any]:
        """Run the program on results of ``place``, or on results of runs with the same sharding.

        Returns whole jax.Arrays with the shardings of the program. JAX has no sharding for an array that its tiles do
        not divide evenly: such a result is returned on the first device, or in a job of several processes as a copy on
        each device.

        Raises:
            ShardpassError: SP520 or SP522 for unsuitable arguments, SP512 if XLA stopped, SP562 if another process has
                ended.
        """
        if len(placed) != len(self._arguments):
            raise table_runtime.WRONG_ARGUMENT_COUNT.error(expected=len(self._arguments), given=len(placed))
        arguments = [p.operand(i, a) for i, (p, a) in enumerate(zip(self._arguments, placed, strict=True))]
        results = self._execute(arguments)
        return [p.whole(tiles) for p, tiles in zip(self._results, results, strict=True)]

    def run_tiles(self, *placed: Any) -> list[list[Any]]:
        """Run the program and return the tile of each device, with padding, as ``[result][device]``.

        Tiles on devices of other processes are None.
        """
        return self._execute([p.operand(i, a) for i, (p, a) in enumerate(zip(self._arguments, placed, strict=True))])

    def _execute(self, arguments: list[Any]) -> list[list[Any]]:
        try:
            if self.devices[0].platform != "cpu":
                return self._by_device(jax_private.execute(self._loaded, arguments))
            with _in_flight:
                results = jax_private.execute(self._loaded, arguments)
                jax.block_until_ready(results)
                return self._by_device(results)
        except RuntimeError as error:
            reason = first_line(error)
            code = table_runtime.PROCESS_LOST if _LOST.search(reason) else table_runtime.RUN_FAILED
            raise code.error(reason=reason) from None

    def _by_device(self, results: list[list[Any]]) -> list[list[Any]]:
        """Return the results by device number, with None for devices of other processes."""
        here = [device.process_index == jax.process_index() for device in self.devices]
        if all(here):
            return results
        rows = [iter(tiles) for tiles in results]
        return [[next(tiles) if mine else None for mine in here] for tiles in rows]

    def hlo_text(self) -> str:
        """Return the optimised HLO that runs on each device."""
        return str(self._loaded.hlo_modules()[0].to_string())

    def memory_stats(self) -> Any:
        """Return XLA's CompiledMemoryStats of one device: bytes of arguments, outputs and temporaries."""
        return self._loaded.get_compiled_memory_stats()

    def cost_analysis(self) -> dict[str, float]:
        """Return XLA's estimate of the work of one device: "flops", "bytes accessed", and more. XLA counts the body of
        a loop once.
        """
        return dict(self._loaded.cost_analysis())


def first_line(error: BaseException) -> str:
    return str(error).strip().split("\n", 1)[0]


class _Placement:
    """The layout of an argument or result of main on given devices.

    ``sharding`` is the boundary's as JAX says it: a mesh with an axis a dimension, and one for copies, so that it
    can also say device orders that no axis of the user's mesh has.
    """

    def __init__(self, boundary: Boundary, devices: tuple[Any, ...]) -> None:
        self.boundary = boundary
        self.devices = devices
        self.here = all(device.process_index == jax.process_index() for device in devices)
        self.holders = boundary.holders(len(devices))
        axes = tuple(f"dim{k}" for k in range(len(boundary.shape)))
        grid = np.array(devices, dtype=object)[self.holders]
        self.sharding = NamedSharding(Mesh(grid, (*axes, "copy")), PartitionSpec(*axes))
        self.order = self.holders.ravel()  # program's device id at each place of the JAX mesh
        self.in_order = bool((self.order == np.arange(len(devices))).all())
        self.per_device = NamedSharding(Mesh(np.array(devices, dtype=object), ("device",)), PartitionSpec())

    def place(self, array: Any, padding: Any) -> Any:
        with jax.enable_x64(True):  # an f64 program keeps its f64
            if not self.boundary.even:
                array = pad(whole_value(array), self.boundary, padding)
            if self.here or (isinstance(array, jax.Array) and not array.is_fully_addressable):
                return jax.device_put(array, self.sharding)
            host = np.asarray(array)  # by every process: device_put would compare the copies of all
            return jax.make_array_from_callback(host.shape, self.sharding, lambda index: host[index])

    def operand(self, index: int, array: Any) -> Any:
        """Return the device buffers of argument ``index``, in the order of the program's devices."""
        boundary = self.boundary
        if not (
            isinstance(array, jax.Array)
            and array.shape == boundary.padded
            and array.dtype == boundary.dtype
            and array.sharding.is_equivalent_to(self.sharding, array.ndim)
        ):
            raise table_runtime.NOT_PLACED.error(
                index=index,
                given=_told(array),
                expected=f"{typed(boundary.dtype, boundary.padded)} sharded {boundary.sharding}",
            )
        if self.in_order and array.sharding == self.sharding:
            return array
        shards = {shard.device: shard.data for shard in array.addressable_shards}
        # each device's buffer as if it were one of many copies: no shape to fit together, rank 0 included
        buffers = [shards[device] for device in self.devices if device in shards]
        return jax.make_array_from_single_device_arrays(boundary.tile, self.per_device, buffers)

    def whole(self, tiles: list[Any]) -> Any:
        boundary = self.boundary
        if boundary.sharding.is_maximal:
            return tiles[self.order[0]] if self.here else self._from_one(tiles)
        if boundary.even or not self.here:
            local = [tiles[device] for device in self.order if tiles[device] is not None]
            padded = jax.make_array_from_single_device_arrays(boundary.padded, self.sharding, local)
            kept = tuple(slice(size) for size in boundary.shape)
            return padded if boundary.even else everywhere(padded, lambda array: array[kept])
        with jax.enable_x64(True):
            return jax.device_put(join([np.asarray(tile) for tile in tiles], boundary), self.devices[0])

    def _from_one(self, tiles: list[Any]) -> Any:
        """Copy the array of one device to all devices, including the devices of other processes."""
        with jax.enable_x64(True):
            rows = [tile[None] for tile in tiles if tile is not None]
            by_device = NamedSharding(self.per_device.mesh, PartitionSpec("device"))
            shape = (len(self.devices), *self.boundary.tile)
            stacked = jax.make_array_from_single_device_arrays(shape, by_device, rows)
        source = int(self.order[0])
        return everywhere(stacked, lambda array: array[source])


def _told(array: Any) -> str:
    if isinstance(array, jax.Array):
        return f"{typed(array.dtype, array.shape)} on {array.sharding}"
    return f"a {type(array).__name__}"
