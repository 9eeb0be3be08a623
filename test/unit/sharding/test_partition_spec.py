"""JAX's PartitionSpec as text and as a value, against JAX's own meaning of it, and the reader of all notations."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass
from shardpass.sharding import Mesh, Sharding, ShardingError
from shardpass.sharding.notations.partition_spec import (
    from_named_sharding,
    is_named_sharding,
    parse_partition_spec,
    read_any,
    read_mesh,
)

MESH = Mesh((("x", 4), ("y", 2)))

# text -> axes of each of two dimensions, by hand
TEXTS = {
    "P('x', None)": (("x",), ()),
    'P("x")': (("x",), ()),
    "P()": ((), ()),
    "P(('x','y'), None)": (("x", "y"), ()),
    "P(('y', 'x'),)": (("y", "x"), ()),
    "PartitionSpec(None, 'y')": ((), ("y",)),
    " jax.sharding.PartitionSpec( 'y' , 'x' ) ": (("y",), ("x",)),
    "jax.P(None, ['x', 'y'],)": ((), ("x", "y")),
    "P((), 'x')": ((), ("x",)),
}


@pytest.mark.parametrize("text", TEXTS)
def test_texts(text: str) -> None:
    expected = Sharding.tiled(MESH, TEXTS[text])
    assert parse_partition_spec(text, MESH, 2) == expected
    assert read_any(text, (8, 8), MESH) == expected


def test_open_dimensions() -> None:
    found = parse_partition_spec("P('x', P.UNCONSTRAINED)", MESH)
    assert found.notes.open == (1,)
    assert found.dims == Sharding.tiled(MESH, [("x",), ()]).dims


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("P('x'", "SP001", 6),
        ("P(x)", "SP001", 3),
        (r"P('\x4')", "SP001", 3),
        ("P('x' 'y')", "SP001", 7),
        ("P('x') + 1", "SP001", 8),
        ("P(('x', None))", "SP001", 9),
        ("P('x', 'x')", "SP023", 0),
        ("P('z')", "SP021", 0),
        ("P(None, None, 'x')", "SP030", 0),
    ],
)
def test_texts_that_are_wrong(text: str, code: str, column: int) -> None:
    with pytest.raises(ShardingError) as caught:
        parse_partition_spec(text, MESH, 2)
    (found,) = caught.value.diagnostics
    assert (found.code, found.place.column) == (code, column)


@pytest.mark.parametrize(
    ("text", "axes"),
    [
        ("x=4,y=2", (("x", 4), ("y", 2))),
        (" x = 4 , y=2 ", (("x", 4), ("y", 2))),
        ("data-0=8", (("data-0", 8),)),
        ("mesh['x'=4,'y'=2]", (("x", 4), ("y", 2))),
    ],
)
def test_meshes(text: str, axes: tuple[tuple[str, int], ...]) -> None:
    assert read_mesh(text).axes == axes


@pytest.mark.parametrize("name", ["a'b", 'a"b', "a\\b", "a\nb", "\t\r\x7f", "\u00e9", "\u202e", "\U0001f600", "\\x41"])
@pytest.mark.parametrize("write", [repr, ascii])
def test_names_as_python_quotes_them(name, write) -> None:
    assert read_mesh(f"{write(name)}=4").axes == ((name, 4),)


@pytest.mark.parametrize("text", ["", "x", "x=", "x=4;y=2", "x=4,", "4", "x=0", "x=2,x=2", "x=" + "9" * 5000])
def test_meshes_that_are_none(text: str) -> None:
    with pytest.raises(ShardingError) as caught:
        read_mesh(text)
    assert caught.value.code in ("SP001", "SP020")


def test_one_sharding_in_every_notation() -> None:
    shape = (128, 64)
    expected = Sharding.tiled(MESH, [("x",), ()])
    for text in (
        "P('x', None)",
        '#sdy.sharding<@anything, [{"x"}, {}]>',
        '<@mesh, [{"x"}, {}]>',
        '#sdy.sharding<mesh<["x"=4, "y"=2]>, [{"x"}, {}]>',
        '[32{"x"}128, 64]',
        "{devices=[4,1,2]<=[8] last_tile_dim_replicate}",
        "{mesh['x'=4,'y'=2], [{'x'}, {}]}",
    ):
        assert read_any(text, shape, MESH) == expected, text


@pytest.mark.parametrize("text", ["P('x')", '#sdy.sharding<@m, [{"x"}, {}]>', '[32{"x"}128, 64]'])
def test_axes_without_a_mesh(text: str) -> None:
    with pytest.raises(ShardingError) as caught:
        read_any(text, (128, 64))
    assert caught.value.code == "SP020"
    assert "--mesh" in caught.value.diagnostics[0].remedy


def test_a_distributed_type_of_another_array() -> None:
    with pytest.raises(ShardingError) as caught:
        read_any('[32{"x"}128, 64]', (64, 64), MESH)
    assert caught.value.code == "SP040"


SPECS = [P(), P("x"), P(None, "y"), P(("x", "y")), P(("y", "x"), None), P("y", "x")]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_a_named_sharding_has_the_tiles_that_jax_gives_it(spec: P) -> None:
    """Device k of the mesh holds what ``devices_indices_map`` says; the text that JAX prints means the same."""
    devices = np.array([FakeDevice(n) for n in range(8)]).reshape(4, 2)
    mesh = jax.sharding.Mesh(devices, ("x", "y"))
    said = NamedSharding(mesh, spec)
    shape = (16, 24)
    found = from_named_sharding(said, 2)
    expected = [
        [index.indices(size)[0] for index, size in zip(said.devices_indices_map(shape)[device], shape, strict=True)]
        for device in mesh.devices.flat
    ]
    np.testing.assert_array_equal(found.tile_offsets(shape), expected)
    assert read_any(str(spec), shape, MESH) == found


class FakeDevice:
    """As much of a device as a mesh asks for: the tests' process has one."""

    def __init__(self, number: int) -> None:
        self.id = number
        self.process_index = 0
        self.platform = self.device_kind = "cpu"
        self.client = jax.devices()[0].client


