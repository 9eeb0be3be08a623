"""The table of underspecified programs: ratios and criteria by hand, pages, and a child that measures one."""

import json
import math
import sys
from dataclasses import asdict

import pytest

from tools.bench.peers import ALL_WAYS, Child
from tools.bench.underspecified import FormedPrograms, main, merged, pipeline
from tools.bench.underspecified_plan import planned
from tools.bench.underspecified_programs import FORMS, PROGRAMS
from tools.bench.underspecified_report import Row, cells, markdown, read_rows, summary

NAMES = list(PROGRAMS)


def answer(size=0, status="right", memory=1024):
    return {
        "status": status,
        "bytes": size,
        "collectives": 1,
        "temp": memory // 2,
        "output": memory // 2,
        "unknown_loops": 0,
        "reason": "",
    }


def row(free, expert, name=NAMES[0]):
    """Answers of shardpass, gspmd, xla and shardy, free and of an expert."""
    forms = zip(FORMS, (free, expert), strict=True)
    return Row(name, (8,), {form: dict(zip(ALL_WAYS, answers, strict=True)) for form, answers in forms})


def four(*sizes):
    return [answer(size) for size in sizes]


@pytest.mark.parametrize(
    ("free", "expert", "to_peer", "to_best"),
    [
        (four(50, 100, 200, 400), four(40, 100, 25, 400), 0.5, 2.0),
        ([answer(50), answer(100), answer(20, "wrong"), answer(80)], four(50, 50, 50, 50), 0.625, 1.0),
        (four(0, 0, 8, 8), four(0, 0, 0, 0), None, None),
        (four(8, 0, 8, 8), four(8, 8, 8, 8), math.inf, math.inf),
        ([answer(9, "wrong"), *four(9, 9, 9)], four(9, 9, 9, 9), None, None),
    ],
    ids=[
        "an expert is better",
        "what is wrong is no measure",
        "nobody sends",
        "something for nothing",
        "ours is wrong",
    ],
)
def test_ratios_to_the_better_peer_and_to_the_best_of_all(free, expert, to_peer, to_best):
    found = row(free, expert)
    assert (found.to_peer("bytes"), found.to_best("bytes")) == (to_peer, to_best)


def test_memory_is_of_the_free_form():
    found = row([answer(1, memory=2048), answer(1, memory=1024), answer(1), answer(1)], four(1, 1, 1, 1))
    assert found.to_peer("memory") == 2.0


def test_summary_names_who_breaks_which_bound():
    rows = [
        row(four(30, 10, 20, 20), four(30, 10, 10, 10), "bad"),
        row(four(10, 30, 30, 30), four(10, 10, 10, 10), "good"),
    ]
    text = "\n".join(summary(rows))
    assert "bytes of the free form over the better peer's: geometric mean 1.000 over 2 programs" in text
    assert "above 1.02: bad 3.00" in text
    assert "over the best of all: geometric mean 1.732 over 2 programs (wanted: at most 1.05); above 1.25: bad" in text
    assert "gspmd's free form over the best of all: geometric mean 1.732" in text
    assert "expert form, shardy: right on 2 of 2" in text


def test_rows_are_written_read_and_merged(tmp_path):
    earlier = {name: row(four(1, 1, 1, 1), four(1, 1, 1, 1), name) for name in reversed(NAMES[:3])}
    file = tmp_path / "rows.json"
    file.write_text(json.dumps([asdict(one) for one in earlier.values()]))
    assert read_rows(str(file)) == list(earlier.values())
    new = row(four(9, 3, 3, 3), four(1, 1, 1, 1), NAMES[1])
    found = merged([new], earlier)
    assert [one.name for one in found] == NAMES[:3]
    assert [one.to_peer("bytes") for one in found] == [1, 3, 1]
    assert len(markdown(found).splitlines()[0].split("|")) == len(cells(new)) + 2


def test_the_pipeline_is_partition_at_an_effort():
    assert "shardpass-propagate{effort=2},shardpass-check,shardpass-partition," in pipeline(2)


def test_a_plan_of_one_product():
    """x and w by rows over 8 devices: at effort 1 w is gathered, 7/8 of 64x64 f32."""
    text = """
    module attributes {mhlo.num_partitions = 8 : i32} {
      func.func @main(%x: tensor<4096x64xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"},
                      %w: tensor<64x64xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}) -> tensor<4096x64xf32> {
        %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
            : (tensor<4096x64xf32>, tensor<64x64xf32>) -> tensor<4096x64xf32>
        return %0 : tensor<4096x64xf32>
      }
    }
    """
    found = planned(text, 1)
    assert (found.failure, found.bytes) == ("", 64 * 64 * 4 * 7 // 8)


def test_a_failure_to_plan_is_told_and_ends_nothing():
    assert "Error" in planned("module {", 1).failure


@pytest.mark.slow
def test_a_child_measures_gspmd_beside_shardy():
    """Of 512x512 weights split by rows each of 8 devices receives 7/8, twice: gathered, and scattered as gradients."""
    child = Child(command=("tools.bench.underspecified", "--serve", "--effort", "1"))
    try:
        loss = 2 * 4 * 7 // 8
        for way in ("shardpass", "gspmd", "xla"):
            found = child.ask("fsdp_mlp_2_rows/expert", way)
            assert (found["status"], found["bytes"]) == ("right", 2 * 2 * 512 * 512 * 4 * 7 // 8 + loss)
    finally:
        child.close()


def test_programs_by_form():
    programs = FormedPrograms()
    assert len(programs) == len(list(programs)) == 2 * len(PROGRAMS)
    assert programs["fsdp_mlp_3_rows/free"].name == "fsdp_mlp_3_rows/free"
    with pytest.raises(KeyError):
        programs["fsdp_mlp_3_rows"]


def test_usage(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["underspecified", "--list", "kmeans"])
    assert main() == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["kmeans", "kmeans_by_centres"]
    for wrong in (["nothing_so_named"], ["--add", "/no/such/file"], ["--ways", "mine"], ["--plan", "one"]):
        monkeypatch.setattr(sys, "argv", ["underspecified", *wrong])
        with pytest.raises(SystemExit, match="2"):
            main()
        assert "error: " in capsys.readouterr().err
