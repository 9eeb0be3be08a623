"""Which changes to keep: the best of those that save, one on top of the other; or all but those that are not needed.

The first is for changes of which few save, the second for changes that decide something together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
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
    """Keep the best of what is ``proposed``, then the best of what is proposed on top of that, ``most`` times.

    ``tried``: the outcome with a proposal; None where that does not save. ``rank``: the least is the best, the first of
    equals.
    """
    for _ in range(most):
        outcomes = [outcome for outcome in map(tried, proposed()) if outcome is not None]
        if not outcomes:
            return
        keep(min(outcomes, key=rank))


def needed(members: Iterable[T], parts: Iterable[Collection[T]], enough: Callable[[Sequence[T]], bool]) -> list[T]:
    """Return ``members`` without each of ``parts`` without which the others are ``enough``, in the order of ``parts``.

    With all single members at the end of ``parts``, and ``enough`` true of each larger set too, no member can go.
    """
    kept = list(members)
    for part in parts:
        rest = [one for one in kept if one not in part]
        if len(rest) < len(kept) and enough(rest):
            kept = rest
    return kept


def runs(members: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield all of ``members``, then their halves, quarters, ... and each alone."""
    length = len(members)
    while length:
        yield from (members[start : start + length] for start in range(0, len(members), length))
        length = -(-length // 2) if length > 1 else 0
