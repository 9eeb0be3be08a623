"""shardpass-plan between two sets of devices: the table, the picture, JSON and wrong usage."""

import argparse
import json
import xml.etree.ElementTree as ElementTree

import pytest

from shardpass import plan_reshard_tree
from shardpass.cli import plan
from shardpass.cli.plan_between import device_ids
from shardpass.redistribute.between.picture import traffic

ROWS, COLUMNS = "{{devices=[{0},1]<=[{0}]}}", "{{devices=[1,{0}]<=[{0}]}}"
SIX_TO_FOUR = ["f32[12,4]", "P('x')", "P('y')", "--mesh", "x=6", "--target-mesh", "y=4", "--target-devices", "6-9",
               "--machine", "ideal"]  # fmt: skip


def wanted():
    """Bytes by pair: 12 rows of 16 bytes, row k on device k // 2 and needed on 6 + k // 3."""
    table = {}
    for row in range(12):
        pair = row // 2, 6 + row // 3
        table[pair] = table.get(pair, 0) + 16
    return table


def test_the_table_says_who_sends_what_to_whom(capsys):
    assert plan.main(SIX_TO_FOUR) == 0
    lines = capsys.readouterr().out.splitlines()
    head = next(k for k, line in enumerate(lines) if line.split() == ["6", "7", "8", "9"])
    for sender, line in enumerate(lines[head + 1 : head + 7]):
        cells = line.replace(" B", "").split()
        assert cells[0] == str(sender)
        assert cells[1:] == [str(wanted().get((sender, receiver), "-")) for receiver in range(6, 10)]


def test_the_picture_has_a_line_for_each_pair(tmp_path, capsys):
    path = tmp_path / "plan.svg"
    assert plan.main([*SIX_TO_FOUR, "--svg", str(path)]) == 0
    root = ElementTree.fromstring(path.read_text())
    titles = [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")]
    assert sorted(titles) == sorted(f"{s} to {r}: {size} B" for (s, r), size in wanted().items())


def test_json_is_the_schedule(capsys):
    assert plan.main([*SIX_TO_FOUR, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    sent = {}
    for messages in data["rounds"]:
        for message in messages:
            for piece in message["pieces"]:
                pair = message["sender"], message["receiver"]
                sent[pair] = sent.get(pair, 0) + 16 * (piece["stop"][0] - piece["start"][0])
    assert sent == wanted()
    assert data["arrays"][0]["target"]["devices"] == [6, 7, 8, 9]


def test_devices_without_lists_are_the_first_ones(capsys):
    assert plan.main([*SIX_TO_FOUR[:7], "--show", "--machine", "ideal"]) == 0
    assert "from 6 devices to 4" in capsys.readouterr().out


def test_neighbours_are_drawn_together():
    tree = [((80, 60), "i8", ROWS.format(40), COLUMNS.format(20))]
    plan = plan_reshard_tree(tree, source_devices=range(40), target_devices=range(100, 120), machine="ideal")
    drawn = traffic(plan)
    assert drawn.senders[:2] == ("0..2", "3..5")
    assert drawn.senders[-1] == "39"
    assert drawn.receivers == tuple(f"{k}..{k + 1}" for k in range(100, 120, 2))
    assert drawn.bytes[0, 0] == 3 * 2 * 2 * 3
    assert drawn.bytes.sum() == 80 * 60


@pytest.mark.parametrize("more", [["--module"], ["--planner", "rink"], ["--source-devices", "5-2"]])
def test_wrong_usage(more, capsys):
    assert plan.main([*SIX_TO_FOUR, *more]) == 2
    assert "error: " in capsys.readouterr().err


@pytest.mark.parametrize(("ids", "code"), [("0-4", "SP419"), ("0-4,4", "SP417")])
def test_lists_that_fit_no_sharding(ids, code, capsys):
    assert plan.main([*SIX_TO_FOUR, "--source-devices", ids]) == 1
    assert code in capsys.readouterr().err


def test_lists_of_devices():
    assert device_ids("0-2, 8,5-5") == (0, 1, 2, 8, 5)
    for text in ("", "3-", "a", "1-2-3", "4-2", "0-99999999"):
        with pytest.raises(argparse.ArgumentTypeError):
            device_ids(text)
