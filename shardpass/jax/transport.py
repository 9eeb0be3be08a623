"""Send the messages of a round between devices: by copies within a process, by permutes between processes of a job.

A piece is an array on one device. ``Copies`` passes pieces to ``jax.device_put``. ``Permutes`` is for jobs of
several processes: every process calls the same programs over all devices of the plan, in which ``jax.lax.ppermute``
moves a vector from each sender to its receiver. Pieces of one element type are concatenated in that vector, which is
as long as the longest message of the round; a device that sends twice in a round does so in two programs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from shardpass.jax import offsets


@dataclass(frozen=True, slots=True)
class Piece:
    """A box of array ``array`` that goes from ``sender`` to ``receiver``, both ids of devices."""

    sender: int
    receiver: int
    array: int
    start: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: Any


class Transport(Protocol):
    """Carries pieces of arrays from device to device."""

    def exchange(self, pieces: Sequence[Piece], values: Mapping[int, Any]) -> Iterable[tuple[Piece, Any]]:
        """Exchange pieces; return those received. ``values``: the pieces sent by this process's devices, by number."""
        ...

    def agree(self) -> None:
        """Return once every process of the transport has called this."""
        ...


@dataclass(frozen=True)
class Copies:
    """A transport for devices that all belong to this process: pieces are copied with ``jax.device_put``."""

    devices: Mapping[int, Any]

    def exchange(self, pieces: Sequence[Piece], values: Mapping[int, Any]) -> Iterable[tuple[Piece, Any]]:
        receivers = [self.devices[piece.receiver] for piece in pieces]
        return zip(pieces, jax.device_put([values[k] for k in range(len(pieces))], receivers), strict=True)

    def agree(self) -> None:
        """Return immediately, as there is only one process."""


@dataclass(frozen=True)
class Permutes:
    """A transport for devices of several processes of one job. ``mesh``: all of these devices, in one row."""

    mesh: Mesh

    def exchange(self, pieces: Sequence[Piece], values: Mapping[int, Any]) -> Iterable[tuple[Piece, Any]]:
        for dtype in dict.fromkeys(piece.dtype for piece in pieces):
            same = [k for k, piece in enumerate(pieces) if piece.dtype == dtype]
            messages: dict[tuple[int, int], list[int]] = {}
            for k in same:
                messages.setdefault((pieces[k].sender, pieces[k].receiver), []).append(k)
            for pairs in one_each(messages):
                yield from self._permuted([messages[pair] for pair in pairs], pieces, values, dtype)

    def _permuted(
        self, messages: Sequence[Sequence[int]], pieces: Sequence[Piece], values: Mapping[int, Any], dtype: Any
    ) -> Iterator[tuple[Piece, Any]]:
        devices = list(self.mesh.devices.flat)
        place = {device.id: k for k, device in enumerate(devices)}
        size = max(sum(math.prod(pieces[k].shape) for k in message) for message in messages)
        vectors = {pieces[m[0]].sender: [values[k] for k in m] for m in messages if m[0] in values}
        sharding = NamedSharding(self.mesh, PartitionSpec("device"))
        rows = [
            _joined(vectors[device.id], size) if device.id in vectors else jax.numpy.zeros(size, dtype, device=device)
            for device in devices
            if device.process_index == jax.process_index()
        ]
        whole = jax.make_array_from_single_device_arrays((size * len(devices),), sharding, rows, dtype=dtype)
        pairs = tuple((place[pieces[m[0]].sender], place[pieces[m[0]].receiver]) for m in messages)
        arrived = _permute(self.mesh, pairs)(whole)
        here = {shard.device.id: shard.data for shard in arrived.addressable_shards}
        for message in messages:
            at = 0
            for k in message:
                piece = pieces[k]
                count = math.prod(piece.shape)
                if piece.receiver in here:
                    yield piece, offsets.cut_flat(here[piece.receiver], at, piece.shape)
                at += count

    def agree(self) -> None:
        """Sum a number of each device: no process gets the sum before every process has called this."""
        sharding = NamedSharding(self.mesh, PartitionSpec("device"))
        here = [device for device in self.mesh.devices.flat if device.process_index == jax.process_index()]
        ones = [jax.numpy.ones(1, "int32", device=device) for device in here]
        whole = jax.make_array_from_single_device_arrays((self.mesh.size,), sharding, ones, dtype="int32")
        jax.block_until_ready(_sum(self.mesh)(whole))


def one_each(pairs: Iterable[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Split ``pairs`` into groups in which no device sends twice or receives twice."""
    groups: list[list[tuple[int, int]]] = []
    for sender, receiver in pairs:
        for group in groups:
            if all(sender != s and receiver != r for s, r in group):
                group.append((sender, receiver))
                break
        else:
            groups.append([(sender, receiver)])
    return groups


@lru_cache(maxsize=1024)
def _permute(mesh: Mesh, pairs: tuple[tuple[int, int], ...]) -> Any:
    spec = PartitionSpec("device")
    return jax.jit(
        jax.shard_map(
            lambda vector: jax.lax.ppermute(vector, "device", pairs),
            mesh=mesh,
            in_specs=spec,
            out_specs=spec,
            check_vma=False,
        )
    )


@lru_cache(maxsize=64)
def _sum(mesh: Mesh) -> Any:
    spec = PartitionSpec("device")
    return jax.jit(
        jax.shard_map(lambda one: jax.lax.psum(one, "device"), mesh=mesh, in_specs=spec, out_specs=PartitionSpec())
    )


@lru_cache(maxsize=4096)
def _joiner(size: int) -> Any:
    def joined(*pieces: Any) -> Any:
        flat = jax.numpy.concatenate([piece.reshape(-1) for piece in pieces])
        return jax.numpy.pad(flat, (0, size - flat.size))

    return jax.jit(joined)


def _joined(pieces: Sequence[Any], size: int) -> Any:
    return _joiner(size)(*pieces)
