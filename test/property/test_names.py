"""Names of axes and meshes, whatever letters they have, come back from every notation; XLA and MLIR read them too."""

from __future__ import annotations

import ast

from hypothesis import given, settings
from hypothesis import strategies as st
from jax._src.lib import xla_client
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy
from support import daily
from support.onnx_spec_text import parse_onnx_spec

from shardpass.ir.dialects import make_context
from shardpass.sharding import AxisRef, Mesh, Sharding, parse_mesh, parse_sdy, parse_sharding, sdy_text
from shardpass.sharding.notations.distributed_type import distributed_type_text, parse_distributed_type
from shardpass.sharding.notations.named import named_text
from shardpass.sharding.notations.onnx_spec import ShardedDim, ShardingSpec, SimpleSharding
from shardpass.sharding.notations.partition_spec import parse_partition_spec, read_any, read_mesh
from shardpass.sharding.quoting import listed

LETTERS = "'\"\\\n\r\t,=:()[]{}<>@? axy01n\x00\x7f\x85\u00e9\u2028\u202e\U0001f600"
names = st.text(st.sampled_from(LETTERS), max_size=6) | st.text(max_size=6)
pairs = st.lists(names, min_size=2, max_size=2, unique=True)
orders = st.sampled_from((None, (0, 2, 4, 6, 1, 3, 5, 7), (7, 6, 5, 4, 3, 2, 1, 0)))
checked = settings(max_examples=daily.scaled(200), deadline=None)


def sharded(mesh: Mesh) -> Sharding:
    """Over the first axis's major part, and all of the second axis."""
    return Sharding.tiled(mesh, [(AxisRef(mesh.names[0], 1, 2),), (AxisRef(mesh.names[1]),)])


@checked
@given(pairs, orders)
def test_the_text_of_a_mesh(pair: list[str], order: tuple[int, ...] | None) -> None:
    mesh = Mesh(((pair[0], 4), (pair[1], 2)), order)
    text = str(mesh)
    assert text.isprintable()
    assert parse_mesh(text) == mesh
    assert read_mesh(text) == mesh


@checked
@given(pairs, orders)
def test_the_named_text_of_a_sharding(pair: list[str], order: tuple[int, ...] | None) -> None:
    made = sharded(Mesh(((pair[0], 4), (pair[1], 2)), order))
    text = named_text(made)
    for strict in (True, False):
        again = parse_sharding(text, strict=strict)
        assert isinstance(again, Sharding)
        assert (again.mesh, again.dims) == (made.mesh, made.dims)
        assert str(again) == text


@checked
@given(pairs)
def test_xla_reads_the_named_text(pair: list[str]) -> None:
    """XLA prints names as they are, so what it prints shows what it read."""
    made = sharded(Mesh(((pair[0], 4), (pair[1], 2))))
    printed = str(xla_client.HloSharding.from_string(named_text(made)))
    assert printed == f"{{mesh['{pair[0]}'=4,'{pair[1]}'=2], [{{'{pair[0]}':(1)2}}, {{'{pair[1]}'}}]}}"


@checked
@given(pairs, names)
def test_the_text_of_shardy(pair: list[str], name: str) -> None:
    mesh = Mesh(((pair[0], 4), (pair[1], 2)))
    made = sharded(mesh)
    text = sdy_text(made, name or "mesh")
    again = parse_sdy(text, {name or "mesh": mesh})
    assert (again.mesh, again.dims) == (mesh, made.dims)


@checked
@given(pairs, names)
def test_mlir_reads_the_text_of_shardy_and_its_own_is_read(pair: list[str], name: str) -> None:
    mesh = Mesh(((pair[0], 4), (pair[1], 2)))
    with make_context():
        attribute = ir.Attribute.parse(sdy_text(sharded(mesh), name or "mesh"))
        dims = [sdy.DimensionShardingAttr(dim).axes for dim in sdy.TensorShardingAttr(attribute).dimension_shardings]
        assert [[sdy.AxisRefAttr(axis).name for axis in axes] for axes in dims] == [[one] for one in pair]
        again = parse_sdy(str(attribute), {name or "mesh": mesh})
    assert (again.mesh, again.dims) == (mesh, sharded(mesh).dims)


@checked
@given(pairs)
def test_a_mesh_within_the_text_of_shardy(pair: list[str]) -> None:
    with make_context():
        axes = [sdy.MeshAxisAttr.get(name, size) for name, size in zip(pair, (4, 2), strict=True)]
        dims = [sdy.DimensionShardingAttr.get([sdy.AxisRefAttr.get(pair[1])], is_closed=True)]
        text = str(sdy.TensorShardingAttr.get(sdy.MeshAttr.get(axes), dims))
    mesh = Mesh(zip(pair, (4, 2), strict=True))
    assert parse_sdy(text, {}) == Sharding.tiled(mesh, [(AxisRef(pair[1]),)])
    assert read_any(text, (8,)).mesh == mesh


@checked
@given(pairs)
def test_the_notation_of_the_paper(pair: list[str]) -> None:
    made = sharded(Mesh(((pair[0], 4), (pair[1], 2))))
    again, shape = parse_distributed_type(distributed_type_text(made, (8, 6)), made.mesh)
    assert (again.dims, shape) == (made.dims, (8, 6))


@checked
@given(pairs)
def test_partition_spec(pair: list[str]) -> None:
    """``repr`` is how JAX shows a spec's names, and Python reads what it shows."""
    mesh = Mesh(((pair[0], 4), (pair[1], 2)))
    for text in (f"P(({pair[0]!r}, {pair[1]!r}), None)", f"P({tuple(pair)!a}, None)"):
        assert ast.literal_eval(text[1:]) == (tuple(pair), None)
        made = parse_partition_spec(text, mesh)
        assert made.dims == ((AxisRef(pair[0]), AxisRef(pair[1])), ())
    assert read_mesh(f"{pair[0]!r}=4, {pair[1]!a}=2") == mesh


@checked
@given(names, names)
def test_onnx(name: str, dim: str) -> None:
    spec = ShardingSpec((0, 1), dims=(ShardedDim(0, (SimpleSharding(2, dim),)),), tensor_name=name)
    assert parse_onnx_spec(str(spec)) == spec


@checked
@given(st.lists(names, max_size=4, unique=True))
def test_a_list_for_people_is_taken_apart(several: list[str]) -> None:
    written = [ref.bare for name in several for ref in (AxisRef(name), AxisRef(name, 1, 2))]
    text = ",".join(written)
    assert text.isprintable()
    assert listed(text) == written
    assert len(set(written)) == len(written) or any(name + ":(1)2" in several for name in several)
