"""shardpass-join: joined collectives give what NumPy says of each alone, on XLA and on the reference interpreter."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

import shardpass
from shardpass.ir.collectives import collectives
from shardpass.runtime import interpret

DEVICES = 4
GROUPS = [[0, 2], [1, 3]]
PAIRS = [[0, 1], [1, 2], [3, 0]]
TYPES = {"f32": np.float32, "i32": np.int32, "bf16": None, "complex<f32>": np.complex64}
REDUCER = """({{
    ^bb0(%p: tensor<{0}>, %q: tensor<{0}>):
      %s = stablehlo.{1} %p, %q : tensor<{0}>
      stablehlo.return %s : tensor<{0}> }})"""


def collective(kind: str, index: int, operand: str, result: str, element: str, combiner: str, dims: list[int]) -> str:
    """``%r<index>``, of ``%a<index>``; dims: of all_gather, reduce_scatter, or split and concat of all_to_all."""
    channel = f"channel_handle = #stablehlo.channel_handle<handle = {index + 1}, type = 1>"
    groups = f"replica_groups = dense<{GROUPS}> : tensor<2x2xi64>"
    first, second = (dims * 2)[:2] or (0, 0)
    said, region = {
        "all_gather": (f"all_gather_dim = {first} : i64, {groups}, use_global_device_ids", ""),
        "all_reduce": (f"{groups}, use_global_device_ids", REDUCER.format(element, combiner)),
        "reduce_scatter": (
            f"scatter_dimension = {first} : i64, {groups}, use_global_device_ids",
            REDUCER.format(element, combiner),
        ),
        "all_to_all": (
            f"split_dimension = {first} : i64, concat_dimension = {second} : i64, split_count = 2 : i64, {groups}",
            "",
        ),
        "collective_permute": (f"source_target_pairs = dense<{PAIRS}> : tensor<3x2xi64>", ""),
    }[kind]
    return f'%r{index} = "stablehlo.{kind}"(%a{index}) <{{{channel}, {said}}}> {region} : ({operand}) -> {result}'


def module_of(rows: list[dict[str, Any]]) -> str:
    """One collective a row. Whole arrays are the tiles of all devices, stacked along the first dimension."""
    arguments, results, body = [], [], []
    for i, row in enumerate(rows):
        inner, outer = (f"tensor<{'x'.join(map(str, shape))}x{row['element']}>" for shape in (row["from"], row["to"]))

        def told(shape: tuple[int, ...], element: str = row["element"]) -> str:
            whole = "x".join(map(str, (DEVICES * shape[0], *shape[1:])))
            split = ",".join(["4", *["1"] * (len(shape) - 1)])
            return (
                f'{{mhlo.sharding = "{{manual}}", shardpass.global_type = tensor<{whole}x{element}>, '
                f'shardpass.sharding = "{{devices=[{split}]<=[4]}}"}}'
            )

        arguments.append(f"%a{i}: {inner} {told(row['from'])}")
        results.append((f"%r{i}", outer, told(row["to"])))
        body.append(collective(row["kind"], i, inner, outer, row["element"], row["combiner"], row["dims"]))
    names, kinds = (", ".join(r[k] for r in results) for k in (0, 1))
    returned = ", ".join(f"{kind} {said}" for _, kind, said in results)
    return (
        f"module attributes {{mhlo.num_partitions = {DEVICES} : i32, mhlo.num_replicas = 1 : i32}} {{\n"
        f"func.func @main({', '.join(arguments)}) -> ({returned}) {{\n"
        + "\n".join(body)
        + f"\nreturn {names} : {kinds}\n}}}}"
    )


def meant(row: dict[str, Any], tiles: list[np.ndarray]) -> list[np.ndarray]:
    """The results on all devices, as the StableHLO specification says."""
    out: list[Any] = [None] * DEVICES
    if row["kind"] == "collective_permute":
        out = [np.zeros_like(t) for t in tiles]
        for source, target in PAIRS:
            out[target] = tiles[source]
        return out
    joins = {"add": np.add, "maximum": np.maximum, "multiply": np.multiply}[row["combiner"]]
    for group in GROUPS:
        mine = [tiles[d] for d in group]
        for k, device in enumerate(group):
            if row["kind"] == "all_gather":
                out[device] = np.concatenate(mine, row["dims"][0])
            elif row["kind"] == "all_reduce":
                out[device] = joins(*mine)
            elif row["kind"] == "reduce_scatter":
                out[device] = np.split(joins(*mine), 2, row["dims"][0])[k]
            else:
                parts = [np.split(tile, 2, row["dims"][0])[k] for tile in mine]
                out[device] = np.concatenate(parts, row["dims"][1])
    return out


def row(
    kind: str, shape: tuple[int, ...], dims: list[int], element: str = "f32", combiner: str = "add"
) -> dict[str, Any]:
    to = list(shape)
    if kind == "all_gather":
        to[dims[0]] *= 2
    if kind in ("reduce_scatter", "all_to_all"):
        to[dims[0]] //= 2
    if kind == "all_to_all":
        to[dims[1]] *= 2
    return {"kind": kind, "from": shape, "to": tuple(to), "dims": dims, "element": element, "combiner": combiner}


def check(rows: list[dict[str, Any]], joined: int) -> None:
    """Runs the module with its collectives joined, of which ``joined`` must be left."""
    module = shardpass.run_pipeline(module_of(rows), "builtin.module(shardpass-join{all-reduces})")
    assert len(collectives(module)) == joined
    rng = np.random.default_rng(0)
    given = [
        rng.integers(-3, 4, (DEVICES * r["from"][0], *r["from"][1:])).astype(TYPES[r["element"]] or np.float32)
        for r in rows
    ]
    if any(r["element"] == "bf16" for r in rows):
        import ml_dtypes

        given = [
            a.astype(ml_dtypes.bfloat16) if r["element"] == "bf16" else a for a, r in zip(given, rows, strict=True)
        ]
    expected = [np.concatenate(meant(r, np.split(a, DEVICES))) for r, a in zip(rows, given, strict=True)]
    for found in (shardpass.compile(module)(*given), interpret(module, *given)):
        for index, (one, other) in enumerate(zip(found, expected, strict=True)):
            np.testing.assert_array_equal(np.asarray(one), other, err_msg=f"result {index}")


def test_all_gathers_along_any_dimension():
    shapes = [((2, 2), [0]), ((2, 3), [1]), ((3,), [0]), ((1, 2, 3), [2]), ((1, 2, 3), [1])]
    check([row("all_gather", shape, dims) for shape, dims in shapes], 1)


@pytest.mark.parametrize("kind", ["all_gather", "collective_permute", "all_to_all"])
def test_what_is_moved_travels_as_bits(kind):
    """Of 32 bits: floats and integers together; of 16 bits and complex numbers each apart."""
    elements = ["f32", "i32", "bf16", "complex<f32>", "i32", "complex<f32>", "bf16"]
    check([row(kind, (2, k + 1), [0, 1], element) for k, element in enumerate(elements)], 3)


@pytest.mark.parametrize("element", TYPES)
def test_all_reduces(element):
    check([row("all_reduce", shape, [], element) for shape in ((2, 4), (1,), (3, 1, 2))], 1)


def test_all_reduces_of_two_combiners_and_types_stay_apart():
    kinds = [("f32", "add"), ("f32", "maximum"), ("i32", "add"), ("f32", "add"), ("i32", "add"), ("f32", "maximum")]
    check([row("all_reduce", (3, k + 1), [], *kind) for k, kind in enumerate(kinds)], 3)


def test_reduce_scatters_along_any_dimension():
    rows = [((4, 3), [0]), ((2, 4), [1]), ((1, 6, 2), [1]), ((2,), [0])]
    check([row("reduce_scatter", shape, dims) for shape, dims in rows], 1)


def test_all_to_alls_between_any_dimensions():
    rows = [((4, 3), [0, 1]), ((2, 4), [1, 0]), ((2, 3, 4), [0, 2]), ((2, 3, 4), [2, 1]), ((4, 2), [0, 0])]
    check([row("all_to_all", shape, dims) for shape, dims in rows], 1)


def test_permutes_of_the_same_pairs():
    check([row("collective_permute", shape, []) for shape in ((2, 4), (1,), (1, 3, 2))], 1)


def test_what_is_joined_holds_no_more_than_it_may():
    sizes = [8, 8, 8, 8]
    rows = [row("all_reduce", (size,), []) for size in sizes]
    module = shardpass.run_pipeline(module_of(rows), "builtin.module(shardpass-join{most=64 all-reduces})")
    uses = collectives(module)
    assert len(uses) == 2
    assert sum(u.bytes_received for u in uses) == sum(4 * prod(r["from"]) for r in rows)  # 2 * (2 - 1) / 2 of each


def test_all_reduces_are_left_to_xla_unless_asked_for():
    text = module_of([row("all_reduce", (8,), []), row("all_reduce", (3,), [])])
    module = shardpass.run_pipeline(text, "builtin.module(shardpass-join)")
    assert [use.kind for use in collectives(module)] == ["all_reduce", "all_reduce"]
    hlo = shardpass.compile(
        module
    ).hlo_text()  # XLA's own joining is why they are left: where it ends, change the default
    assert sum(" all-reduce(" in line for line in hlo.splitlines()) == 1


def test_nothing_to_join_is_nothing_changed():
    text = module_of([row("all_reduce", (8,), []), row("all_gather", (8,), [0])])
    before = str(shardpass.run_pipeline(text, "builtin.module(cse)"))
    assert str(shardpass.run_pipeline(text, "builtin.module(shardpass-join)")) == before


def test_collectives_of_no_elements_stay_apart():
    text = module_of(
        [row(kind, (0, 4), [1]) for kind in ("all_gather", "all_gather", "reduce_scatter", "reduce_scatter")]
    )
    before = str(shardpass.run_pipeline(text, "builtin.module(cse)"))
    assert str(shardpass.run_pipeline(text, "builtin.module(shardpass-join)")) == before
