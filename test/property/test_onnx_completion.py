"""Random ONNX models with random specs, right and wrong: the checker says something sensible of each.

Laws. Nothing but diagnostics comes out. A model without errors, completed, has none under ``--strict`` either: every
input then has its spec, so nothing is left to be repartitioned. Completing a completed model changes nothing. And each
shard of an inferred output is on devices that hold what it is computed from: the node is evaluated shard by shard.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from support import daily  # noqa: E402
from support.onnx_models import N, model, split  # noqa: E402

from shardpass.diagnostics import Severity  # noqa: E402
from shardpass.onnx import Layout, check_model, completed_model, read_model  # noqa: E402

MODELS = 300
OPS = ("Add", "Mul", "Abs", "Max", "MatMul", "Gemm", "ReduceSum", "Relu", "LayerNormalization", "Where")
SHAPES = ([4, 4], [4, 1], [1, 4], [4], [2, 4, 4], [1, 1])


def random_spec(rng: random.Random, rank: int) -> str:
    dims = [(axis, rng.choice([1, 2, 2, 4])) for axis in range(rank) if rng.random() < 0.4]
    if rng.random() < 0.05:
        dims.append((rank, 2))  # out of range
    count = int(np.prod([shards for _, shards in dims], dtype=int))
    if rng.random() < 0.05:
        count += 1
    if rng.random() < 0.5:
        held: list[Any] = [rng.randrange(4) for _ in range(count)] if count > 4 else rng.sample(range(4), count)
    else:
        held = [sorted(rng.sample(range(4), rng.randint(1, 4))) for _ in range(count)]
        held = held if rng.random() < 0.3 else [[0, 1, 2, 3][k::count] or [0] for k in range(count)]
    return split(held, *dims)


def random_model(seed: int) -> Any:
    rng = random.Random(seed)
    shapes = {f"x{k}": rng.choice(SHAPES) for k in range(4)}
    nodes, ranks = [], {name: len(shape) for name, shape in shapes.items()}
    if rng.random() < 0.7:  # shapes that fit more often
        shapes = {name: [4, 4] for name in shapes}
        ranks = dict.fromkeys(shapes, 2)
    for k in range(rng.randint(1, 4)):
        op = rng.choice(OPS)
        count = {"Abs": 1, "Relu": 1, "ReduceSum": 1, "Where": 3}.get(op, 2)
        inputs = [rng.choice(list(ranks)) for _ in range(count)]
        specs = {name: random_spec(rng, ranks[name]) for name in inputs if rng.random() < 0.5}
        nodes.append(N(op, inputs, [f"y{k}"], specs, {"keepdims": rng.randint(0, 1)} if op == "ReduceSum" else {}))
        ranks[f"y{k}"] = ranks[inputs[0]]
    return model(nodes, shapes)


def errors(report: Any) -> list[Any]:
    return [d for d in report.findings if d.severity is Severity.ERROR]


def test_a_completed_model_needs_nothing_more() -> None:
    sound = 0
    seeds = daily.drawn(range(MODELS), MODELS // 3)
    for seed in seeds:
        read = read_model(random_model(seed).SerializeToString(), "m.onnx")
        report = check_model(read)
        if errors(report):
            continue
        sound += 1
        full = completed_model(read, report)
        again = read_model(full, "m.onnx")
        strictly = [d for d in errors(check_model(again, strict=True)) if d.code != "SP752"]
        assert not strictly, f"seed {seed}: {strictly[0]}"
        assert completed_model(again, check_model(again)) == full, f"seed {seed}"
    assert len(seeds) / 4 < sound < len(seeds)


def shard(array: np.ndarray, layout: Layout, place: tuple[int, ...]) -> np.ndarray:
    cut = tuple(
        slice(k * size // count, (k + 1) * size // count)
        for k, size, count in zip(place, array.shape, layout.counts, strict=True)
    )
    return array[cut]


@pytest.mark.parametrize("op", ["Add", "MatMul"])
def test_devices_of_an_output_shard_can_compute_it(op: str) -> None:
    """A device is given what it holds; the union over a reduction's devices must make each shard of the output."""
    tried, seeds = 0, daily.drawn(range(400), 100)
    for seed in seeds:
        rng = random.Random(f"{op} {seed}")
        shapes = [rng.choice([[4, 4], [4, 1], [1, 4]]) if op == "Add" else [4, 4] for _ in range(2)]
        specs = {name: random_spec(rng, 2) for name in "AB"}
        read = read_model(model([N(op, "AB", "C", specs)], dict(zip("AB", shapes, strict=True))).SerializeToString())
        report = check_model(read)
        placed = report.completed[0].nodes[0]
        if errors(report) or len(placed) < 3 or not all(one.layout.holders for one in placed.values()):
            continue
        tried += 1
        a, b = (np.random.default_rng(k).integers(1, 9, shape).astype(float) for k, shape in enumerate(shapes))
        one, other, result = (placed[name].layout for name in "ABC")
        whole = a + b if op == "Add" else a @ b
        for place in result.shards():
            partial = np.zeros_like(shard(whole, result, place))
            held = result.at(place)
            terms = _terms(op, one, other, place)
            for first, second in terms:
                common = one.at(first) & other.at(second)  # type: ignore[operator]
                assert common
                assert common <= held
                x, y = shard(a, one, first), shard(b, other, second)
                partial = partial + (x + y if op == "Add" else x @ y)
            np.testing.assert_array_equal(partial, shard(whole, result, place))
    assert tried > len(seeds) / 20


def _terms(
    op: str, one: Layout, other: Layout, place: tuple[int, ...]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The shards of both inputs that an output shard is made of, and summed over."""
    if op == "MatMul":
        return [((place[0], k), (k, place[1])) for k in range(one.counts[1])]
    first, second = (
        tuple(min(k, count - 1) for k, count in zip(place, layout.counts, strict=True)) for layout in (one, other)
    )
    return [(first, second)]
