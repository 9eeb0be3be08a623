"""The proof accepts plans and notices each fault that is put into one."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shardpass import plan_redistribution, plan_reshard_tree
from shardpass.redistribute.between.cells import Cell
from shardpass.redistribute.between.proof import check
from shardpass.redistribute.between.sent import Message, as_arrays
from shardpass.redistribute.program.digits import Unproven

sys.path.insert(0, str(Path(__file__).parent))
import problems

ROWS, COLUMNS = "{{devices=[{0},1]<=[{0}]}}", "{{devices=[1,{0}]<=[{0}]}}"


def sent():
    """Three arrays of 12x8, rows of 6 devices to columns of 4: pieces of 2x2 from each sender to each receiver."""
    leaf = ((12, 8), "i32", ROWS.format(6), COLUMNS.format(4))
    plan = plan_reshard_tree([leaf] * 3, source_devices=range(6), target_devices=range(6, 10), machine="ideal")
    (wave,) = plan.waves
    return wave.sent


def with_row(column, row, value):
    changed = column.copy()
    changed[row] = value
    return changed


def moved(s, rows):
    """Piece 0 some rows further, round the end."""
    start = (s.start[0] + [rows, 0]) % [12, 8]
    return {"start": with_row(s.start, 0, start), "stop": with_row(s.stop, 0, np.add(start, 2))}


def other(s):
    return 6 + (s.receiver[0] - 5) % 4


FAULTS = {
    "a piece is of one array fewer": (lambda s: replace(s, last=with_row(s.last, 5, 2)), "ends with 20 elements"),
    "a piece is of an array that is none": (lambda s: replace(s, last=with_row(s.last, 5, 4)), "array that is none"),
    "a piece ends a row early": (lambda s: replace(s, stop=s.stop - [1, 0]), "elements of its tile's 24"),
    "a piece is of other rows": (lambda s: replace(s, **moved(s, 2)), "which it does not have"),
    "a piece goes elsewhere": (lambda s: replace(s, receiver=with_row(s.receiver, 0, other(s))), "not of its tile"),
    "a sender has it not": (lambda s: replace(s, sender=with_row(s.sender, 0, (s.sender[0] + 1) % 6)), "does not have"),
    "a device is of no side": (lambda s: replace(s, sender=with_row(s.sender, 0, 77)), "device 77 is of neither side"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_noticed(name):
    fault, reason = FAULTS[name]
    check(sent())
    with pytest.raises(Unproven, match=reason):
        check(fault(sent()))


def test_an_element_that_comes_twice_for_another_one():
    """Both of two senders have all: 4 elements arrive, two of these twice, so that the count alone is right."""
    plan = plan_redistribution(
        (4,), "i8", "{devices=[1,2]<=[2] last_tile_dim_replicate}", "{replicated}",
        source_devices=[0, 1], target_devices=[2], machine="ideal",
    )  # fmt: skip
    (wave,) = plan.waves

    def half(sender, start):
        return Message(sender, 2, (Cell((0,), ((start,), (start + 2,)), 8),))

    check(as_arrays(wave.moves, [[half(0, 0)], [half(1, 2)]]))
    with pytest.raises(Unproven, match=r"receives a part of \[0\] to \[2\] twice"):
        check(as_arrays(wave.moves, [[half(0, 0)], [half(1, 0)]]))


def test_what_is_passed_on_came_before():
    plan = plan_redistribution(
        (8_000_000,), "i8", "{maximal device=0}", "{replicated}",
        source_devices=[0], target_devices=range(8, 24), machine="h100",
    )  # fmt: skip
    (wave,) = plan.waves
    relayed = np.flatnonzero(wave.sent.sender != 0)
    assert relayed.size
    check(wave.sent)
    for k in (relayed[0], relayed[-1]):
        with pytest.raises(Unproven, match="in round 0, which it does not have"):
            check(replace(wave.sent, round=with_row(wave.sent.round, k, 0)))


@pytest.mark.parametrize("seed", range(12))
def test_messages_as_arrays_and_back(seed):
    shape, source, target, senders, receivers, machine = problems.problem(seed)
    plan = plan_redistribution(
        shape, "i32", source, target, source_devices=senders, target_devices=receivers, machine=machine
    )
    (wave,) = plan.waves
    assert as_arrays(wave.moves, wave.rounds).rounds() == wave.rounds
    assert sum(message.bytes for messages in wave.rounds for message in messages) == wave.sent.bits.sum() / 8
