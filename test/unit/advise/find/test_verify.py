"""Which edits are worth printing, and where two programs differ."""

import pytest

from shardpass.advise.find.verify import changed_lines, saves, saves_memory
from shardpass.diagnostics import Place
from shardpass.report.findings import Figures, LineChange
from shardpass.report.rows import Row

BASE = Figures(bytes=1000, memory=1000, flops=1000, seconds=1.0)


@pytest.mark.parametrize(
    ("after", "worth"),
    [
        (Figures(1000, 1000, 1000, 1.0), False),  # the same
        (Figures(1000, 1000, 1000, 0.97), True),  # 3% of the time
        (Figures(1000, 1000, 1000, 0.99), False),  # 1% is too little
        (Figures(900, 1000, 1000, 1.0), True),  # a tenth of the bytes at no cost
        (Figures(900, 1000, 1000, 1.1), False),  # which cost time
        (Figures(0, 1000, 1000, 1.0), True),
        (Figures(1000, 850, 1000, 1.0), True),  # memory at no cost
        (Figures(1000, 950, 1000, 1.0), False),  # too little of it
        (Figures(1100, 850, 1000, 1.0), False),  # for more bytes
        (Figures(500, 1200, 1000, 0.7), True),  # 20% more memory for 30% of the time
        (Figures(500, 1400, 1000, 0.7), False),  # 40% more
        (Figures(500, 1040, 1000, 0.97), True),  # within a twentieth
    ],
)
def test_an_edit_saves(after: Figures, worth: bool) -> None:
    assert saves(BASE, after) is worth


def test_bytes_count_where_they_are_a_thousandth_of_the_memory() -> None:
    before = Figures(bytes=1000, memory=2_000_000, flops=1000, seconds=1.0)
    assert not saves(before, Figures(0, 2_000_000, 1000, 1.0))
    assert saves(before, Figures(0, 2_000_000, 1000, 0.97))


def test_memory_is_traded_for_time_and_bytes_where_a_kind_allows_it() -> None:
    after = Figures(4000, 800, 1000, 1.5)
    assert saves_memory(BASE, after, 10.0)
    assert not saves_memory(BASE, after, 2.0)
    assert not saves_memory(BASE, Figures(4000, 950, 1000, 1.1), 10.0)
    assert not saves_memory(BASE, after)
    slower = Figures(1000, 800, 1000, 9.0)  # the same bytes in more collectives
    assert saves_memory(BASE, slower, 1.5)
    assert not saves_memory(BASE, slower)
    assert not saves_memory(BASE, Figures(1000, 800, 2000, 9.0), 1.5), "computed twice"


def test_lines_that_change() -> None:
    def row(line: int, size: int) -> Row:
        return Row("all_gather", "x", 2, size, place=Place("train.py", line, 4), times=3)

    found = changed_lines([row(1, 10), row(2, 10), row(2, 5)], [row(1, 10), row(2, 2), row(3, 4)])
    assert [(one.place.line, one.before, one.after) for one in found] == [(2, 45, 6), (3, 0, 12)]
    assert isinstance(found[0], LineChange)


def test_a_line_counts_what_the_busiest_device_receives() -> None:
    place = Place("train.py", 1)
    rows = [
        Row("collective_permute", "x", 2, size, place=place, receivers=ids) for size, ids in ((10, (0, 1)), (7, (2,)))
    ]
    assert changed_lines(rows, rows[:1]) == ()
    assert changed_lines(rows, rows[1:]) == (LineChange(place, 10, 7),)
