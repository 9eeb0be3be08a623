"""The table of real programs: ratios and means by hand, and a child that measures one and outlives a bad one."""

import json
import math
import sys
from dataclasses import asdict

import pytest

from tools.bench.models import MARKS, Row, main, markdown, merged, read_rows, summary
from tools.bench.peers import Child
from tools.bench.report import cell, geometric_mean, ratio_cell, write_between


def answer(size=0, count=0, memory=1024, status="right", loops=0):
    return {
        "status": status,
        "bytes": size,
        "collectives": count,
        "temp": memory // 2,
        "output": memory // 2,
        "unknown_loops": loops,
        "reason": "",
    }


def row(ours, xla, shardy, name="p"):
    return Row(name, (4, 2), {"shardpass": ours, "xla": xla, "shardy": shardy})


@pytest.mark.parametrize(
    ("ours", "xla", "shardy", "ratio"),
    [
        (answer(50), answer(100), answer(200), 0.5),
        (answer(50), answer(100), answer(25), 2.0),
        (answer(50), answer(100), answer(25, status="wrong"), 0.5),  # what is wrong is no measure
        (answer(50), {"status": "fails", "reason": ""}, {"status": "fails", "reason": ""}, None),
        (answer(50, status="wrong"), answer(100), answer(100), None),
        (answer(0), answer(0), answer(8), None),
        (answer(0), answer(8), answer(8), 0.0),
        (answer(8), answer(0), answer(8), math.inf),
    ],
)
def test_ratio_to_the_better_peer_that_was_right(ours, xla, shardy, ratio):
    assert row(ours, xla, shardy).ratio("bytes") == ratio


def test_memory_is_temporaries_and_outputs():
    assert row(answer(memory=2048), answer(memory=1024), answer(memory=4096)).ratio("memory") == 2.0


def test_geometric_mean():
    assert geometric_mean([0.5, 2.0]) == pytest.approx(1)
    assert geometric_mean([0.0, 0.1]) == pytest.approx(0.1)  # nothing counts as a tenth
    assert geometric_mean([math.inf, 0.1]) == pytest.approx(1)  # something against nothing as ten times
    assert math.isnan(geometric_mean([]))


def test_cells():
    assert cell(answer(1024, 3)) == "1024 / 3"
    assert cell(answer(1024, 3, loops=1)) == "1024 / 3*"
    assert cell(answer(status="wrong")) == "wrong"
    assert [ratio_cell(r) for r in (None, math.inf, 1.005)] == ["-", "new", "1.00"]


def test_summary_names_the_worst_and_the_wrong():
    rows = [
        row(answer(30), answer(10), answer(10, status="wrong"), "bad"),
        row(answer(10), answer(10), {"status": "fails", "reason": ""}, "good"),
    ]
    text = "\n".join(summary(rows))
    assert "bytes: geometric mean of ours over the better peer 1.732 over 2 programs; above 1.2x: bad 3.00" in text
    assert "shardy: right on 0 of 2; not on bad (wrong), good (fails)" in text


def test_the_table_is_put_between_its_marks_again_and_again(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# Title\n\n{MARKS[0]}\n\nold\n\n{MARKS[1]}\n\nThe end.\n")
    rows = [row(answer(1), answer(1), answer(1))]
    for _ in range(2):
        write_between(page, MARKS, markdown(rows))
        assert page.read_text() == f"# Title\n\n{MARKS[0]}\n\n{markdown(rows)}\n\n{MARKS[1]}\n\nThe end.\n"


def test_a_child_measures_and_survives_what_is_no_program():
    child = Child()
    try:
        assert child.ask("no_such_program", "xla")["status"] == "fails"
        found = child.ask("matmul_3d", "shardpass")
        assert (found["status"], found["collectives"]) == ("right", 1)
        assert found["bytes"] == 32 * 16 * 4  # all_reduce of a tile over two devices: 2 * tile / 2
        process = child.worker.process
        assert process is not None
        process.kill()
        process.wait()
        assert child.ask("matmul_3d", "xla")["reason"].startswith("ended the process")
        assert child.ask("matmul_3d", "xla")["status"] == "right"
    finally:
        child.close()


def test_earlier_rows_are_kept_and_replaced_in_the_order_of_the_programs(tmp_path):
    earlier = [row(answer(1), answer(1), answer(1), name) for name in ("pagerank", "mlp_sgd")]
    file = tmp_path / "rows.json"
    file.write_text(json.dumps([asdict(r) for r in earlier]))
    assert read_rows(str(file)) == earlier
    new = [row(answer(7), answer(1), answer(1), "pagerank")]
    assert [(r.name, r.ratio("bytes")) for r in merged(new, earlier)] == [("mlp_sgd", 1.0), ("pagerank", 7.0)]


def test_usage(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["models", "--list", "jacobi"])
    assert main() == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["jacobi_roll", "jacobi_slices"]
    for wrong in (["nothing_so_named"], ["--add", "/no/such/file"]):
        monkeypatch.setattr(sys, "argv", ["models", *wrong])
        with pytest.raises(SystemExit, match="2"):
            main()
        assert "error: " in capsys.readouterr().err
