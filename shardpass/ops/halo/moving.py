"""Builders along one split dimension: numbers by position, permutes, gathers; at the current insertion point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.gathers import all_gather
from shardpass.ir.offsets import device_value
from shardpass.ir.tensors import dense_i64, shape_of
from shardpass.ops.halo.plans import Line
from shardpass.ops.halo.transfers import Table
from shardpass.ops.model import Site
from shardpass.ops.tiles.boxes import cut, cut_at, zeros


@dataclass(frozen=True, slots=True)
class Along:
    """Builds ops along ``line``, for the op at ``site``."""

    site: Site
    line: Line

    def number(self, table: Sequence[int], kind: Any = None) -> Any:
        """Build the scalar entry of ``table`` at the device's position; ``kind`` as in ``device_value``."""
        return device_value(np.asarray(table, np.int64)[self.site.split.mesh.index(self.line.axes)], kind)

    def permute(self, value: Any, source: Sequence[int]) -> Any:
        """Build a permute: position p receives the value of position ``source[p]``, or zeros where that is -1."""
        rows, sources = self.site.split.mesh.groups(self.line.axes), np.asarray(source, np.int64)
        receivers = np.flatnonzero(sources >= 0)
        pairs = np.stack([rows[:, sources[receivers]], rows[:, receivers]], axis=-1).reshape(-1, 2)
        channel = hlo.ChannelHandle.get(next(self.site.channels), 1)
        return self._explained(hlo.CollectivePermuteOp(value, dense_i64(pairs), channel_handle=channel).operation)

    def gather(self, value: Any) -> Any:
        """Gather the tiles of all positions side by side."""
        groups = self.site.split.mesh.groups(self.line.axes)
        return self._explained(all_gather(value, self.line.dim, groups, next(self.site.channels)))

    def _explained(self, collective: Any) -> Any:
        self.site.explain(collective, self.line.axes, self.line.cause)
        return collective.results[0]

    def cut(self, value: Any, start: int, stop: int) -> Any:
        """Slice elements ``start`` up to ``stop``."""
        return cut(value, self.line.dim, start, stop)

    def slice_at(self, value: Any, start: Table, size: int) -> Any:
        """Slice ``size`` elements, at position p from ``start[p]`` on."""
        if len(set(start)) == 1:
            return self.cut(value, start[0], start[0] + size)
        return cut_at(value, self.line.dim, self.number(start), size)

    def joined(self, row: Sequence[Any]) -> Any:
        """Concatenate the values of ``row``."""
        return row[0] if len(row) == 1 else hlo.concatenate(row, self.line.dim)

    def zeros(self, like: Any, length: int) -> Any:
        """Build zeros with the shape of ``like``, but ``length`` long."""
        shape = list(shape_of(like))
        shape[self.line.dim] = length
        return zeros(like.type.element_type, shape)
