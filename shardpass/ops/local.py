"""What a local rewrite works with: the op, its split, and a place to build what it needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from shardpass.ir.offsets import device_value
from shardpass.ops.model import explain
from shardpass.ops.splits.factors import Axes, DimAxes, Rule
from shardpass.ops.splits.prime_mesh import PrimeMesh


@dataclass(frozen=True, slots=True)
class Local:
    """The op (its operands are tiles already, its results have whole types still) and its chosen split.

    ``factors`` holds the sub-axes of each split factor of ``rule``. Shapes are those of the whole arrays.
    """

    op: Any
    mesh: PrimeMesh
    rule: Rule
    factors: dict[int, Axes]
    operand_dims: tuple[DimAxes, ...]
    result_dims: tuple[DimAxes, ...]
    operand_shapes: tuple[tuple[int, ...], ...]
    result_shapes: tuple[tuple[int, ...], ...]
    next: Any  # the op that follows in the block
    channels: Iterator[int]

    def tile(self, index: int) -> tuple[int, ...]:
        """Shape of result ``index`` on one device."""
        return self.mesh.tile(self.result_shapes[index], self.result_dims[index])

    def operand_tile(self, index: int) -> tuple[int, ...]:
        """Shape of operand ``index`` on one device."""
        return self.mesh.tile(self.operand_shapes[index], self.operand_dims[index])

    @contextmanager
    def before(self) -> Iterator[None]:
        """Builds before the op, at its location."""
        with ir.InsertionPoint(self.op), self.op.location:
            yield

    @contextmanager
    def after(self) -> Iterator[None]:
        """Builds after the op, at its location."""
        with ir.InsertionPoint(self.next), self.op.location:
            yield

    def start(self, axes: Axes, tile: int) -> Any:
        """``tensor<i32>``: where this device's tile starts along a dimension that ``axes`` split into ``tile``s."""
        return device_value(self.mesh.index(axes) * np.int64(tile))

    def explain(self, collective: Any, axes: Axes, cause: str) -> None:
        """Says on ``collective`` over which axes it runs, and why."""
        explain(collective, self.mesh, axes, cause)
