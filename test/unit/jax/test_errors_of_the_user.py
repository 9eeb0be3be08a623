"""A function of the user that JAX calls while it compiles raises: the user sees what JAX raises, and nothing else."""

import re
import warnings
from contextlib import nullcontext

import jax
import numpy as np
import pytest
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxlib.mlir import ir

import shardpass
import shardpass.jax as spj
from shardpass.diagnostics import ShardpassError

MESH = jax.make_mesh((4, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2, devices=jax.devices()[:8])
X = np.arange(128, dtype=np.float32).reshape(8, 16)
CALLS = []


class NotTodayError(Exception):
    """The user's own."""


def here(x, *spec):
    return jax.lax.with_sharding_constraint(x, NamedSharding(MESH, P(*spec)))


def refuse(*_):
    CALLS.append("refuse")
    raise NotTodayError("not today")


def inspecting(x):
    jax.debug.inspect_array_sharding(here(x + 1, "a", "b"), callback=refuse)
    return x * 2


def inspecting_in_a_loop(x):
    return jax.lax.scan(lambda c, _: (inspecting(c), None), x, None, length=2)[0]


def partitioned(partition, **more):
    double = custom_partitioning(lambda x: x * 2)
    double.def_partition(
        partition,
        infer_sharding_from_operands=more.get("infer", lambda mesh, args, result: args[0].sharding),
        propagate_user_sharding=more.get("propagate", lambda mesh, user: user.sharding),
        sharding_rule="i j -> i j",
    )
    return lambda x: double(x + 1)


def lowered(tile):
    def partition(mesh, args, result):
        CALLS.append("partition")
        return mesh, tile, args[0].sharding, (args[0].sharding,)

    return partitioned(partition)


def lookup(*_):
    CALLS.append("lookup")
    return {}["nothing"]


PROGRAMS = {
    "inspect": inspecting,
    "inspect in a loop": inspecting_in_a_loop,
    "partition": partitioned(refuse),
    "partition, a KeyError": partitioned(lookup),
    "what partition returns": lowered(refuse),
    "shapes that do not fit": lowered(lambda x: x[:1]),
}


def raised(function, x, hook):
    """The error, what the functions of the user were called, warnings and stats."""
    CALLS.clear()
    with hook, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        before = spj.stats()
        with pytest.raises(jax.errors.JaxRuntimeError) as error:
            jax.jit(lambda x: function(x))(x)
        after = spj.stats()
    reasons = {code for code, names in after["reasons"].items() if before["reasons"].get(code) != names}
    return error.value, list(CALLS), [w for w in told if issubclass(w.category, spj.FallbackWarning)], reasons


@pytest.mark.parametrize("function", PROGRAMS.values(), ids=PROGRAMS)
def test_an_error_is_jaxs(shardy, function):
    """The same class, XLA's words, the user's exception and lines in them, and as many calls."""
    x = jax.device_put(X, NamedSharding(MESH, P("a", "b")))
    theirs, their_calls, *_ = raised(function, x, nullcontext())
    ours, our_calls, warned, reasons = raised(function, x, spj.use())
    assert our_calls == their_calls
    assert not warned
    assert "SP199" not in reasons
    theirs, ours = str(theirs), str(ours)
    kinds = [re.match(r"INTERNAL: (Error calling inspect_sharding|custom_partitioner): ", e) for e in (theirs, ours)]
    assert kinds[0][0] == kinds[1][0]
    lines = [re.findall(rf'"{__file__}", line (\d+), in (refuse|lookup)', e) for e in (theirs, ours)]
    assert lines[0][-1:] == lines[1][-1:]
    for words in ("NotTodayError: not today", "KeyError: 'nothing'", "Mismatch in result shapes", "Suspected Python"):
        assert (words in theirs) == (words in ours)


def test_what_a_function_raised_is_forgotten(shardy):
    """XLA asks the same as shardpass, and is told the same; a later program calls the function."""

    def partition(mesh, args, result):
        CALLS.append("partition")
        if len(CALLS) == 1:
            raise NotTodayError("not today")
        return mesh, lambda x: x * 2, args[0].sharding, (args[0].sharding,)

    asked_otherwise = partitioned(partition)
    x = jax.device_put(X, NamedSharding(MESH, P("a", "b")))
    CALLS.clear()
    with spj.use(), pytest.raises(jax.errors.JaxRuntimeError):
        jax.jit(lambda x: asked_otherwise(x))(x)
    assert CALLS == ["partition"]
    # outside of the failed compile the function is the author's again
    np.testing.assert_array_equal(np.asarray(jax.jit(lambda x: asked_otherwise(x))(x)), (X + 1) * 2)
    assert CALLS == ["partition"] * 2


@pytest.mark.parametrize("which", ["infer", "propagate"])
def test_functions_that_need_no_answer(shardy, which):
    """Shardy asks for neither. In GSPMD's partitioner, where XLA asks, an error ends the process; shardpass goes on."""

    def partition(mesh, args, result):
        CALLS.append("partition")
        return mesh, lambda x: x * 2, args[0].sharding, (args[0].sharding,)

    function = partitioned(partition, **{which: refuse})
    x = jax.device_put(X, NamedSharding(MESH, P("a", "b")))
    CALLS.clear()
    with spj.use(strict=True):
        found = jax.jit(lambda x: function(x))(x)
    assert CALLS.count("partition") == 1
    assert not shardy or "refuse" not in CALLS
    np.testing.assert_array_equal(np.asarray(found), (X + 1) * 2)


def test_strict_names_the_error_of_partition(shardy):
    function = partitioned(refuse)
    x = jax.device_put(X, NamedSharding(MESH, P("a", "b")))
    with pytest.raises(ShardpassError, match=r"NotTodayError: not today \[SP309\]") as error, spj.use(strict=True):
        jax.jit(lambda x: function(x))(x)
    causes = [error.value]
    while causes[-1].__cause__ is not None:
        causes.append(causes[-1].__cause__)
    assert isinstance(causes[-1], NotTodayError)


def test_strict_leaves_the_error_of_an_inspection(shardy):
    x = jax.device_put(X, NamedSharding(MESH, P("a", "b")))
    error, calls, *_ = raised(inspecting, x, spj.use(strict=True))
    assert calls == ["refuse"]
    assert "NotTodayError: not today" in str(error)


def test_what_is_inspected_can_be_printed_and_parsed():
    x = jax.ShapeDtypeStruct(X.shape, X.dtype, sharding=NamedSharding(MESH, P("a", "b")))
    module = shardpass.run_pipeline(jax.jit(inspecting).lower(x).as_text(debug_info=True), "partition")
    with module.context:
        again = ir.Module.parse(str(module))
        (row,) = again.operation.attributes["shardpass.inspected"]
    assert f'"{__file__}":' in row["place"].value
