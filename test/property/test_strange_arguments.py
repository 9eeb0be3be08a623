"""Any object of Python, in any place of the public functions, leads to a result or to an error of shardpass's own."""

from __future__ import annotations

import array
import collections
import datetime
import decimal
import enum
import fractions
import io
import itertools
import pathlib
import random
import re
import types
from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock

import jax
import ml_dtypes
import numpy as np
import pytest
from jax.sharding import Mesh as JaxMesh
from jax.sharding import NamedSharding, PartitionSpec

import shardpass
from shardpass import Mesh, Sharding, ShardpassError, parse_sharding

CALLS = 1500
PROGRAM = """
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<8x4xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) -> tensor<8x4xf32> {
    %0 = stablehlo.negate %x : tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
"""


class Raises:
    """Whatever is asked of it raises what nobody expects."""

    def fail(self, *_: Any) -> Any:
        raise RuntimeError("no")

    __getattr__ = __repr__ = __str__ = __iter__ = __len__ = __bool__ = __index__ = __int__ = __hash__ = __eq__ = fail
    __float__ = __contains__ = __getitem__ = __fspath__ = __array__ = fail


class Text(str):
    __hash__ = None  # type: ignore[assignment]


class Number(int):
    __hash__ = None  # type: ignore[assignment]


class Broken:
    """Looks like a ``NamedSharding``, and is none."""

    spec, mesh = ("x",), types.SimpleNamespace(shape={"x": "many"})


class Colour(enum.Enum):
    RED = 1


def strange() -> list[Any]:
    """Some ninety objects; made anew, as some are used up."""
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    mesh = JaxMesh(np.array(jax.devices()[:2]), ("x",))
    return [
        None, True, False, 0, 1, -1, 2, 8, 2**31, 2**63, 2**200, -(2**200), 0.0, 1.5, -0.0, float("nan"),
        float("inf"), 1j, "", " ", "max", "none", "f32", "bf16", "best", "rink", "default", "h100", "{replicated}",
        "{devices=[2,1]<=[2]}", "{devices=[2", "P('x')", "\0", "\n", "\ud800", "a.json", "\0.json", "/", "x" * 10_000,
        "{manual}", "{unknown}", b"", b"f32", b"\xff\x00", bytearray(b"x"), memoryview(b"xy"), (), (8, 4), [8, 4],
        {8, 4}, frozenset({8}), {8: 4}, {}, [[]], [None], [1.5, "x"], [True], range(3), range(10**12),
        itertools.count(), iter([8, 4]), cyclic, (x for x in "ab"), collections.deque([8]),
        collections.OrderedDict(a=1), array.array("i", [8, 4]), np.float32, np.dtype("int8"), ml_dtypes.bfloat16,
        np.int64(8), np.float64(2.0), np.bool_(True), np.array(8), np.array([8, 4]), np.array([[8, 4]]),
        np.array(["a"]), np.array([None], dtype=object), np.zeros((0,)), object(), object, int, type, len, lambda: 0,
        Ellipsis, NotImplemented, Raises(), Raises, MagicMock(), Text("{replicated}"), Text("best"), Number(8),
        Broken(), Colour.RED, Colour, decimal.Decimal("1.5"), fractions.Fraction(8, 1), datetime.date(2020, 1, 1),
        slice(1, 2), re.compile("x"), io.StringIO("x"), pathlib.Path("/no/such/file"), pathlib.Path("/"),
        types.SimpleNamespace(shape=3), Exception("x"), Sharding.replicated(), Sharding.maximal(1),
        parse_sharding("{{replicated}, {manual}}"), Mesh((("x", 2),)), mesh, NamedSharding(mesh, PartitionSpec("x")),
        PartitionSpec("x"), jax.ShapeDtypeStruct((8,), "f4"),
    ]  # fmt: skip


def only_ours(call: Callable[..., Any], given: dict[str, Any]) -> bool:
    """Whether the call ended in an error, which is shardpass's."""
    try:
        call(**given)
    except ShardpassError as error:
        first = error.diagnostics[0]
        assert re.fullmatch("SP[0-9]{3}", first.code), first
        assert first.code != "SP199", first
        assert first.message
        return True
    return False


PLAN = {
    "shape": (8, 4), "element_type": "f32", "source": "{devices=[2,1]<=[2]}", "target": "{devices=[1,2]<=[2]}",
    "planner": "best", "num_devices": 2, "machine": "h100", "memory_limit": "max",
}  # fmt: skip
SMALL = {
    "parse_sharding": (shardpass.parse_sharding, {"text": "{replicated}", "strict": True}),
    "run_pipeline": (shardpass.run_pipeline, {"text_or_module": PROGRAM, "pipeline": "import", "filename": "x"}),
    "compile": (shardpass.compile, {"module": PROGRAM, "devices": None, "machine": None}),
}
PLANNED = {
    "explain": (
        shardpass.explain,
        {"f": PROGRAM, "mesh": None, "machine": "h100", "trips": None, "memory_limit": None, "effort": 0,
         "hints": False, "matmul_loops": "off"},
    ),
    "suggest": (
        shardpass.suggest, {"f": PROGRAM, "mesh": None, "memory_limit": None, "effort": 1, "machine": ""},
    ),
}  # fmt: skip


def test_plan_redistribution_with_strange_objects_in_one_or_more_places() -> None:
    rng, refused = random.Random(32), 0
    for _ in range(CALLS):
        pool = strange()
        places = rng.sample(sorted(PLAN), rng.choice((1, 1, 1, 2, 3, 8)))
        refused += only_ours(shardpass.plan_redistribution, PLAN | {place: rng.choice(pool) for place in places})
    assert CALLS * 2 // 3 < refused < CALLS


@pytest.mark.parametrize("place", sorted(PLAN))
def test_plan_redistribution_with_each_object_in_each_place(place: str) -> None:
    count = len(strange())
    assert count > 90
    refused = sum(only_ours(shardpass.plan_redistribution, PLAN | {place: strange()[k]}) for k in range(count))
    assert count // 2 < refused < count


@pytest.mark.parametrize("name", SMALL)
def test_functions_that_read_text(name: str) -> None:
    call, usual = SMALL[name]
    for place in usual:
        refused = sum(only_ours(call, usual | {place: strange()[k]}) for k in range(len(strange())))
        assert refused > 40


@pytest.mark.parametrize("name", PLANNED)
def test_functions_that_plan(name: str) -> None:
    """A function is lowered by JAX, which says itself what it does not take of a strange one."""
    call, usual = PLANNED[name]
    for place in usual:
        pool = strange()
        numbers = [k for k, one in enumerate(pool) if place != "f" or not callable(one)]
        refused = sum(only_ours(call, usual | {place: strange()[k]}) for k in numbers)
        assert refused > 40


def test_what_the_error_says() -> None:
    with pytest.raises(ShardpassError) as caught:
        shardpass.parse_sharding(None)  # type: ignore[arg-type]
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("SP140", "parse_sharding: the argument text is None of type NoneType")
    assert found.remedy.startswith("give text such as ")
    assert isinstance(caught.value, TypeError)
