"""Random programs, partitioned and run on many devices, give what one device gives (``tools/fuzz/partition.py``)."""

from __future__ import annotations

from collections import Counter

from support import daily

from tools.fuzz import partition as fuzz
from tools.fuzz import random_program as generator
from tools.fuzz.examine import compare, examine, prices
from tools.fuzz.programs import Node, Program, every_node
from tools.fuzz.smaller import smaller
from tools.stablehlo_text import body
from tools.values import Fact, Type

PROGRAMS, TODAY = 60, 8
MOST_SEEDS = 8000  # each op is in about one program of a thousand, or in more
FIRST_SEED = 900_000  # none of those that the long runs begin with


def test_programs_give_what_one_device_gives() -> None:
    seeds = daily.drawn(range(FIRST_SEED, FIRST_SEED + PROGRAMS), TODAY)
    programs = [generator.random_program(seed, 6) for seed in seeds]
    outcomes = list(fuzz.run_all(programs))
    failed = [f"seed {o.seed}: {o.kind}: {o.detail}" for o in outcomes if o.kind != "ok"]
    assert not failed, "\n".join(failed)
    assert len(outcomes) == len(programs)


def test_programs_are_the_same_for_the_same_seed() -> None:
    assert generator.random_program(3) == generator.random_program(3)
    assert generator.random_program(3) != generator.random_program(4)


def test_every_op_that_is_not_refused_is_made() -> None:
    """An op that the registry gains must get an emitter, or a reason why it has none."""
    from shardpass.ops.registry import table

    refused = {name for name, entry in table().items() if entry.note.startswith("refused")}
    wanted = set(table()) - refused - set(generator.NEVER_MADE)
    made: Counter[str] = Counter()
    for seed in range(MOST_SEEDS):
        made.update(set(generator.ops_of(generator.random_program(seed))))
        if wanted <= set(made):
            break
    assert sorted(wanted - set(made)) == []
    assert sorted(set(generator.NEVER_MADE) & set(made)) == []
    assert all(generator.NEVER_MADE.values())


def test_programs_nest_and_have_regions_and_functions() -> None:
    programs = [generator.random_program(seed) for seed in range(400)]
    nodes = [node for program in programs for node in every_node(program.nodes)]
    inner = [node for outer in nodes for block in outer.blocks for node in every_node(block.nodes)]
    assert {"stablehlo.while", "stablehlo.if", "stablehlo.case", "func.call"} <= {node.name for node in inner}
    assert any("last_tile_dims={manual" in line for node in nodes for line in node.lines)
    assert any('"{manual}"' in line for node in nodes for line in node.lines)
    texts = [program.text() for program in programs]
    assert sum("sdy.sharding" in text for text in texts) > 50
    assert any("sdy.manual_computation" in text for text in texts)


def test_programs_are_split_and_communicate() -> None:
    """The generator would prove nothing if every program came out replicated."""
    import shardpass
    from shardpass.diagnostics import collect

    split = communicating = 0
    for seed in range(FIRST_SEED, FIRST_SEED + 12):
        program = generator.random_program(seed, 6)
        with collect(), prices(program.eager):
            text = str(shardpass.run_pipeline(program.text(), "partition"))
        split += 'shardpass.sharding = "{devices=' in text
        communicating += '"stablehlo.all_' in text or "collective_permute" in text
        if split > 6 and communicating > 3:
            return
    raise AssertionError(f"of 12 programs {split} are split, {communicating} communicate")


def test_a_wrong_result_is_seen_and_shrunk() -> None:
    """A program whose whole and partitioned forms differ: what the comparison says of it, and smaller programs."""
    import numpy as np

    fact = Fact(generator.random_program(0).facts()[0].type)
    want = np.zeros((2, 2), np.float32)
    got = want.copy()
    got[1, 0] = 1
    assert compare(want, want, fact) == ""
    assert compare(want, got, fact) == "1 of 4 elements, first at [1, 0]: 1.0, not 0.0"


def test_smaller_programs_are_programs() -> None:
    """Also those with less in a body; each is valid MLIR, as long as its ops have what they need."""
    from shardpass.ir.context import parse_module

    seen = 0
    for seed in range(FIRST_SEED, FIRST_SEED + 60):
        program = generator.random_program(seed)
        if not any(node.blocks for node in program.nodes):
            continue
        whole = len(list(every_node(program.nodes)))
        for less in smaller(program)[::5]:
            assert len(list(every_node(less.nodes))) <= whole
            parse_module(less.text())
            seen += 1
    assert seen > 20


def test_where_xla_itself_is_wrong_the_interpreter_decides() -> None:
    """XLA on one device splits the reduction of a concatenation and adds the initial value once for each part."""
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
    assert examine(program).kind in ("xla", "ok")  # ok once XLA is mended
