"""How often ops of a folded program run, and for how many values they take copies."""

from __future__ import annotations

import pytest
from support.programs import read

from shardpass.cost.machine import IDEAL
from shardpass.planning.decide.candidates import Search
from shardpass.planning.decide.search import decide
from shardpass.planning.plan.planner import plan_program


def stack(count: int) -> str:
    """FSDP: layers whose weights, in rows, are gathered for a batch in rows, all over 8 devices."""
    rows = '{mhlo.sharding = "{devices=[8,1]<=[8]}"}'
    weight, batch = "tensor<64x64xf32>", "tensor<4096x64xf32>"
    weights = ", ".join(f"%w{i}: {weight} {rows}" for i in range(count))
    body = "\n".join(
        f"""%d{i} = stablehlo.dot_general %x{i}, %w{i}, contracting_dims = [1] x [0] : ({batch}, {weight}) -> {batch}
        %x{i + 1} = stablehlo.tanh %d{i} : {batch}"""
        for i in range(count)
    )
    return (
        f"func.func @main({weights}, %x0: {batch} {rows}) -> ({batch} {rows}) {{ {body} return %x{count} : {batch} }}"
    )


@pytest.mark.parametrize("count", [3, 12, 48])
def test_a_weight_that_stands_for_many_is_gathered_for_each(count: int) -> None:
    """The least sum of the tables is that of the plan.

    Of each layer a gather of 7/8 of a weight, a product, and a tanh that reads the product and writes as much.
    """
    search = Search(read(stack(count)), {}, IDEAL)
    gather, product, tanh = (7 * 64 * 64 * 4 // 8 + 512) / 50e9, 2 * 512 * 64 * 64 / 6.4e12, 2 * 4 * 512 * 64 / 1e12
    search.run()
    assert search.solved is not None
    assert search.solved.price == pytest.approx(count * (gather + product + tanh))
    plan = plan_program(read(stack(count)), decide(read(stack(count)), {}, 1).shardings)
    assert plan.price == pytest.approx(search.solved.price)
    assert plan.bytes_received == count * 7 * 64 * 64 * 4 // 8


def test_an_op_that_takes_one_of_many_moves_that_one() -> None:
    """Four tables are one value of the folded program; what is made of them stands in four places of one array."""
    table, joined = "tensor<64x64xf32>", "tensor<256x64xf32>"
    tables = ", ".join(f'%t{i}: {table} {{mhlo.sharding = "{{devices=[8,1]<=[8]}}"}}' for i in range(4))
    steps = (("a", "abs", "t"), ("b", "tanh", "a"), ("c", "sine", "b"))
    chain = "\n".join(f"%{to}{i} = stablehlo.{op} %{of}{i} : {table}" for i in range(4) for to, op, of in steps)
    parts, types = ", ".join(f"%c{i}" for i in range(4)), ", ".join([table] * 4)
    concatenation = f"%all = stablehlo.concatenate {parts}, dim = 0 : ({types}) -> {joined}"
    program = read(f"func.func @main({tables}) -> {joined} {{ {chain} {concatenation} return %all : {joined} }}")
    search = Search(program, {}, IDEAL)
    (value,) = {search.folded.of[argument] for argument in program.body.arguments}
    lookups = [op.number for op in search.folded.program.body.ops if value in op.operands]
    assert [search.counts.often(value, lookups[:count]) for count in (1, 2, 4)] == [1, 2, 4]
