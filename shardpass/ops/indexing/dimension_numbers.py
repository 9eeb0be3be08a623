"""The dimension numbers that gather and scatter share (StableHLO specification, gather, scatter).

Both walk *windows* of an operand, at positions given by a tensor of indices, and pair them with an *other* tensor:
the result of a gather, the updates of a scatter. ``NAMES`` has the names of each field in both ops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import ints

NAMES = {  # here: in a gather, in a scatter
    "window": ("offset_dims", "update_window_dims"),
    "dropped": ("collapsed_slice_dims", "inserted_window_dims"),
    "operand_batching": ("operand_batching_dims", "input_batching_dims"),
    "indices_batching": ("start_indices_batching_dims", "scatter_indices_batching_dims"),
    "index_map": ("start_index_map", "scattered_dims_to_operand_dims"),
}


@dataclass(frozen=True, slots=True)
class IndexedDims:
    window: tuple[int, ...]  # dimensions of the other tensor that walk a window
    dropped: tuple[int, ...]  # operand dimensions that no dimension of the other tensor walks
    operand_batching: tuple[int, ...]
    indices_batching: tuple[int, ...]
    index_map: tuple[int, ...]  # component of the index vector -> operand dimension
    vector_dim: int

    @classmethod
    def of_gather(cls, op: Any) -> IndexedDims:
        return cls._read(hlo.GatherDimensionNumbers(op.attributes["dimension_numbers"]), 0)

    @classmethod
    def of_scatter(cls, op: Any) -> IndexedDims:
        return cls._read(hlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"]), 1)

    @classmethod
    def _read(cls, numbers: Any, which: int) -> IndexedDims:
        rows = {field: ints(getattr(numbers, names[which])) for field, names in NAMES.items()}
        return cls(**rows, vector_dim=int(numbers.index_vector_dim))

    def walked(self, operand_rank: int) -> dict[int, int]:
        """Map each operand dimension of the windows to the dimension of the other tensor that has its elements."""
        gone = {*self.dropped, *self.operand_batching}
        return dict(zip([d for d in range(operand_rank) if d not in gone], self.window, strict=True))

    def index_walks(self, indices_rank: int, other_rank: int) -> dict[int, int]:
        """Map dimensions of the indices, except the index vector, to those of the result or updates."""
        sources = [d for d in range(indices_rank) if d != self.vector_dim]
        return dict(zip(sources, [d for d in range(other_rank) if d not in self.window], strict=True))

    def paired(self) -> dict[int, int]:
        """Map each batching dimension of the indices to the operand's."""
        return dict(zip(self.indices_batching, self.operand_batching, strict=True))
