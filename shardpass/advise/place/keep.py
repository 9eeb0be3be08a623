"""Choose which changes to keep: greedily the best one on top of the others, or the smallest sufficient set.

The first is for changes of which few save, the second for changes that decide something together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")


def keep_best(
    proposed: Callable[[], Iterable[T]],
    tried: Callable[[T], S | None],
    rank: Callable[[S], tuple[float, ...]],
    keep: Callable[[S], None],
    most: int,
) -> None:
    """Keep the best proposed change, then the best change proposed on top of it, up to ``most`` times.

    ``tried``: the outcome with a proposal; None where that does not save. ``rank``: the least is the best, the first of
    equals.
    """
    for _ in range(most):
        outcomes = [outcome for outcome in map(tried, proposed()) if outcome is not None]
        if not outcomes:
            return
        keep(min(outcomes, key=rank))


def fewest(enough: Callable[[Sequence[T]], bool], members: Sequence[T]) -> list[T]:
    """Return a minimal subset of ``members`` that is ``enough``; all members where no part of them is.

    Of subsets that are equally good, that of the early members. With a test that more members may fail too, as in a
    compiler where some do harm, the subset is one without which no tried part can go.

    Source: QuickXplain (Junker 2004). Complexity: O(k log(n / k)) tests for k of n members.
    """

    def explain(given: list[T], fresh: bool, rest: Sequence[T]) -> list[T]:
        if fresh and enough(given):
            return []
        if len(rest) == 1:
            return list(rest)
        half = len(rest) // 2
        early, late = rest[:half], rest[half:]
        of_late = explain([*given, *early], bool(early), late)
        of_early = explain([*given, *of_late], bool(of_late), early)
        return [*of_early, *of_late]

    if not members or enough([]):
        return []
    return explain([], False, members)
