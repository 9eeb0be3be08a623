"""One column of the indices of a gather or scatter, restated for a tile of the indexed dimension.

The position p of a slice of the whole array is brought into range, shifted by the start of the tile, and moved on by
the tile's margin where the tile has one (``tiles.margins``).

A vocabulary of 8 rows over x=4 has tiles of 2 rows. Device 2 starts at row 4, so it looks for the positions
[5, 0] at [1, -4]: the first is in its tile, the second is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import retype
from shardpass.ops.model import Site, Split
from shardpass.ops.splits.factors import Axes
from shardpass.ops.tiles import positions as at


@dataclass(frozen=True, slots=True)
class LocalColumn:
    """How positions along one operand dimension are converted from the whole array to a tile.

    ``last`` is the greatest position that a slice may have. ``axes`` split the dimension into tiles of ``tile``
    elements; () where positions stay those of the whole array. ``margin`` is the width of the tile's margin.
    """

    last: int
    axes: Axes = ()
    tile: int = 0
    margin: int = 0

    def bound(self, split: Split) -> int:
        """Bound the distance from 0 of every position, in the array or in a tile."""
        return max(self.last, (split.mesh.count(self.axes) - 1) * self.tile) + self.margin

    def in_tile(self, position: Any, site: Site) -> Any:
        """Convert ``position``, in range and of a type that can represent ``bound``, to a position in this device's
        tile.
        """
        if not self.axes:
            return position
        position = at.shifted(position, site.start(self.axes, self.tile, retype(position.type, ())))
        return hlo.add(position, at.splat(position.type, self.margin)) if self.margin else position
