"""Random programs, partitioned and run on many devices, give what one device gives (``tools/fuzz_partition.py``)."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = 60
FIRST_SEED = 900_000  # none of those that the long runs begin with


@pytest.fixture(scope="module")
def fuzz() -> Any:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        yield importlib.import_module("fuzz_partition")
    finally:
        sys.path.remove(str(ROOT / "tools"))


def test_programs_give_what_one_device_gives(fuzz: Any) -> None:
    programs = [fuzz.random_program(FIRST_SEED + i, 6) for i in range(PROGRAMS)]
    outcomes = list(fuzz.run_all(programs))
    failed = [f"seed {o.seed}: {o.kind}: {o.detail}" for o in outcomes if o.kind != "ok"]
    assert not failed, "\n".join(failed)
    assert len(outcomes) == PROGRAMS


def test_programs_are_the_same_for_the_same_seed(fuzz: Any) -> None:
    assert fuzz.random_program(3) == fuzz.random_program(3)
    assert fuzz.random_program(3) != fuzz.random_program(4)


def test_programs_are_split_and_communicate(fuzz: Any) -> None:
    """The generator would prove nothing if every program came out replicated."""
    import shardpass
    from shardpass.diagnostics import collect

    texts = []
    for seed in range(FIRST_SEED, FIRST_SEED + 12):
        program = fuzz.random_program(seed, 6)
        with collect(), fuzz.prices(program.eager):
            texts.append(str(shardpass.run_pipeline(program.text(), "partition")))
    assert sum('shardpass.sharding = "{devices=' in t for t in texts) > 6
    assert sum('"stablehlo.all_' in t or "collective_permute" in t for t in texts) > 3


def test_a_wrong_result_is_seen_and_shrunk(fuzz: Any) -> None:
    """A program whose whole and partitioned forms differ: what the comparison says of it, and smaller programs."""
    import numpy as np

    fact = fuzz.Fact(fuzz.random_program(0).facts()[0].type)
    want = np.zeros((2, 2), np.float32)
    got = want.copy()
    got[1, 0] = 1
    assert fuzz.compare(want, want, fact) == ""
    assert fuzz.compare(want, got, fact) == "1 of 4 elements, first at [1, 0]: 1.0, not 0.0"
    program = fuzz.random_program(FIRST_SEED + 1, 6)
    for smaller in fuzz.smaller(program):
        assert len(smaller.nodes) <= len(program.nodes)
        assert smaller.text().startswith("module")


def test_where_xla_itself_is_wrong_the_interpreter_decides(fuzz: Any) -> None:
    """XLA on one device splits the reduction of a concatenation and adds the initial value once for each part."""
    from fuzz_joins import body
    from fuzz_programs import Fact, Node, Program, Type

    whole, tall, one = Fact(Type((7, 7), "f32")), Fact(Type((21, 7), "f32")), Fact(Type((), "f32"), 1000)
    program = Program(
        devices=4,
        arguments=((whole, "{devices=[2,2]<=[4]}"),),
        nodes=(
            Node("stablehlo.constant", (), (one,), "value = dense<5.0> : tensor<f32>"),
            Node("stablehlo.concatenate", (0, 0, 0), (tall,), "dimension = 0 : i64"),
            Node("stablehlo.reduce", (2, 1), (one,), "dimensions = array<i64: 0, 1>", body("f32", "add")),
        ),
        results=((3, ""),),
    )
    assert fuzz.examine(program).kind in ("xla", "ok")  # ok once XLA is mended
