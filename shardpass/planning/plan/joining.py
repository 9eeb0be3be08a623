"""Determine which small collectives are combined: one rule for the pass that joins them and for the price of plans.

Collectives with one key (kind, groups, element type, ...) are tried in order. Each joins the first of the last
``OPEN_GROUPS`` groups of its key that may take it, or opens a group. A group has at most ``JOINED`` bytes, and at most
a part of the peak of the memory around it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

JOINED, PART_OF_PEAK, ALWAYS = 1 << 18, 32, 512  # bytes of a group: at most, as a part of the peak, and allowed always
OPEN_GROUPS = 4  # of one key, that a collective is tried with


def most_joined(peak: int, most: int = JOINED) -> int:
    """Return the greatest size of a group, in bytes, where ``peak`` bytes are alive at once."""
    return min(most, max(peak // PART_OF_PEAK, ALWAYS))


def join_groups(keys: Iterable[tuple[int, Hashable]], joins: Callable[[list[int], int], bool]) -> list[list[int]]:
    """Return the collectives in groups. ``keys``: their numbers and keys; ``joins``: puts one into a group if it may be
    in it, and returns whether it did.
    """
    groups: dict[Hashable, list[list[int]]] = {}
    for number, key in keys:
        open_groups = groups.setdefault(key, [])
        for group in open_groups[: -OPEN_GROUPS - 1 : -1]:
            if joins(group, number):
                group.append(number)
                break
        else:
            open_groups.append([number])
    return [group for several in groups.values() for group in several]
