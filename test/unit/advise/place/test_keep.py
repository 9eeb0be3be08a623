"""Which members are needed: exactly those without which a set is not enough, whatever the order."""

from __future__ import annotations

import itertools

import pytest

from shardpass.advise.place.keep import needed, runs


@pytest.mark.parametrize("wanted", [some for size in range(4) for some in itertools.combinations(range(7), size)])
def test_what_is_needed_stays_and_nothing_else(wanted: tuple[int, ...]) -> None:
    tried: list[list[int]] = []

    def enough(some: list[int]) -> bool:
        tried.append(some)
        return set(wanted) <= set(some)

    assert needed(range(7), runs(range(7)), enough) == list(wanted)  # type: ignore[arg-type]
    assert all(len(some) < 7 for some in tried)


def test_nothing_is_tried_twice_where_nothing_is_needed() -> None:
    tried: list[list[int]] = []
    assert needed(range(8), runs(range(8)), lambda some: not tried.append(list(some))) == []  # type: ignore[func-returns-value]
    assert tried == [[]]


def test_runs_are_halves_of_halves() -> None:
    assert list(runs("abcde")) == ["abcde", "abc", "de", "ab", "cd", "e", "a", "b", "c", "d", "e"]
