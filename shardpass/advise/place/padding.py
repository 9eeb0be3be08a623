"""Sizes that axes do not divide: arguments padded so that they can be split, and what padding costs.

Problem: JAX refuses an argument whose size an axis does not divide, so a vocabulary of 50257 rows stays whole on every
device. Padded by the user to the next multiple, it can be split. A constraint may split such a size, and then the last
devices compute on padding.

1. A padded argument is verified on a copy of the module: its type has the padded size, and the program goes on from
   its slice, in the same sharding; tiles are equal, so the slice moves nothing. A result that updates the argument is
   padded likewise.
2. The padding of ``n`` elements over ``c`` shards is that of tiles of ``ceil(n / c)``: ``c * ceil(n / c) - n``.

Example: 50257 rows over 4 devices: tiles of 12565, 3 rows of padding; padded to 50260 the table can be split.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from shardpass.advise.place.specs import Spec
from shardpass.ir.constraints import Notation
from shardpass.ir.tensors import operation
from shardpass.program.program import Array
from shardpass.sharding import Mesh, Sharding


@dataclass(frozen=True)
class Uneven:
    """A dimension whose size is not divided evenly by its shards."""

    dim: int
    size: int
    axes: tuple[str, ...]
    shards: int

    @property
    def padded(self) -> int:
        """The next greater size that the shards divide."""
        return -(-self.size // self.shards) * self.shards

    def wasted(self, array: Array) -> int:
        """Return the bytes of padding in all tiles of one array."""
        return array.bytes // self.size * (self.padded - self.size)


def uneven(spec: Spec, shape: Sequence[int], axes: Mapping[str, int]) -> tuple[Uneven, ...]:
    """List the dimensions that ``spec`` splits unevenly; ``axes``: the sizes of the mesh's axes."""
    result = []
    for dim, (names, size) in enumerate(zip(spec, shape, strict=True)):
        shards = prod(axes.get(name, 1) for name in names)
        if shards > 1 and size % shards:
            result.append(Uneven(dim, size, names, shards))
    return tuple(result)


def padded_shape(spec: Spec, shape: Sequence[int], axes: Mapping[str, int]) -> tuple[int, ...]:
    """Return ``shape`` with each dimension padded so that ``spec`` divides it."""
    result = list(shape)
    for one in uneven(spec, shape, axes):
        result[one.dim] = one.padded
    return tuple(result)


def pad_argument(main: Any, position: int, shape: Sequence[int], spec: Spec, notation: Notation, mesh: Mesh) -> None:
    """Change an argument of ``main`` to ``shape``, split as ``spec``; the body continues with a slice of the
    old shape.
    """
    block = main.regions[0].blocks[0]
    argument = block.arguments[position]
    old = ir.RankedTensorType(argument.type)
    sizes = list(old.shape)
    argument.set_type(ir.RankedTensorType.get(list(shape), old.element_type))
    with ir.InsertionPoint.at_block_begin(block):
        part = stablehlo.slice(argument, [0] * len(sizes), sizes, [1] * len(sizes))
        kept = notation.constraint(part, Sharding.tiled(mesh, spec))
    argument.replace_all_uses_except(kept.results[0], operation(part.owner))
    _retype(main)


def pad_result(main: Any, position: int, shape: Sequence[int], spec: Spec, notation: Notation, mesh: Mesh) -> None:
    """Pad a result of ``main`` with zeros to ``shape``, split as ``spec``."""
    *_, end = map(operation, main.regions[0].blocks[0].operations)
    value = end.operands[position]
    kind = ir.RankedTensorType(value.type)
    more = [new - old for new, old in zip(shape, kind.shape, strict=True)]
    with ir.InsertionPoint(end):
        zero = stablehlo.constant(_zero(kind.element_type))
        kept = notation.constraint(value, Sharding.tiled(mesh, spec))
        none = np.zeros(len(more), np.int64)
        end.operands[position] = stablehlo.pad(kept.results[0], zero, none, np.array(more, np.int64), none)
    _retype(main)


def _zero(element: Any) -> Any:
    value = "0.0" if isinstance(element, ir.FloatType) else "false" if str(element) == "i1" else "0"
    return ir.Attribute.parse(f"dense<{value}> : tensor<{element}>")


def _retype(main: Any) -> None:
    block = main.regions[0].blocks[0]
    *_, end = map(operation, block.operations)
    kind = ir.FunctionType.get([one.type for one in block.arguments], [one.type for one in end.operands])
    main.attributes["function_type"] = ir.TypeAttr.get(kind)
