r"""Draw a layout as text: a grid of blocks with the devices of each, or a list if more than two axes are split.

axis 0 \ 1   0:6      6:12
0:4          {0,1}    {2,3}
4:8          {4,5}    {6,7}
"""

from __future__ import annotations

from collections.abc import Sequence

from shardpass.onnx.layout import Devices, Layout


def draw(layout: Layout, shape: Sequence[int]) -> str:
    """Draw the blocks of a tensor of ``shape`` (of fused axes, the shards' numbers) and their devices."""
    if layout.holders is None:
        return "unsharded: available to every device"
    split = [axis for axis, count in enumerate(layout.counts) if count > 1]
    if len(split) > 2:
        rows = [
            (", ".join(_block(layout, shape, axis, place[axis]) for axis in split), _set(layout.at(place)))
            for place in layout.shards()
        ]
        return _table([("axes " + ", ".join(map(str, split)), "devices"), *rows])
    if len(split) < 2:
        head = (f"axis {split[0]}", "devices") if split else ("whole", "devices")
        labels = [_block(layout, shape, split[0], k) for k in range(layout.counts[split[0]])] if split else [""]
        return _table([head, *zip(labels, map(_set, layout.holders), strict=True)])
    down, across = split
    table = [
        (f"axis {down} \\ {across}", *(_block(layout, shape, across, k) for k in range(layout.counts[across]))),
    ]
    for i in range(layout.counts[down]):
        row = [_block(layout, shape, down, i)]
        for j in range(layout.counts[across]):
            place = tuple(i if axis == down else j if axis == across else 0 for axis in range(len(layout.counts)))
            row.append(_set(layout.at(place)))
        table.append(tuple(row))
    return _table(table)


def _block(layout: Layout, shape: Sequence[int], axis: int, place: int) -> str:
    if layout.fused and layout.fused[axis]:
        return f"#{place}"
    tile = -(-shape[axis] // layout.counts[axis])
    return f"{min(place * tile, shape[axis])}:{min((place + 1) * tile, shape[axis])}"


def _set(devices: Devices | None) -> str:
    return "{" + ",".join(map(str, sorted(devices or ()))) + "}"


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)
