"""Pictures of layouts, each drawn by hand."""

from shardpass.onnx.drawing import draw
from shardpass.onnx.layout import Layout, layout_of, unsharded
from shardpass.sharding.notations.onnx_spec import ShardedDim, ShardingSpec, SimpleSharding


def held(*devices: set[int]) -> tuple[frozenset[int], ...]:
    return tuple(map(frozenset, devices))


def test_two_split_axes_are_a_grid() -> None:
    layout = Layout((2, 1, 2), held({0, 1}, {2, 3}, {4, 5}, {6}))
    assert draw(layout, (8, 5, 11)).splitlines() == [
        "axis 0 \\ 2  0:6    6:11",
        "0:4         {0,1}  {2,3}",
        "4:8         {4,5}  {6}",
    ]


def test_one_split_axis_and_none() -> None:
    assert draw(Layout((1, 2), held({1}, {0})), (4, 3)).splitlines() == [
        "axis 1  devices",
        "0:2     {1}",
        "2:3     {0}",
    ]
    assert draw(Layout((1, 1), held({0, 1})), (4, 3)).splitlines() == ["whole  devices", "       {0,1}"]
    assert draw(unsharded(2), (4, 3)) == "unsharded: available to every device"


def test_three_split_axes_are_a_list() -> None:
    rows = draw(Layout((2, 2, 2), held(*({k} for k in range(8)))), (2, 2, 2)).splitlines()
    assert rows[0].split() == ["axes", "0,", "1,", "2", "devices"]
    assert rows[6] == "1:2, 0:1, 1:2  {5}"


def test_shards_of_a_fused_axis_have_numbers() -> None:
    spec = ShardingSpec((0, 1), dims=(ShardedDim(0, (SimpleSharding(1, 4), SimpleSharding(2, 2))),))
    assert draw(layout_of(spec, 1), (8,)).splitlines() == ["axis 0  devices", "#0      {0}", "#1      {1}"]
