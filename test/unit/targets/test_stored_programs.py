"""Programs that XLA:TPU and XLA:GPU compiled, stored as `tools.bench.targets --store` wrote them (jax 0.10.2).

Each collective in the text is a row: the witness of bytes is tools/bench/hlo_traffic.py, which shares no code with the
readers of the report.
"""

import gzip
from pathlib import Path

import pytest

from shardpass.cost.machine import find_machine
from shardpass.hlo.collectives import HloCollectives
from shardpass.hlo.read import read_program
from shardpass.report.hlo.explain import explain_hlo
from tools.bench.hlo_traffic import traffic

FOLDER = Path(__file__).parents[2] / "data" / "targets"
STORED = sorted(path.name for path in FOLDER.iterdir())


def text_of(name: str) -> str:
    return gzip.decompress((FOLDER / name).read_bytes()).decode()


@pytest.mark.parametrize("name", STORED)
def test_each_collective_in_the_text_is_a_row(name):
    text = text_of(name)
    report = explain_hlo(text, name, machine="ideal")
    counted = traffic(text, report.devices)
    assert report.total_bytes_received == counted.bytes
    assert {kind.replace("-", "_") for kind, _, _ in counted.by_kind} == {row.kind for row in report.rows}
    assert not counted.unknown_loops
    assert all(row.place.line for row in report.rows if row.kind != "collective_permute")


def test_permutes_in_a_loop_of_a_tpu_run_as_often_as_it():
    """Keys and values of [1, 4096, 32, 128] bf16 go 7 steps round a ring; a start's contexts are no data."""
    report = explain_hlo(text_of("ring.v5e_2x4.hlo.gz"), "ring", machine="v5e")
    sent = [(row.kind, row.times, row.bytes_each) for row in report.rows]
    assert sent == [("collective_permute", 7, 4096 * 32 * 128 * 2)] * 2


def test_fusions_of_a_tpu_start_and_end_collectives():
    """Of 12 collectives of hsdp four are all-reduce-scatter fusions; the fusions that only await one are no second."""
    text = text_of("hsdp.v5e_4x4.hlo.gz")
    report = explain_hlo(text, "hsdp", machine="v5e")
    assert text.count("AsyncCollectiveStart") == 3
    kinds = [row.kind for row in report.rows if not row.joined]
    assert len(kinds) == 12
    assert kinds.count("reduce_scatter") == 4
    schedule = report.schedule
    assert schedule is not None
    assert schedule.compiler == "XLA:TPU"
    assert sum(schedule.exposed) < sum(row.seconds for row in report.rows)  # some run beside work


@pytest.mark.parametrize("name", [name for name in STORED if "v5e" in name])
def test_the_machine_says_which_collectives_block(name):
    """Of XLA:TPU, those with an op of their own, which neither starts nor is named by an asynchronous collective."""
    program, machine = read_program(text_of(name)), find_machine("v5e")
    for one in HloCollectives(program).rows:
        root = program.computations[one.computation].root
        starts = "AsyncCollectiveStart" in root.attributes or "async_collective_name" in one.op.attributes
        waits = not starts and not one.op.opcode.endswith("-start")
        assert machine.blocks(one.kind, max(one.received)) == waits, one.op.name
