"""Which edit comes first; how long a search may take; and what of a torn answer about the gap is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shardpass.advise.find.budget import Budget
from shardpass.advise.find.gap import _read
from shardpass.advise.find.propose import KINDS, SPREAD
from shardpass.advise.find.propose.mesh import shapes
from shardpass.advise.find.propose.program import Context
from shardpass.advise.find.rank import Trial, best, in_turn, memory_first, outweighs, thinnest
from shardpass.advise.place.sites import Sites, read
from shardpass.advise.place.write import Change
from shardpass.report.findings import Figures
from shardpass.report.naming import Sources

BASE = Figures(1000, 1000, 0, 1.0)
KIND = {kind.name: kind for kind in (*KINDS, SPREAD)}


def trial(
    name: str, seconds: float, *, harm: int = 0, size: int = 1000, price: float = 0.5, memory: int = 1000
) -> Trial:
    return Trial((), KIND[name], price, harm, after=Figures(size, memory, 0, seconds))


@pytest.mark.parametrize(
    ("trials", "chosen"),
    [
        ([trial("value", 0.50), trial("batch", 0.51)], 1),  # about the same: the batch is the mistake
        ([trial("value", 0.50), trial("batch", 0.60)], 0),  # 0.5 saved for 0.4
        ([trial("drop", 0.20, harm=1), trial("value", 0.55)], 1),  # keeps the scheme, and saves 0.45 for 0.8
        ([trial("drop", 0.20, harm=1), trial("value", 0.65)], 0),  # 0.35 is less than half of 0.8
        ([trial("drop", 0.20, size=2000), trial("value", 0.55)], 1),  # more bytes received breaks the scheme too
        ([trial("value", 0.50), trial("batch", 0.50, size=700)], 1),  # 0.8 for 0.5
        ([trial("value", 0.50, memory=400), trial("batch", 0.50)], 0),  # 0.5 and half of 0.6 for 0.5
    ],
)
def test_the_first_edit(trials: list[Trial], chosen: int) -> None:
    assert best(BASE, trials) is trials[chosen]


@pytest.mark.parametrize(
    ("after", "harm", "worth"),
    [
        (Figures(700, 1000, 0, 0.7), 0, True),
        (Figures(700, 1000, 0, 0.7), 100, False),  # a tenth of the memory is given up for less than half of the time
        (Figures(400, 1000, 0, 0.7), 100, True),
        (Figures(900, 1000, 0, 0.3), 100, False),  # time alone is no reason
        (Figures(700, 1000, 0, 0.7), 10, True),  # a hundredth of the memory, for a fifth
        (Figures(900, 1000, 0, 0.7), 10, False),
        (Figures(700, 1020, 0, 0.4), 10, True),  # and a device holds more
        (Figures(1030, 900, 0, 0.4), 10, False),  # or receives more
    ],
)
def test_what_an_edit_with_larger_tiles_has_to_save(after: Figures, harm: int, worth: bool) -> None:
    """Where other axes split the array then; an edit that only gives up a split is never worth a report."""
    moving = Trial((), KIND["argument"], 0.5, harm, moves=True)
    assert moving.saves(BASE, after) is worth
    assert not (harm and trial("argument", 0.0, harm=harm).saves(BASE, after))


@pytest.mark.parametrize(
    ("after", "worth"),
    [
        (Figures(11_000, 1300, 0, 0.5), False),  # half of the modelled time, for eleven times the bytes, and memory
        (Figures(11_000, 1000, 0, 0.5), True),
        (Figures(1000, 1300, 0, 0.5), True),
    ],
)
def test_an_edit_that_moves_arrays_does_not_receive_more_and_hold_more(after: Figures, worth: bool) -> None:
    assert Trial((), KIND["argument"], 0.5, moves=True).saves(BASE, after) is worth


@pytest.mark.parametrize(
    ("after", "worth"),
    [
        (Figures(920, 1000, 0, 0.95), False),  # less than a tenth of anything
        (Figures(890, 1000, 0, 1.0), True),
        (Figures(1000, 1000, 0, 0.85), False),  # modelled time alone
        (Figures(1000, 1000, 0, 0.75), True),
        (Figures(970, 1000, 0, 0.85), True),
    ],
)
def test_an_edit_saves_a_tenth_and_of_time_alone_a_fifth(after: Figures, worth: bool) -> None:
    assert trial("value", 0.0).saves(BASE, after) is worth


@pytest.mark.parametrize(
    ("after", "worth"),
    [
        (Figures(450, 1000, 0, 0.5), True),
        (Figures(700, 1000, 0, 0.5), False),  # less than half of the bytes
        (Figures(450, 1030, 0, 0.5), False),  # for memory
        (Figures(1000, 450, 0, 1.0), True),
    ],
)
def test_a_batch_moves_to_a_dimension_of_its_own_for_half(after: Figures, worth: bool) -> None:
    edit = Trial((), KIND["aligned"], 0.5, moves=True, unfounded=True)
    assert edit.saves(BASE, after) is worth
    assert not edit.saves_memory(BASE, after)


@pytest.mark.parametrize(
    ("after", "worth"),
    [
        (Figures(500, 800, 0, 0.9), False),  # too little of the time
        (Figures(600, 900, 0, 0.6), True),
        (Figures(600, 1100, 0, 0.6), False),  # for memory
    ],
)
def test_another_mesh_saves_a_third_of_time_and_bytes(after: Figures, worth: bool) -> None:
    reading = read((Path(__file__).parent / "states.txt").read_text(), "step.mlir", Sources(()))
    with reading.module.context:
        edit = Trial(next(shapes(Context(Sites(reading)))), KIND["mesh"], 0.5, moves=True, after=after)
    assert edit.saves(BASE, after) is worth
    assert edit.breaks(BASE)


def test_memory_is_bought_with_time_by_edits_of_stacked_parameters_alone() -> None:
    dearer = Figures(1000, 400, 0, 1.2)
    assert trial("stacked", 0.0).saves_memory(BASE, dearer)
    assert not trial("stacked", 0.0).saves_memory(BASE, Figures(1000, 900, 0, 1.2))
    assert not trial("spread", 0.0).saves_memory(BASE, dearer)


def test_the_cheapest_of_every_kind_comes_before_the_second_of_any() -> None:
    trials = [trial("value", 1.0, price=price) for price in (0.1, 0.2, 0.3)]
    other = trial("batch", 1.0, price=0.9)
    assert in_turn([*trials, other]) == [trials[0], other, *trials[1:]]


def test_an_edit_is_drafted_later_by_the_edits_of_its_kind_before_it() -> None:
    values = [trial("value", 1.0, price=price) for price in (0.10, 0.11, 0.12)]
    drops = [trial("drop", 1.0, price=price) for price in (0.13, 0.14)]
    assert in_turn([*values, *drops]) == [values[0], drops[0], values[1], drops[1], values[2]]


def test_an_edit_that_splits_an_array_otherwise_saves_a_tenth() -> None:
    moving = Trial((), KIND["argument"], 0.5, moves=True)
    assert moving.saves(BASE, Figures(890, 1000, 0, 1.0))
    assert not moving.saves(BASE, Figures(950, 1000, 0, 0.95))


def test_a_split_over_a_smaller_axis_may_take_more_memory() -> None:
    after = Figures(400, 1200, 0, 0.55)
    assert Trial((), KIND["argument"], 0.5, harm=200, moves=True).saves(BASE, after)
    assert not Trial((), KIND["argument"], 0.5, harm=200).saves(BASE, after)


def test_an_edit_with_which_a_device_holds_more_saves_a_third() -> None:
    edit = trial("drop", 0.0)
    assert edit.saves(BASE, Figures(600, 1020, 0, 0.8))
    assert not edit.saves(BASE, Figures(850, 1020, 0, 0.8))
    assert edit.saves(BASE, Figures(850, 1005, 0, 0.8))


def test_of_states_of_one_price_those_of_most_places_come_first() -> None:
    reading = read((Path(__file__).parent / "states.txt").read_text(), "step.mlir", Sources(()))
    with reading.module.context:
        changes = tuple(Change(site, ((), ())) for site in Sites(reading).arguments)
    one, three = (Trial(edit, KIND["state"], 0.9, 0) for edit in (changes[:1], changes))
    assert in_turn([one, three]) == [three, one]
    others = [Trial(edit, KIND["argument"], 0.9, 0) for edit in (changes, changes[:1])]
    assert in_turn(others) == others[::-1]


def test_seconds_of_other_processes_are_spent_and_the_users_number_stays() -> None:
    spent = [5.0]
    budget = Budget(None, lambda: spent[0])
    spent[0] = 5.0 + 100.0
    assert budget.is_over()
    budget.allow(1000.0)
    assert not budget.is_over()
    given = Budget(50.0, lambda: spent[0])
    given.allow(1000.0)
    assert given.seconds == 50.0


def test_a_line_that_was_cut_is_left_out() -> None:
    row: dict[str, Any] = {"bytes": 1, "memory": 2, "flops": 3, "seconds": 0.5}
    text = f'["a", {row}]\n["b", {{"bytes": 1, "mem'.replace("'", '"')
    assert dict(_read(text.encode())) == {"a": Figures(**row)}


def test_memory_comes_first_where_it_saves_more_than_the_first_edit() -> None:
    """Half of the memory, if the edit saves less of all; or half of the time of an edit that gives up a split."""
    thin, fast = trial("spread", 1.0, memory=400), trial("value", 0.6)
    assert memory_first(BASE, fast, [thin, fast]) == 0.5
    assert memory_first(BASE, trial("value", 0.3), [thin]) == 0.0
    assert memory_first(BASE, fast, [trial("spread", 1.0, memory=600)]) == 0.0
    assert memory_first(BASE, trial("argument", 0.6, harm=1), []) == pytest.approx(0.2)


@pytest.mark.parametrize(("kind", "moves", "least"), [("state", True, 0.5), ("zero", True, 0.0), ("state", False, 0.0)])
def test_a_state_is_split_like_its_parameter_before_arrays_are_moved(kind: str, moves: bool, least: float) -> None:
    """Though the edit that moves arrays saves all that is received."""
    moved = Trial((), KIND["argument"], 0.5, moves=moves, after=Figures(0, 1000, 0, 0.6))
    assert memory_first(BASE, moved, [trial(kind, 1.0, memory=400), moved]) == least


def test_the_thinnest_comes_first_and_fewer_places_of_about_the_same() -> None:
    least, near, more = (trial(kind, 1.0, memory=size) for kind, size in (("zero", 400), ("twin", 450), ("zero", 700)))
    assert thinnest(BASE, [more, least, near, trial("zero", 2.0, memory=100)], 0.2) == [near, least, more]
    assert thinnest(BASE, [more, least, near], 0.5) == [near, least]


def test_a_cause_outweighs_an_edit_that_saves_a_smaller_part() -> None:
    assert outweighs(600, BASE, Figures(900, 1000, 0, 0.5))
    assert not outweighs(400, BASE, Figures(900, 1000, 0, 0.5))
