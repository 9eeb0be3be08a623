"""The other notations: SDY attributes, the paper's distributed types, ONNX's ShardingSpec."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from support.onnx_spec_text import parse_onnx_spec

from shardpass.sharding import (
    AxisRef,
    Mesh,
    Sharding,
    ShardingError,
    ShardingParseError,
    parse_sdy,
    parse_sharding,
    sdy_text,
)
from shardpass.sharding.notations.distributed_type import distributed_type_text, parse_distributed_type
from shardpass.sharding.notations.named import named_text
from shardpass.sharding.notations.onnx_proto import from_proto, to_proto
from shardpass.sharding.notations.onnx_sharding import sharding_of_spec, spec_of_sharding
from shardpass.sharding.notations.onnx_spec import ShardedDim, ShardingSpec, SimpleSharding

MESH = Mesh((("x", 4), ("y", 2), ("z", 3)))


# ------------------------------------------------------------------------------------- SDY


@pytest.mark.parametrize(
    "text",
    [
        '#sdy.sharding<@mesh, [{"x"}, {"y", "z"}]>',
        '#sdy.sharding<@mesh, [{"x":(1)2, ?}p1, {?}, {}p0], replicated={"x":(2)2}, unreduced={"z"}>',
        "#sdy.sharding<@mesh, []>",
        '#sdy.sharding<@mesh, [{"z", "x"}], replicated={"y"}>',
    ],
)
def test_sdy_there_and_back(text: str) -> None:
    assert sdy_text(parse_sdy(text, {"mesh": MESH})) == text


def test_sdy_means_what_it_says() -> None:
    sharding = parse_sdy('#sdy.sharding<@m, [{"y", "x"}, {}]>', {"m": Mesh((("x", 2), ("y", 3)))})
    rows = [[0, 0]] * 6
    for x in range(2):  # device x * 3 + y; y is major
        for y in range(3):
            rows[x * 3 + y] = [(y * 2 + x) * 5, 0]
    assert sharding.tile_offsets((30, 2)).tolist() == rows


def test_sdy_has_no_word_for_manual_axes() -> None:
    with pytest.raises(ShardingError, match="none of them manual"):
        sdy_text(Sharding.tiled(MESH, [["x"]], manual=["y"]))


def test_named_text_is_read_again() -> None:
    sharding = Sharding.tiled(MESH, [["x"], [AxisRef("x", 1, 1)]], unreduced=["z"])
    assert named_text(sharding) == "{mesh['x'=4,'y'=2,'z'=3], [{'x'}, {}], unreduced={'z'}}"
    assert parse_sharding(named_text(sharding)) == sharding


# ------------------------------------------------------------------------------------- distributed types


def test_the_papers_axes_are_minor_to_major() -> None:
    # "[8{"x", "y"}32] is first partitioned over y, then each of these tiles along x" (section 2.1)
    mesh = Mesh((("x", 2), ("y", 2)))
    sharding, shape = parse_distributed_type('[8{"x", "y"}32]', mesh)
    assert shape == (32,)
    expected = np.zeros((4, 1), dtype=np.int64)
    for x in range(2):
        for y in range(2):
            expected[2 * x + y] = 16 * y + 8 * x
    np.testing.assert_array_equal(sharding.tile_offsets(shape), expected)


@pytest.mark.parametrize(
    "text", ['[32{"x"}128, 6{"y","z"}36]', "[10, 3]", '[1{"z","y","x"}24]', "[]", '[8{"x":(2)2}16, 4{"x":(1)2}8]']
)
def test_distributed_types_there_and_back(text: str) -> None:
    sharding, shape = parse_distributed_type(text, MESH)
    assert distributed_type_text(sharding, shape) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[32{"x"}100]', "4 tiles of 32 are 128, not 100"),
        ('[32{"x"}128', "expected ','"),
        ('[32{"x"128]', "expected ','"),
        ('[{"x"}128]', "expected a number"),
        ("[99999999999999999999]", "64 bits"),
        ("[4] 5", "expected the end"),
        ("", "expected '\\['"),
    ],
)
def test_no_distributed_type(text: str, message: str) -> None:
    with pytest.raises(ShardingParseError, match=message):
        parse_distributed_type(text, MESH)


def test_what_a_distributed_type_cannot_say() -> None:
    with pytest.raises(ShardingError, match="partial sums"):
        distributed_type_text(Sharding.tiled(MESH, [["x"]], unreduced=["y"]), (8,))
    with pytest.raises(ShardingError, match="a size of 9 in 4 tiles"):
        distributed_type_text(Sharding.tiled(MESH, [["x"]]), (9,))
    with pytest.raises(ShardingError, match="maximal"):
        distributed_type_text(Sharding.maximal(0), (9,))


# ------------------------------------------------------------------------------------- ONNX

OUTPUT = """
{
device = [0, 1, 2, 3]
sharded_dim =[
{
axis = 0
simple_sharding =
[
{
num_shards = 2
}
]
}
{
axis = 1
simple_sharding =
[
{
num_shards = 2
}
]
}
]
}
"""
INPUT = """
{
device = [-1, -2] // keys into device_map
device_map = {-1: [0, 1], -2: [2, 3]}
sharded_dim =[{axis = 0 simple_sharding = [{num_shards = 2}]}]
}
"""
OTHER_INPUT = "{device=[-1,-2] device_map={-1:[0,2], -2:[1,3]} sharded_dim=[{axis=1 simple_sharding=[{num_shards=2}]}]}"


def test_the_documents_example() -> None:
    first = sharding_of_spec(parse_onnx_spec(INPUT), 2)
    assert str(sharding_of_spec(parse_onnx_spec(OUTPUT), 2)) == "{devices=[2,2]<=[4]}"
    assert first.tile_offsets((4, 1)).tolist() == [[0, 0], [0, 0], [2, 0], [2, 0]]


@pytest.mark.parametrize("text", [INPUT, OUTPUT, OTHER_INPUT])
def test_specs_there_and_back(text: str) -> None:
    spec = parse_onnx_spec(text)
    assert parse_onnx_spec(str(spec)) == spec
    assert sharding_of_spec(spec_of_sharding(sharding_of_spec(spec, 2), 2), 2) == sharding_of_spec(spec, 2)


def test_replicated_and_single() -> None:
    both = parse_onnx_spec("{device = [-1] device_map = {-1: [0, 1]} sharded_dim = []}")
    sharding = sharding_of_spec(both, 2)
    assert sharding.is_replicated
    assert sharding.num_devices == 2
    assert sharding_of_spec(ShardingSpec((1,)), 2, num_devices=4) == Sharding.maximal(1)


PART = SimpleSharding
CONTRADICTIONS = [
    (ShardingSpec((0, 1), dims=(ShardedDim(2, (PART(2),)),)), r"axis 2 is not in \[-2, 1\]"),
    (ShardingSpec((0, 1, 2), dims=(ShardedDim(0, (PART(2),)),)), "2 shards but 3 devices"),
    (ShardingSpec((0, 1), dims=(ShardedDim(0, (PART(2),)), ShardedDim(-2, (PART(1),)))), "split twice"),
    (ShardingSpec((0, -1), dims=(ShardedDim(0, (PART(2),)),)), "key -1 is not in the device map"),
    (ShardingSpec((0, 5), dims=(ShardedDim(0, (PART(2),)),)), "device 5 is not one of 2"),
    (ShardingSpec((0, 0), dims=(ShardedDim(0, (PART(2),)),)), "two shards on device 0"),
    (ShardingSpec((0, 1), dims=(ShardedDim(0, (PART(0),)),)), "cut into 0 shards"),
    (ShardingSpec((0, 1), dims=(ShardedDim(0, (PART(1), PART(2))),)), "fused of several sizes"),
    (ShardingSpec((-1, 2), {-1: (0, 1)}, (ShardedDim(0, (PART(2),)),)), "on 1 devices and tile .* on 2"),
    (ShardingSpec((-1,), {-1: ()}), "group -1 is empty"),
]


@pytest.mark.parametrize(("spec", "message"), CONTRADICTIONS)
def test_what_a_sharding_cannot_say(spec: ShardingSpec, message: str) -> None:
    with pytest.raises(ShardingError, match=message):
        sharding_of_spec(spec, 2)


def test_a_symbolic_size() -> None:
    named = parse_onnx_spec('{device=[0,1] sharded_dim=[{axis=0 simple_sharding=[{dim_param="N" num_shards=2}]}]}')
    assert named.dims[0].parts[0].dim == "N"
    assert sharding_of_spec(named, 1) == parse_sharding("{devices=[2]0,1}")


def test_some_of_the_devices() -> None:
    spec = ShardingSpec((0, 1), dims=(ShardedDim(0, (PART(2),)),))
    with pytest.raises(ShardingError, match="2 of 4 devices"):
        sharding_of_spec(spec, 1, num_devices=4)


class Repeated(list):  # type: ignore[type-arg]
    """Enough of a repeated protobuf field."""

    def __init__(self, make) -> None:  # type: ignore[no-untyped-def]
        super().__init__()
        self.make = make

    def add(self) -> object:
        self.append(self.make())
        return self[-1]


def message() -> SimpleNamespace:
    def simple() -> SimpleNamespace:
        return SimpleNamespace(num_shards=0)

    def dim() -> SimpleNamespace:
        return SimpleNamespace(axis=0, simple_sharding=Repeated(simple))

    def entry() -> SimpleNamespace:
        return SimpleNamespace(key=0, value=[])

    return SimpleNamespace(
        tensor_name="", device=[], index_to_device_group_map=Repeated(entry), sharded_dim=Repeated(dim)
    )


@pytest.mark.parametrize("text", [INPUT, OUTPUT])
def test_protobuf_by_its_fields(text: str) -> None:
    spec = parse_onnx_spec(text)
    assert from_proto(to_proto(spec, message())) == spec


def test_protobuf_of_onnx() -> None:
    onnx = pytest.importorskip("onnx")
    dims = (ShardedDim(0, (SimpleSharding(2, "N"),)), ShardedDim(1, (SimpleSharding(2, 8),)))
    spec = ShardingSpec((0, 1, 2, 3), dims=dims, tensor_name="A")
    proto = to_proto(spec, onnx.ShardingSpecProto())
    assert from_proto(onnx.ShardingSpecProto.FromString(proto.SerializeToString())) == spec


@pytest.mark.parametrize("size", [1, 2])
def test_an_axis_twice_whatever_its_size(size: int) -> None:
    """One of size 1 splits nothing, and XLA's parser ends the process on it all the same."""
    with pytest.raises(ShardingError, match="axis 'y' is used twice: by dimension 0 and by manual"):
        parse_sharding(f"{{mesh['x'=2,'y'={size}], [{{'x', 'y'}}], manual={{'y'}}}}", strict=False)
    with pytest.raises(ShardingError, match="axis 'y' is used twice: by dimension 0 and by dimension 1"):
        parse_sdy('#sdy.sharding<@m, [{"y"}, {"y"}]>', {"m": Mesh((("x", 2), ("y", size)))})
    assert parse_sharding(f"{{mesh['x'=2,'y'={size}], [{{'x'}}], manual={{'y'}}}}").tile_shape((8,)) == (4,)
