"""``with_sharding_constraint`` inside of ``use()`` holds as in plain JAX: XLA's own programs are the witness."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.lax import with_sharding_constraint
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass.jax as spj
from shardpass.diagnostics import ShardpassError

MESH = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("x", "y"))


def wsc(value, *spec):
    return with_sharding_constraint(value, NamedSharding(MESH, P(*spec)))


def array(shape, *spec):
    value = np.random.default_rng(3).integers(-2, 3, shape).astype(np.float32)
    return jax.device_put(value, NamedSharding(MESH, P(*spec)))


A, B, X = (256, 64), (64, 512), (256, 256)
# function, arguments as (shape, spec), the op whose operand is a tile of what the constraint makes, the shape of the
# tile: by which XLA's program and ours are known to have the constraint's result
PROGRAMS = {
    "columns of a product, summed": (lambda a, b: wsc(a @ b, None, "y").sum(1), [(A, ()), (B, ())], "dot", (256, 256)),
    "of an argument in rows": (lambda a, b: wsc(a @ b, None, "y").sum(1), [(A, ("x",)), (B, ())], "dot", (256, 256)),
    "rows of a product, multiplied": (lambda a, b: wsc(a @ b, "x") @ b.T, [(A, ()), (B, ())], "dot", (64, 512)),
    "columns, then the other": (lambda a, b: wsc(a @ b, None, "x") @ b.T, [(A, ()), (B, ())], "dot", (256, 128)),
    "tiles, summed": (lambda x: wsc(x, "x", "y").sum(0), [(X, (None, "x"))], "reduce", (128,)),
    "rows of a product, summed": (lambda a, b: wsc(a @ b, "y").sum(0), [(A, ()), (B, ())], "dot", (128, 512)),
    "tiles of a product": (lambda a, b: wsc(a @ b, "x", "y") @ b.T, [(A, ()), (B, ())], "dot", (64, 256)),
    "whole, before a product": (lambda a, b: wsc(a @ b, None, None).max(1), [(A, ("x",)), (B, ())], "dot", (256, 512)),
}


def shapes(compiled, op):
    found = re.findall(rf"= \w+\[([\d,]*)\]\S* {op}\(", compiled.as_text())
    return [tuple(int(size) for size in text.split(",")) for text in found]


def compiled(function, arguments, **options):
    jax.clear_caches()
    if not options:
        return jax.jit(function).lower(*arguments).compile()
    with spj.use(**{"strict": True, **options}):
        return jax.jit(function).lower(*arguments).compile()


@pytest.mark.parametrize(("function", "given", "op", "tile"), PROGRAMS.values(), ids=PROGRAMS)
def test_the_constraint_holds_as_in_plain_jax(function, given, op, tile):
    arguments = [array(shape, *spec) for shape, spec in given]
    plain, ours = compiled(function, arguments), compiled(function, arguments, constraints="exact")
    assert tile in shapes(plain, op)
    assert tile in shapes(ours, op)
    np.testing.assert_array_equal(np.asarray(ours(*arguments)), np.asarray(plain(*arguments)))


def test_what_a_constraint_saves_in_memory_is_saved():
    """Rows of exp(a) over all devices: the program holds no more than XLA's."""

    def function(a):
        y = wsc(jnp.exp(a), ("x", "y"))
        return y.T @ y

    arguments = [array((256, 1024))]
    plain, ours = (
        compiled(function, arguments, **options).memory_analysis() for options in ({}, {"constraints": "exact"})
    )
    assert ours.argument_size_in_bytes <= plain.argument_size_in_bytes
    assert ours.temp_size_in_bytes <= plain.temp_size_in_bytes


def test_constraints_are_exact_where_nothing_is_said():
    function, given, op, _ = PROGRAMS["columns of a product, summed"]
    arguments = [array(shape, *spec) for shape, spec in given]
    exact = compiled(function, arguments, constraints="exact")
    default = compiled(function, arguments, strict=True)
    assert shapes(default, op) == shapes(exact, op) != []


def test_constraints_may_be_wishes():
    """Each device computes its rows of the product and their sums, and sends nothing."""
    function, given, _, tile = PROGRAMS["columns of a product, summed"]
    arguments = [array(shape, *spec) for shape, spec in given]
    free = compiled(function, arguments, constraints="free")
    assert tile not in shapes(free, "dot")
    assert not re.search(r"(all|reduce|collective)-(reduce|gather|scatter|to-all|permute)\(", free.as_text())


def test_another_value_is_refused():
    with pytest.raises(ShardpassError, match="exact or free"), spj.use(constraints="maybe"):
        pass
