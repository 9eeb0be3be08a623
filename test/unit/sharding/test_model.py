"""Values: immutable, copied and hashed by meaning, said on other meshes."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pytest

from shardpass.sharding import (
    AxisRef,
    Mesh,
    Sharding,
    ShardingError,
    ShardingParseError,
    TupleSharding,
    common_mesh,
    parse_mesh,
    parse_sharding,
)

MESH = Mesh((("x", 4), ("y", 2)))
TEXTS = [
    "{replicated}", "{maximal device=2}", "{manual}", "{unknown}", "{unreduced}", "{devices=[4,2]<=[8]}", "{devices=[4]3,1,2,0}",  # noqa: E501
    "{devices=[2,2,2]<=[8] last_tile_dims={manual, replicated}}", "{mesh['x'=4], [{'x':(1)2}]}", "{{replicated}, {manual}}",  # noqa: E501
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_copies_are_equal(text: str) -> None:
    sharding = parse_sharding(text)
    for again in (copy.deepcopy(sharding), pickle.loads(pickle.dumps(sharding))):
        assert again == sharding
        assert hash(again) == hash(sharding)
        assert str(again) == str(sharding)


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_seen_before_gives_the_same_object(text: str) -> None:
    assert parse_sharding(text) is parse_sharding("".join(text))


def test_values_cannot_be_changed() -> None:
    for value in (parse_sharding("{devices=[2]<=[2]}"), TupleSharding([Sharding.manual_()])):
        with pytest.raises(AttributeError, match=r"immutable|cannot assign"):
            value.dims = ()  # type: ignore[misc,union-attr]
    with pytest.raises(ValueError, match="read-only"):
        parse_sharding("{devices=[2]<=[2]}").tile_index()[0, 0] = 1  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="read-only"):
        MESH.devices[0, 0] = 1


def test_facts_that_are_kept_do_not_travel() -> None:
    """A hash of strings is another one in another process, so a copy computes its own."""
    sharding = parse_sharding("{devices=[4]3,1,2,0}")
    assert hash(sharding) == hash(sharding)
    fields = {field.name for field in dataclasses.fields(sharding)}  # type: ignore[arg-type]
    assert set(pickle.loads(pickle.dumps(sharding)).__dict__) == fields


def test_equal_shardings_are_compared_by_meaning_once(monkeypatch: pytest.MonkeyPatch) -> None:
    order = np.random.default_rng(1).permutation(64)
    texts = [f"{{devices=[8,8]{blank.join(map(str, order))}}}" for blank in (",", ", ")]
    one, other = map(parse_sharding, texts)
    assert one is not other
    assert one == other
    assert one._key is other._key  # type: ignore[union-attr]
    numbers = []
    monkeypatch.setattr("shardpass.sharding.meaning.number", lambda *asked: numbers.append(asked))
    for _ in range(3):
        assert one == other
        assert {one: 1}[other] == 1  # type: ignore[index]
    assert numbers == []


def test_kinds() -> None:
    kinds = ("replicated", "maximal", "manual", "unknown", "unreduced", "tiled")

    def kind(text: str) -> list[str]:
        sharding = parse_sharding(text)
        return [name for name in kinds if getattr(sharding, f"is_{name}")]

    assert kind("{devices=[1,1,8]<=[8] last_tile_dims={manual}}") == ["manual"]
    assert kind("{devices=[1,8]<=[8] last_tile_dim_replicate}") == ["replicated"]
    assert kind("{mesh['x'=2], unreduced}") == ["unreduced"]
    assert kind("{maximal device=0}") == ["maximal"]
    assert kind("{unknown}") == ["unknown"]
    assert kind("{devices=[2,2]<=[4] last_tile_dims={manual}}") == ["tiled"]
    assert kind("{devices=[1]<=[1]}") == ["replicated"]


def test_partial_sums_are_equal_whatever_the_order_of_their_summands() -> None:
    one = parse_sharding("{devices=[2,4]<=[8] last_tile_dims={unreduced}}")
    other = parse_sharding("{devices=[2,4]3,1,2,0,4,5,6,7 last_tile_dims={unreduced}}")
    assert one == other
    assert one != parse_sharding("{devices=[2,4]<=[8] last_tile_dim_replicate}")
    assert one != parse_sharding("{devices=[2,4]4,1,2,0,3,5,6,7 last_tile_dims={unreduced}}")


def test_a_partial_max_is_no_partial_sum() -> None:
    plain = Sharding.tiled(MESH, [["x"]], unreduced=["y"])
    greatest = Sharding.tiled(MESH, [["x"]], unreduced=["y"], reduction="max")
    assert plain != greatest
    assert greatest.on(Mesh((("a", 4), ("b", 2)))) == greatest
    assert parse_sharding("{mesh['x'=4,'y'=2], [{'x'}], unreduced=max{'y'}}") == greatest
    assert parse_sharding(greatest.text(metadata=True)) == greatest


def test_manual_coordinates_count() -> None:
    one = parse_sharding("{devices=[2,2]<=[4] last_tile_dims={manual}}")
    assert one != parse_sharding("{devices=[2,2]1,0,2,3 last_tile_dims={manual}}")
    assert one == parse_sharding("{devices=[2,2]0,1,2,3 last_tile_dims={manual}}")


def test_neighbouring_parts_of_an_axis_are_one() -> None:
    parts = [AxisRef("x", 1, 2), AxisRef("x", 2, 2)]
    assert Sharding.tiled(MESH, [parts]).dims == ((AxisRef("x"),),)
    assert Sharding.tiled(MESH, [parts[::-1]]).dims == (tuple(parts[::-1]),)


def test_replicated_axes_are_the_rest() -> None:
    sharding = Sharding.tiled(MESH, [[AxisRef("x", 2, 2)]])
    assert sharding.replicated_axes == (AxisRef("x", 1, 2), AxisRef("y"))
    assert Sharding.tiled(MESH, [["x"], ["y"]]).replicated_axes == ()


def test_groups() -> None:
    sharding = Sharding.tiled(Mesh((("x", 2), ("y", 2)), (3, 1, 2, 0)), [["x"], ["y"]])
    assert sharding.groups(["y"]).tolist() == [[3, 1], [2, 0]]
    assert sharding.groups(["x"]).tolist() == [[3, 2], [1, 0]]
    assert sharding.groups(["y", "x"]).tolist() == [[3, 2, 1, 0]]
    assert sharding.groups([]).tolist() == [[3], [1], [2], [0]]


def test_on_another_mesh() -> None:
    fine = Mesh((("a", 2), ("b", 2), ("c", 2)))
    coarse = Sharding.tiled(MESH, [["x"], []])
    said = coarse.on(fine)
    assert said is not None
    assert said.dims == ((AxisRef("a"), AxisRef("b")), ())
    assert said == coarse
    assert coarse.on(Mesh((("a", 3),))) is None
    assert Sharding.tiled(Mesh((("a", 2), ("b", 3))), [["a"]]).on(Mesh((("a", 3), ("b", 2)))) is None


def test_on_keeps_the_rank_and_the_devices_of_a_replicated_sharding() -> None:
    two, three = Sharding.tiled(MESH, [(), ()]), Sharding.tiled(MESH, [(), (), ()])
    assert two == three
    target = Mesh((("a", 8),))
    ranks = []
    for one in (two, three):
        said = one.on(target)
        assert said is not None
        ranks.append(len(said.dims))
    assert ranks == [2, 3]
    assert Sharding.tiled(Mesh((("x", 4),)), [(), ()]).on(target) is None


def test_common_mesh_of_lists_in_one_order() -> None:
    order = "5,0,3,1,4,2"
    rows = parse_sharding(f"{{devices=[2,1,3]{order} last_tile_dim_replicate}}")
    columns = parse_sharding("{devices=[1,3,2]0,4,2,3,5,1 last_tile_dim_replicate}")
    assert common_mesh([rows]) is not None
    assert common_mesh([rows, parse_sharding("{devices=[6]<=[6]}")]) is None
    assert common_mesh([columns, Sharding.replicated()]) is not None
    assert common_mesh([Sharding.replicated()]) is None
    assert common_mesh([Sharding.replicated()], MESH) == MESH
    assert common_mesh([parse_sharding("{devices=[2]<=[2]}"), parse_sharding("{devices=[4]<=[4]}")]) is None


def test_names_of_sub_axes_of_sub_axes() -> None:
    by_two = parse_sharding("{devices=[2,4]<=[8] last_tile_dim_replicate}")
    by_four = parse_sharding("{devices=[4,2]<=[8] last_tile_dim_replicate}")
    line = Mesh((("x", 8),))
    first = common_mesh([by_two], line)
    assert first is not None
    assert first.names == ("x:(1)2", "x:(2)4")
    second = common_mesh([by_two, by_four], first)
    assert second is not None
    assert second.names == ("x:(1)2", "x:(2)2", "x:(4)2")


def test_meshes() -> None:
    text = "mesh['x'=2,'y'=3], device_ids=([3,2]T(1,0))"
    mesh = parse_mesh(text)
    assert str(mesh) == text
    assert mesh == Mesh((("x", 2), ("y", 3)), (0, 2, 4, 1, 3, 5))
    assert mesh.devices.tolist() == [[0, 2, 4], [1, 3, 5]]
    assert Mesh((("x", 2),), (0, 1)) == Mesh((("x", 2),))
    assert Mesh((("x", 2),)) != Mesh((("y", 2),))
    assert Mesh(()).size == 1
    assert str(Mesh((("x", 3),), (2, 0, 1))) == "mesh['x'=3], device_ids=(2,0,1)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mesh['x'=0]", "the size 0"),
        ("mesh['x'=2,'x'=2]", "two axes"),
        ("mesh['x'=4], device_ids=(0,1,1,2)", "not a permutation"),
        ("mesh['x'=4], device_ids=([2,3]T(1,0))", "4 tiles but the iota lists 6"),
        ("mesh[x=2]", "a quoted name"),
        ("{mesh['x'=2], replicated}", "expected"),
    ],
)
def test_no_mesh(text: str, message: str) -> None:
    with pytest.raises(ShardingParseError, match=message):
        parse_mesh(text)


def test_a_mesh_seen_before_is_the_same_object() -> None:
    assert parse_mesh("mesh['x'=2,'y'=4]") is parse_mesh("mesh['x'=2,'y'=4]")
    assert parse_mesh("mesh['x'=3], device_ids=(0,1,2)") == Mesh((("x", 3),))


def test_the_same_order_on_other_axes() -> None:
    order = (3, 1, 2, 0)
    assert Mesh((("x", 4),), order).same_order(Mesh((("a", 2), ("b", 2)), order))
    assert not Mesh((("x", 4),), order).same_order(Mesh((("x", 4),)))
    assert Mesh((("x", 4),)).same_order(Mesh((("a", 2), ("b", 2)), range(4)))
    assert not Mesh((("x", 4),)).same_order(Mesh((("x", 2),)))


def test_scale() -> None:
    n = 1 << 40
    sharding = parse_sharding(f"{{devices=[{n // 2},2]<=[2,{n // 2}]T(1,0)}}")
    assert sharding.num_devices == n
    assert sharding == parse_sharding(str(sharding))
    assert sharding.tile_shape((n, 6)) == (2, 3)  # type: ignore[union-attr]
    with pytest.raises(ShardingError, match="at most 16777216 rows"):
        sharding.tile_offsets((n, 6))  # type: ignore[union-attr]
    listed = np.random.default_rng(0).permutation(65536)
    text = f"{{devices=[256,256]{','.join(map(str, listed.tolist()))}}}"
    many = parse_sharding(text)
    assert str(many) == text
    offsets = many.tile_offsets((512, 512))  # type: ignore[union-attr]
    assert offsets[listed[257]].tolist() == [2, 2]
