"""Layouts, beside the sharding that the same spec is in XLA's notation, and bytes worked out by hand."""

from __future__ import annotations

import itertools
from types import MappingProxyType

import numpy as np
import pytest
from support.onnx_spec_text import parse_onnx_spec

from shardpass.onnx.layout import Layout, bytes_received, layout_of, spec_of, unsharded
from shardpass.sharding.notations.onnx_sharding import sharding_of_spec
from shardpass.sharding.notations.onnx_spec import ShardedDim, ShardingSpec, SimpleSharding


def cut(axis: int, shards: int) -> ShardedDim:
    return ShardedDim(axis, (SimpleSharding(shards),))


SPECS = [
    ShardingSpec((0, 1, 2, 3), dims=(cut(0, 2), cut(1, 2))),
    ShardingSpec((0, 1, 2, 3), dims=(cut(1, 2), cut(0, 2))),  # axis 1 is outermost
    ShardingSpec((3, 1, 0, 2), dims=(cut(-1, 4),)),
    ShardingSpec((-1, -2), MappingProxyType({-1: (0, 2), -2: (1, 3)}), (cut(0, 2),)),
    ShardingSpec((-1,), MappingProxyType({-1: (0, 1, 2, 3)})),
    ShardingSpec((7, 8), MappingProxyType({7: (0, 1), 8: (2, 3)}), (cut(0, 2),)),  # keys may be any number
]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_a_layout_has_the_tiles_of_the_sharding(spec: ShardingSpec) -> None:
    layout = layout_of(spec, 2)
    sharding = sharding_of_spec(spec, 2)
    offsets = sharding.tile_offsets((8, 8), 4)
    assert layout.counts == sharding.tile_counts(2)
    for place in layout.shards():
        start = [at * 8 // count for at, count in zip(place, layout.counts, strict=True)]
        assert layout.at(place) == {d for d in range(4) if offsets[d].tolist() == start}


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_a_spec_of_a_layout_has_that_layout(spec: ShardingSpec) -> None:
    layout = layout_of(spec, 2)
    written = spec_of(layout, "t", (8, 8))
    assert layout_of(written, 2) == layout
    assert parse_onnx_spec(str(written)) == written


def test_a_fused_axis_is_not_the_plain_one() -> None:
    fused = ShardingSpec((0, 1), dims=(ShardedDim(0, (SimpleSharding(1, 4), SimpleSharding(2, 2))),))
    assert layout_of(fused, 1) != layout_of(ShardingSpec((0, 1), dims=(cut(0, 2),)), 1)
    assert layout_of(fused, 1).counts == (2,)
    assert bytes_received(layout_of(fused, 1), unsharded(1), (8,), 32) is None
    assert layout_of(spec_of(layout_of(fused, 1), "t"), 1) == layout_of(fused, 1)


def test_what_a_device_lacks_is_counted_element_by_element() -> None:
    """The witness: sets of elements."""
    rng = np.random.default_rng(0)

    def draw() -> Layout:
        counts = tuple(int(c) for c in rng.choice([1, 2, 3], 2))
        held = [frozenset(rng.choice(4, rng.integers(1, 4), replace=False).tolist()) for _ in range(np.prod(counts))]
        return Layout(counts, tuple(held))

    def elements(layout: Layout, device: int) -> set[tuple[int, int]]:
        tiles = [-(-size // count) for size, count in zip(sizes, layout.counts, strict=True)]
        return {
            at
            for at in itertools.product(*map(range, sizes))
            if device in (layout.at(tuple(a // t for a, t in zip(at, tiles, strict=True))) or ())
        }

    sizes = (5, 6)
    for _ in range(50):
        source, target = draw(), draw()
        most = max(len(elements(target, d) - elements(source, d)) for d in range(4))
        assert bytes_received(source, target, sizes, 16) == 2 * most


def test_the_mixed_example_of_the_proposal() -> None:
    """[[1, 2], [3, 4]], split along axis 0 over two groups: by its pseudo-code, devices 2 and 3 hold [[3, 4]]."""
    array = np.array([[1, 2], [3, 4]])
    layout = layout_of(ShardingSpec((-1, -2), MappingProxyType({-1: (0, 1), -2: (2, 3)}), (cut(0, 2),)), 2)
    held = {device: array[place[0] : place[0] + 1].tolist() for place in layout.shards() for device in layout.at(place)}
    assert held == {0: [[1, 2]], 1: [[1, 2]], 2: [[3, 4]], 3: [[3, 4]]}
