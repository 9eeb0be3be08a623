"""tools/bench/price.py: which pairs count, what is said of them, and that a program can be measured."""

from __future__ import annotations

import json

import pytest

import shardpass
from shardpass.cost.machine import find_machine
from tools.bench import price, price_measure
from tools.bench.price import Row
from tools.bench.price_measure import Timed, Way, modelled

SUM = """
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x16xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"},
                  %w: tensor<16x32xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<8x32xf32> {mhlo.sharding = "{replicated}"}) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
    return %0 : tensor<8x32xf32>
  }
}
"""


def plan(way: str, modelled: float, seconds: float) -> Timed:
    return Timed(way, modelled, modelled / 2, 3, 2048, seconds, 2 * seconds, (seconds, seconds))


def test_pairs_of_one_program_that_differ() -> None:
    rows = [
        Row("a", (plan("p", 1.0, 1.0), plan("q", 2.0, 3.0), plan("r", 0.5, 1.1))),  # q/p, q/r; r/p differ by 10%
        Row("b", (plan("p", 1.0, 1.0), plan("q", 0.5, 2.0))),  # the wrong order
        Row("c", (plan("p", 1.0, 1.0), plan("q", 1.0, 1.2))),  # one price for both is no order
        Row("d", reason="ended the process (status -6)"),
    ]
    found = price.pairs(rows)
    assert [(pair.name, pair.slow.way, pair.fast.way, pair.right) for pair in found] == [
        ("a", "q", "p", True),
        ("a", "q", "r", True),
        ("b", "q", "p", False),
        ("c", "q", "p", False),
    ]
    assert price.share(found) == 0.5
    lines = list(price.summary(rows))
    assert lines[0] == "3 programs, 7 plans"
    assert lines[1].startswith("spread: 2.00 ")
    assert "differ by more than 15%: 4; the model has the order of 2 (50%; 85% are asked for)" in lines[2]
    assert "in the wrong order: 2" in lines
    assert "  b: (q) takes 2.00 times as long as (p), modelled 0.50" in lines
    assert lines[-1] == "d: not measured: ended the process (status -6)"
    assert not price.passed(rows)
    assert price.passed([Row("a", rows[0].plans)])
    assert not price.passed([Row("a", rows[0].plans), rows[3]])


def test_times_that_are_far_from_the_model_are_named() -> None:
    rows = [Row(str(k), (plan("p", 1.0, 1.0),)) for k in range(8)] + [Row("far", (plan("p", 1.0, 9.0),))]
    lines = list(price.summary(rows))
    assert lines[3].startswith("measured over modelled: 1.28 ")  # 9 ** (1/9)
    assert lines[3].endswith(": 1")
    assert lines[4] == "  far (p): 9.00"


def test_a_difference_of_one_half_of_the_runs_is_none() -> None:
    steady = Timed("p", 1.0, 0.5, 1, 64, 1.0, 1.0, (1.0, 1.0))
    disturbed = Timed("q", 0.5, 0.5, 1, 64, 1.2, 1.5, (2.0, 1.1))
    assert price.pairs([Row("a", (steady, disturbed))]) == []
    assert price_measure.halves([3.0, 2.0, 5.0, 4.0]) == (2.0, 4.0)
    assert price_measure.halves([3.0, 2.0, 1.0]) == (2.0, 1.0)
    assert price_measure.halves([3.0]) == (3.0, 3.0)


def test_some_programs_of_all() -> None:
    names = [str(k) for k in range(10)]
    some = price.drawn(names, 3)
    assert some == price.drawn(names, 3) == sorted(some)
    assert len(set(some)) == 3
    assert price.drawn(names, None) == price.drawn(names, 20) == names


def test_there_are_programs_enough() -> None:
    names = price_measure.programs()
    assert len(names) > 60
    assert {name.partition(".")[0] for name in names} == {"models", "underspecified", "examples"}


def test_what_is_modelled_is_what_is_built() -> None:
    """Partial sums of a 8x32 array: an all_reduce over 4 devices, of 1,024 bytes; and a product of an 8x4 by a 4x32."""
    cpu = find_machine("cpu")
    module = shardpass.run_pipeline(SUM, "partition{effort=0 machine=cpu}")
    plan = shardpass.explain(SUM, machine="cpu", effort=0).plan
    seconds, communication, collectives, received = modelled(module, plan)
    assert (collectives, received) == (1, 1536)  # twice three quarters of 1,024
    link = cpu.links[0]
    assert communication == pytest.approx(link.latency + received / link.bandwidth)
    points = 8 * 4 * 32
    assert seconds - communication >= points / cpu.rate("f32") / 2  # of multiplications, or of multiply-adds


def test_ways_that_build_the_same_count_once() -> None:
    """Of ``SUM`` all is fixed, so that every way makes one plan; of an example that is left open, ways differ."""
    ways = [way for way, _, _ in price_measure._different(SUM, 3)]
    assert ways == [Way("cpu")]
    text, arguments = price_measure.programs()["examples.transformer_block"]()
    assert arguments is None
    assert [way for way, _, _ in price_measure._different(text, 2)] == list(price_measure.WAYS[:2])


def test_a_program_is_measured_in_a_child(tmp_path, capsys) -> None:
    out = tmp_path / "out.json"
    command = ["examples.shard_map_matmul_reduce", "--runs", "1", "--seconds", "0", "--plans", "1", "--json", str(out)]
    assert price.main(command) == 0  # one plan has no pair
    (row,) = [price.row_of(data) for data in json.loads(out.read_text())]
    assert row.name == "examples.shard_map_matmul_reduce_scatter"
    assert not row.reason
    (timed,) = row.plans
    assert timed.seconds > 0
    assert timed.modelled >= timed.communication > 0  # a reduce_scatter
    assert price.main(["--read", str(out)]) == 0
    told = capsys.readouterr().out
    assert "1 programs, 1 plans" in told
    assert "no pair of plans of one program differs by more than 15%" in told


def test_wrong_usage(tmp_path, capsys, monkeypatch) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text('[{"plans": []}]')
    for command, told in (
        (["nothing"], "no program is named nothing"),
        (["--read", str(bad)], "--read: 'name'"),
    ):
        with pytest.raises(SystemExit):
            price.main(command)
        assert told in capsys.readouterr().err