def test_an_abstract_mesh_will_do() -> None:
    mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Auto))
    said = NamedSharding(mesh, P("x", P.UNCONSTRAINED))
    found = from_named_sharding(said, 3)
    assert (found.dims[1:], found.notes.open) == (((), ()), (1,))


def test_what_is_no_named_sharding() -> None:
    assert is_named_sharding(NamedSharding(AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,)), P()))
    for value in (None, "P('x')", 5, P("x"), MESH, Sharding.replicated(), b"", []):
        assert not is_named_sharding(value)


ABSTRACT = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Auto))


@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize("mesh", [ABSTRACT, MESH, "x=4,y=2"], ids=["JAX", "Mesh", "text"])
def test_values_of_jax_are_read_as_their_text(spec: P, mesh: object) -> None:
    """Witness: the text of the PartitionSpec, and mhlo text that the sharding prints."""
    found = shardpass.parse_sharding(spec, mesh, rank=2)
    assert found == shardpass.parse_sharding(NamedSharding(ABSTRACT, spec), rank=2)
    assert found == shardpass.parse_sharding(str(spec), mesh, rank=2) == shardpass.parse_sharding(str(found))


def test_partial_sums_of_a_partition_spec_are_kept() -> None:
    found = shardpass.parse_sharding(P("x", unreduced={"y"}), ABSTRACT)
    assert [axis.name for axis in found.unreduced] == ["y"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((P("x"),), "SP020"),
        ((5,), "SP140"),
        ((P("x"), 5), "SP140"),
        ((P("z"), MESH), "SP021"),
        (("P('x'", MESH), "SP001"),
    ],
)
def test_values_that_are_no_shardings(arguments: tuple[object, ...], code: str) -> None:
    with pytest.raises(shardpass.ShardpassError) as caught:
        shardpass.parse_sharding(*arguments)
    assert caught.value.code == code


def test_a_rank_below_the_entries() -> None:
    with pytest.raises(ShardingError, match="splits 2 dimensions, but the array has 1"):
        shardpass.parse_sharding(P("x", "y"), MESH, rank=1)
