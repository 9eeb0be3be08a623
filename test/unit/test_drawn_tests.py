"""What a session leaves out: combinations of which each value is met elsewhere, others each day."""

from __future__ import annotations

import itertools

import pytest
from support import daily
from support.drawn_tests import covering

pytest_plugins = ["pytester"]

GRID = list(itertools.product("abcdefgh", range(6), (True, False)))


@pytest.mark.parametrize("least", [0, 20, 96])
def test_each_value_of_each_parameter_is_met(least):
    found = covering(GRID, least, "1")
    assert {value for place in found for value in GRID[place]} == {value for case in GRID for value in case}
    assert len(found) >= least
    assert len(found) <= max(least, 8 + 6 + 2)


def test_a_seed_draws_one_part_and_days_differ():
    assert covering(GRID, 10, "1") == covering(GRID, 10, "1")
    assert set().union(*(covering(GRID, 10, str(day)) for day in range(60))) == set(range(len(GRID)))


SUITE = """
import pytest

@pytest.mark.parametrize("x", range(6))
@pytest.mark.parametrize(("y", "z"), [(1, 2), (3, 4), (5, 6), (7, 8)])
def test_combined(x, y, z):
    pass

@pytest.mark.parametrize("x", range(30))
def test_single(x):
    pass

@pytest.mark.turns(3)
@pytest.mark.parametrize("x", range(10))
def test_in_turns(x):
    pass

@pytest.mark.turns(2)
@pytest.mark.parametrize("x", range(3))
def test_few(x):
    pass

@pytest.fixture(params="abcd")
def letter(request):
    return request.param

@pytest.mark.parametrize("x", range(4))
def test_fixture(x, letter):
    pass

def test_alone():
    pass
"""


@pytest.fixture
def session(pytester, monkeypatch):
    """Runs SUITE with the plugin, and returns how many passed and were left out."""
    monkeypatch.setenv(daily.SEED, "7")
    pytester.makepyfile(test_it=SUITE)

    def run(*words):
        outcome = pytester.inline_run("-p", "support.drawn_tests", "-p", "no:randomly", *words)
        passed, _, failed = outcome.listoutcomes()
        assert not failed
        return [report.nodeid.partition("::")[2] for report in passed]

    return run


def test_lists_of_values_stay_whole_and_combinations_do_not(session, monkeypatch):
    monkeypatch.delenv(daily.WHOLE, raising=False)
    names = session()
    assert sum(name.startswith("test_single") for name in names) == 30
    assert "test_alone" in names
    for test, parameters in (("test_combined", (range(6), ("1-2", "3-4", "5-6", "7-8"))), ("test_fixture", ("abcd",))):
        ids = [name for name in names if name.startswith(test)]
        for value in itertools.chain(*parameters):
            assert any(str(value) in name for name in ids), (test, value)
    assert sum(name.startswith("test_combined") for name in names) <= 6 + 4
    assert len(session("test_it.py::test_combined")) == 24
    monkeypatch.setenv(daily.WHOLE, "1")
    assert len(session()) == 24 + 30 + 10 + 3 + 16 + 1


def test_cases_that_take_turns_all_run_in_as_many_days(session, monkeypatch):
    monkeypatch.delenv(daily.WHOLE, raising=False)
    days = []
    for day in ("7", "8", "9"):
        monkeypatch.setenv(daily.SEED, day)
        names = session()
        days.append([name for name in names if name.startswith("test_in_turns")])
        assert sum(name.startswith("test_few") for name in names) == 3
    assert sorted(map(len, days)) == [3, 3, 4]
    assert len(set().union(*days)) == 10


def test_files_with_a_long_test_come_first(pytester):
    long = "import pytest\ndef test_short(): pass\n@pytest.mark.long\ndef test_long(): pass"
    pytester.makepyfile(test_1="def test_any(): pass", test_2=long)
    passed, _, _ = pytester.inline_run("-p", "support.drawn_tests", "-p", "no:randomly").listoutcomes()
    found = [report.nodeid.partition("::")[2] for report in passed]
    assert found == ["test_short", "test_long", "test_any"]
