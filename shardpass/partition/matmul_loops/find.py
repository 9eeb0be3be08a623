"""Find products next to a collective, which a loop can overlap with the collective.

1. An all_gather whose every use is an operand of a product: each product takes the tiles as they come.
2. A product whose one use is a reduce_scatter of sums: each block is summed while it moves to the device that keeps it.

A product is in one loop. Of several candidates, that with the larger array wins, since the array is not built. An
all_gather with a use that is no product stays, since its result exists anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from shardpass.ir.order import bytes_of
from shardpass.ir.tensors import operation, shape_of
from shardpass.ir.walk import OpList, named
from shardpass.ops.reducers import combiner_of
from shardpass.partition.matmul_loops.gathered import ALL_GATHER, BETWEEN, Gathered, gathered
from shardpass.partition.matmul_loops.product import product_of
from shardpass.planning.price import loops
from shardpass.planning.price.loops import Blocks, Product

DOT, REDUCE_SCATTER = "stablehlo.dot_general", "stablehlo.reduce_scatter"
Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class LoopProduct:
    """A product in a loop: its op, the blocks it multiplies, and, for an all_gather, the gathered tiles."""

    op: Any
    product: Product
    blocks: Blocks
    tiles: Gathered | None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A collective and the products that could be overlapped with it."""

    collective: Any
    groups: Ints
    parts: tuple[LoopProduct, ...]

    @property
    def is_gather(self) -> bool:
        return bool(self.collective.name == ALL_GATHER)

    @property
    def count(self) -> int:
        """Count the devices of a group, which is the number of tiles or blocks."""
        return int(self.groups.shape[1])

    @property
    def whole(self) -> Any:
        """Return the array that the loop avoids: the gathered array, or the product before the reduce_scatter."""
        return self.collective.results[0] if self.is_gather else self.collective.operands[0]

    @property
    def bytes(self) -> int:
        return bytes_of(self.whole.type)

    @property
    def pair(self) -> loops.Pair:
        """Return the same facts without MLIR objects, for the cost model."""
        parts = [
            loops.Part(part.product, part.blocks, (left, right, result), str(part.op.operands[0].type.element_type))
            for part in self.parts
            for left, right, result in [[bytes_of(v.type) for v in (*part.op.operands, part.op.results[0])]]
        ]
        return loops.Pair(self.is_gather, self.groups, self.bytes, tuple(parts))


def candidates(inside: OpList, devices: int) -> list[Candidate]:
    """List the candidates of a block, the largest array first; a product may be in several candidates."""
    possible = [_gather(op, devices) for op in named([inside], (ALL_GATHER,))]
    possible += [_scatter(op, devices) for op in named([inside], (REDUCE_SCATTER,))]
    return sorted(filter(None, possible), key=lambda candidate: -candidate.bytes)


def _groups(op: Any, devices: int) -> Ints | None:
    """Return groups of at least two devices that cover every device."""
    groups: Ints = np.array(op.attributes["replica_groups"], dtype=np.int64)
    whole = groups.ndim == 2 and sorted(groups.ravel().tolist()) == list(range(devices))
    return groups if whole and groups.shape[1] > 1 else None


def _gather(op: Any, devices: int) -> Candidate | None:
    groups = _groups(op, devices)
    if groups is None or len(op.operands) != 1:
        return None
    parts: list[LoopProduct] = []
    for user, index in _products(op.results[0]):
        if user is None or any(part.op == user for part in parts) or user.block != op.block:
            return None
        tiles = gathered(user.operands[index])
        if tiles is None:
            return None
        product = product_of(user)
        parts.append(LoopProduct(user, product, product.along(index, tiles.dim), tiles))
    return Candidate(op, groups, tuple(parts)) if parts else None


def _products(value: Any) -> Iterator[tuple[Any, int]]:
    """Find the products that use ``value``, possibly reshaped, with the operand's side; None for other uses."""
    for use in value.uses:
        user = operation(use.owner)
        if user.name in BETWEEN:
            yield from _products(user.results[0])
        else:
            yield (user, use.operand_number) if user.name == DOT else (None, 0)


def _scatter(op: Any, devices: int) -> Candidate | None:
    groups = _groups(op, devices)
    if groups is None or len(op.operands) != 1 or combiner_of(op) != "add":
        return None
    value = op.operands[0]
    if isinstance(value.owner, ir.Block) or len(list(value.uses)) != 1:
        return None
    made = operation(value.owner)
    if made.name != DOT or made.block != op.block:
        return None
    product = product_of(made)
    dim = op.attributes["scatter_dimension"].value
    if shape_of(value)[dim] % groups.shape[1]:
        return None
    return Candidate(op, groups, (LoopProduct(made, product, product.along_result(dim), None),))
