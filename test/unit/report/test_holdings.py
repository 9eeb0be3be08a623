"""Memory before a program runs: small programs worked out by hand. XLA's statistics are the witness of real ones."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import shardpass
from shardpass.report.rows import MemoryFacts

MESH = AbstractMesh((8,), ("d",), axis_types=(AxisType.Auto,))
ROW = 64 * 4  # bytes of 64 numbers


def array(*shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def memory(f: Any, *given: Any, **more: Any) -> MemoryFacts:
    found = shardpass.explain(f, *given, mesh=MESH, effort=0, **more).memory
    assert found is not None
    return found


def test_arguments_and_results_are_tiles() -> None:
    found = memory(lambda x: x + 1.0, array(64, 64), in_shardings=P("d"), out_shardings=P("d"))
    assert (found.arguments, found.results, found.temporaries) == (8 * ROW, 8 * ROW, 0)


def test_what_is_fused_takes_no_memory() -> None:
    """A chain of elementwise ops between two products is one buffer: that of the first product, in place."""

    def f(x: Any, w: Any) -> Any:
        return (jnp.tanh(x @ w) * 2.0 + 1.0) @ w

    found = memory(f, array(64, 64), array(64, 64), in_shardings=(P("d"), P()))
    assert found.temporaries == 8 * ROW


def test_two_values_that_live_together_add_up() -> None:
    def f(x: Any, w: Any) -> Any:
        a = x @ w
        b = a @ w
        return a @ b.T

    found = memory(f, array(64, 64), array(64, 64), in_shardings=(P(), P()))
    assert found.temporaries == 2 * 64 * ROW  # a and b
    assert [(one.name, one.bytes) for one in found.holdings] == [("a", 64 * ROW), ("b", 64 * ROW)]


def test_a_gathered_weight_is_whole_while_it_is_used() -> None:
    def f(x: Any, w: Any) -> Any:
        return jnp.sum(x @ w)

    found = memory(f, array(512, 64), array(64, 64), in_shardings=(P("d"), P("d")))
    assert found.temporaries == 64 * ROW + 64 * ROW  # w, whole, and the product's tile of 64 rows


def test_a_loop_carries_in_place() -> None:
    """However long the scan, its carry is one buffer, and so is the product in its body."""

    def f(x: Any, w: Any) -> Any:
        return jnp.sum(jax.lax.scan(lambda h, _: (jnp.tanh(h @ w), None), x, None, length=9)[0])

    found = memory(f, array(64, 64), array(64, 64), in_shardings=(P("d"), P()))
    assert 8 * ROW <= found.temporaries <= 3 * 8 * ROW


def test_the_peak_names_its_line_and_what_is_alive() -> None:
    def f(x: Any, w: Any) -> Any:
        large = x @ w
        return jnp.sum(large @ large.T)

    found = memory(f, array(64, 64), array(64, 512), in_shardings=(P(), P()))
    assert found.peak_place.file == __file__
    assert found.holdings[0].name == "large"
    assert found.holdings[0].place.line == f.__code__.co_firstlineno + 1
    assert max(count for _, count in found.at) == found.total


@pytest.mark.parametrize(("limit", "fits"), [("1GiB", True), ("4KiB", False)])
def test_a_limit_says_what_does_not_fit(limit: str, fits: bool) -> None:
    def f(x: Any, w: Any) -> Any:
        return jnp.sum(jnp.tanh(x @ w) @ w)

    given = (array(64, 64), array(64, 64))
    found = shardpass.explain(f, *given, mesh=MESH, in_shardings=(P("d"), P()), memory_limit=limit)
    assert found.does_not_fit is not fits
    assert ("does not fit 4.0 KiB" in str(found)) is not fits
    assert ("x @ w" in str(found)) is not fits or fits


def test_the_arrays_of_a_program_by_xla_are_listed() -> None:
    """Of 64 x 64 floats, 16 KiB, the weights are whole on each device: the largest array of both programs."""

    def f(x: Any, w: Any) -> Any:
        return jnp.sum(jnp.tanh(x @ w) @ w)

    given = (array(64, 64), array(64, 64))
    limited = {"mesh": MESH, "in_shardings": (P("d"), P()), "memory_limit": "4KiB"}
    assert "too much; at the peak\n" in str(shardpass.explain(f, *given, **limited))
    by_xla = shardpass.explain(f, *given, **limited, partitioner="xla")
    assert "too much; at the peak\n  16.0 KiB  w f32[64,64]\n" in str(by_xla)
    assert by_xla.memory is not None
    assert (by_xla.memory.holdings[0].name, by_xla.memory.holdings[0].bytes) == ("w", 64 * 64 * 4)
