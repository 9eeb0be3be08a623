"""The fewest members that are enough: exactly those without which a set is not, in their order, in few tests."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from shardpass.advise.place.keep import fewest


@pytest.mark.parametrize("wanted", [some for size in range(4) for some in itertools.combinations(range(7), size)])
def test_what_is_needed_stays_and_nothing_else(wanted: tuple[int, ...]) -> None:
    tried: list[Sequence[int]] = []

    def enough(some: Sequence[int]) -> bool:
        tried.append(some)
        return set(wanted) <= set(some)

    assert fewest(enough, range(7)) == list(wanted)
    assert len(tried) <= 1 + 6 * len(wanted)
    assert all(len(some) < 7 for some in tried)


def test_members_that_do_harm_go() -> None:
    assert fewest(lambda some: 3 in some and 5 not in some, range(8)) == [3]
