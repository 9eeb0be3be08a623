"""The documents' examples and the contract of the core."""

from __future__ import annotations

import numpy as np
import pytest

from shardpass.sharding import (
    AxisRef,
    Mesh,
    Sharding,
    ShardingError,
    ShardingParseError,
    common_mesh,
    parse_sdy,
    parse_sharding,
)

MESH = Mesh((("x", 4), ("y", 2)))


def test_the_first_example_of_the_format() -> None:
    sharding = parse_sharding("{devices=[2,1]0,1}")
    assert sharding.num_devices == 2
    assert sharding.tile_shape((4, 3)) == (2, 3)
    np.testing.assert_array_equal(sharding.tile_offsets((4, 3)), [[0, 0], [2, 0]])


def test_the_second_example_of_the_format() -> None:
    assert parse_sharding("{devices=[1,2,4]0,1,2,3,4,5,6,7}").tile_shape((3, 4, 4)) == (3, 2, 1)


def test_replication_after_the_brace_is_taken_only_when_strict() -> None:
    text = "{devices=[1,2,4]0,1,2,3,4,5,6,7} last_tile_dim_replicate"
    offsets = parse_sharding(text).tile_offsets((4, 4))
    np.testing.assert_array_equal(offsets, [[0, 0]] * 4 + [[0, 2]] * 4)
    with pytest.raises(ShardingParseError, match="before the brace"):
        parse_sharding(text, strict=False)


def test_replicated_says_nothing_of_devices() -> None:
    sharding = parse_sharding("{replicated}")
    assert sharding.num_devices is None
    assert sharding.tile_offsets((4, 3)).tolist() == [[0, 0]]
    assert sharding.tile_offsets((4, 3), num_devices=2).tolist() == [[0, 0], [0, 0]]


def test_an_empty_last_tile_starts_at_the_end() -> None:
    assert parse_sharding("{devices=[4]<=[4]}").tile_offsets((5,)).tolist() == [[0], [2], [4], [5]]


@pytest.mark.parametrize(
    ("dims", "text"),
    [
        ((["x"], ["y"]), "{devices=[4,2]<=[8]}"),
        ((["y"], ["x"]), "{devices=[2,4]<=[4,2]T(1,0)}"),
        ((["y", "x"], []), "{devices=[8,1]<=[4,2]T(1,0)}"),
        ((["x"], []), "{devices=[4,1,2]<=[8] last_tile_dim_replicate}"),
        (([], []), "{replicated}"),
        (([AxisRef("x", 2, 2)], [AxisRef("x", 1, 2)]), "{devices=[2,2,2]<=[2,2,2]T(1,0,2) last_tile_dim_replicate}"),
    ],
)
def test_axes_print_as_xla_prints_them(dims: tuple[list[str], ...], text: str) -> None:
    sharding = Sharding.tiled(MESH, dims)
    assert str(sharding) == text
    assert parse_sharding(text) == sharding
    assert hash(parse_sharding(text)) == hash(sharding)


def test_a_list_that_counts_up_equals_the_iota() -> None:
    listed = parse_sharding("{devices=[4,2]0,4,1,5,2,6,3,7}")
    iota = parse_sharding("{devices=[4,2]<=[2,4]T(1,0)}")
    assert listed == iota
    assert str(listed) == "{devices=[4,2]0,4,1,5,2,6,3,7}"


def test_common_mesh_keeps_the_users_names() -> None:
    by_four, by_two = parse_sharding("{devices=[4,2]<=[8]}"), parse_sharding("{devices=[2,4]<=[8]}")
    mesh = common_mesh([by_four, by_two], MESH)
    assert mesh is not None
    assert mesh.axes == (("x:(1)2", 2), ("x:(2)2", 2), ("y", 2))
    assert by_two.on(mesh) == by_two


def test_cuts_that_do_not_nest_have_no_common_mesh() -> None:
    assert common_mesh([parse_sharding("{devices=[2,3]<=[6]}"), parse_sharding("{devices=[3,2]<=[6]}")]) is None


def test_a_device_order_of_ones_own_is_kept() -> None:
    sharding = parse_sharding("{devices=[4]3,1,2,0}")
    assert sharding.mesh is not None
    assert sharding.mesh.device_ids == (3, 1, 2, 0)
    assert sharding.tile_offsets((8,)).tolist() == [[6], [2], [4], [0]]


def test_sdy() -> None:
    sharding = parse_sdy('#sdy.sharding<@m, [{"y", "x":(1)2}, {?}p2], replicated={"x":(2)2}>', {"m": MESH})
    assert sharding == Sharding.tiled(MESH, (["y", AxisRef("x", 1, 2)], []))


def test_an_axis_used_twice() -> None:
    with pytest.raises(ShardingError, match="'x' is used twice: by dimension 0 and by dimension 1"):
        Sharding.tiled(MESH, (["x"], ["x"]))


def test_the_column_of_a_fault() -> None:
    with pytest.raises(ShardingParseError) as caught:
        parse_sharding("{devices=[2,2]0,1,1,3}")
    assert caught.value.column == 19
    assert caught.value.code == "SP005"
    assert caught.value.excerpt.splitlines()[1] == " " * 18 + "^"
