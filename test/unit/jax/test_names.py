"""Names and lines in compiled HLO are those that plain JAX gives: profiles and dumps read as before."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass.jax as spj

MESH = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("a", "b"))
_COLLECTIVE = r"all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter"
_OP = re.compile(rf"^\s*(?:ROOT )?%?[\w.\-]+ = (?:\(.*?\)|\S+) ({_COLLECTIVE}|[\w-]+)(?:-start)?\(.*$", re.MULTILINE)
_PART = re.compile(r"/(operand|result)_\d+(?=$|/)")


pytestmark = pytest.mark.usefixtures("shardy")


def array(*spec):
    return jax.ShapeDtypeStruct((16, 16), jnp.float32, sharding=NamedSharding(MESH, P(*spec)))


@jax.jit
def layer(x, w):
    return jnp.tanh(x @ w)


def stacked(x, w):
    return jax.nn.log_softmax(layer(layer(x, w) * 2, w)).sum()


def scanned(x, w):
    return jax.lax.scan(lambda c, _: (layer(c, w), None), x, None, length=3)[0].sum()


def trained(x, w):
    return jax.grad(lambda w: (layer(x, w) ** 2).mean())(w)


def mapped(x, w):
    body = lambda x, w: jax.lax.psum(jnp.sin(x) @ w, "b")  # noqa: E731
    return jax.shard_map(body, mesh=MESH, in_specs=(P("a", "b"), P("b")), out_specs=P("a"))(x, w) * 2


def metadata(function, specs):
    """(HLO's op, op_name, the user's line or None) of every op of the compiled program that has a name."""
    text = jax.jit(function).lower(*(array(*spec) for spec in specs)).compile().as_text()
    lines = frames(text)
    found = []
    for match in _OP.finditer(text):
        name, frame = re.search(r'op_name="([^"]*)"', match[0]), re.search(r"stack_frame_id=(\d+)", match[0])
        if name is not None:
            found.append((match[1], name[1], lines.get(int(frame[1])) if frame else None))
    return found


def frames(text):
    """The line of each stack frame that the text of an HLO module lists."""
    places = dict(re.findall(r"^(\d+) \{file_name_id=\d+ function_name_id=\d+ line=(\d+)", text, re.MULTILINE))
    return {int(k): int(places[at]) for k, at in re.findall(r"^(\d+) \{file_location_id=(\d+)", text, re.MULTILINE)}


PROGRAMS = {
    "stacked": (stacked, [("a", "b"), ("b",)]),
    "scanned": (scanned, [("a", "b"), ("b",)]),
    "trained": (trained, [("a",), (None, "b")]),
    "shard_map": (mapped, [("a", "b"), ("b",)]),
}


@pytest.mark.parametrize(("function", "specs"), PROGRAMS.values(), ids=PROGRAMS)
def test_collectives_and_products_are_called_as_in_plain_jax(shardy, function, specs):
    plain = metadata(function, specs)
    with spj.use():
        ours = metadata(function, specs)
    lines = {(name, line) for _, name, line in plain}
    known = {name for name, _ in lines}
    collectives = [row for row in ours if re.fullmatch(_COLLECTIVE, row[0])]
    assert collectives
    for _, name, line in collectives:
        assert line is not None
        assert _PART.sub("", name) in known
    products = {(name, line) for kind, name, line in ours if kind == "dot"}
    assert products
    assert products <= lines


def test_a_gathered_operand_says_which_it_is():
    """The weights are split along the dimension that is summed: they are gathered for the product."""

    def product(x, w):
        return x @ w

    with spj.use():
        found = metadata(product, [("a",), (None, None)]), metadata(lambda x, w: x + w, [("a",), (None, "a")])
    assert not [row for row in found[0] if row[0] == "all-gather"]
    moved = [name for kind, name, _ in found[1] if re.fullmatch(_COLLECTIVE, kind)]
    assert moved
    assert all(re.search(r"/add/operand_[01]$", name) for name in moved)
