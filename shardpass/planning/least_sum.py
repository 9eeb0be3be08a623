"""A low sum of small tables, soon: the least one where elimination can find that, and else by neighbourhoods.

Problem: elimination (``eliminate``) is exact as long as no table grows too large. In a transformer with two mesh axes
some would have millions of entries. To hold a few variables at their present values keeps tables small, but which ones
are held then decides what is found, and the present values are often where a greedy search has stopped.

State: the *core*, which is what is left when all variables have gone whose elimination makes small tables only; and the
present value of each variable of the core.

1. Each round holds some variables, and gives all others of the core their best values, which are the present ones from
   then on. Variables that were held least often are held first, so that each round moves what the last one held
   (large neighbourhood search; Shaw 1998).
2. Rounds with small tables come first, as they are quick. When one of them gains nothing, tables may be larger, and
   what makes tables of the size before is eliminated once for all, which leaves a smaller core (``LEVELS``).
3. A round that holds nothing has found the least sum, and is the last.

Invariants: no round makes the sum greater; no randomness and no clock.
Complexity: O(rounds x (variables of the core) x limit), with at most ``MOST`` rounds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from shardpass.planning.eliminate import Elimination, Least, Table, least

LEVELS = ((1 << 13, 1 << 14), (1 << 14, 1 << 16), (1 << 16, 1 << 18))  # entries of a table, outside and in the core
MOST = 40  # rounds of all levels
GAIN = 1.0  # bytes; a round that gains less has gained nothing


def least_sum(tables: Sequence[Table], present: Mapping[int, int]) -> Least:
    """An assignment whose sum of ``tables`` is at most that of ``present``, and the least one where nothing is held.

    ``present`` has a value for each variable.
    """
    core = tables
    outside: list[Elimination] = []  # level by level
    found = Least(present, frozenset())
    often: Counter[int] = Counter()  # each variable was held so often
    rounds = MOST
    for easy, limit in LEVELS:
        outside.append(Elimination(core))
        outside[-1].run(easy)
        core = outside[-1].left
        values = {one: found.values[one] for table in core for one in table.variables}
        found = Least(values, frozenset(values))
        lowest = sum_at(core, found.values)
        while core and rounds:
            rounds -= 1
            found = least(core, found.values, limit, often)
            often.update(found.held)
            now = sum_at(core, found.values)
            if not found.held or now > lowest - GAIN:
                break
            lowest = now
        if not found.held:
            break
    chosen = found.values
    for level in reversed(outside):
        chosen = level.values(chosen)
    return Least(chosen, found.held)


def sum_at(tables: Sequence[Table], values: Mapping[int, int]) -> float:
    """The sum of ``tables`` at ``values``."""
    return sum([float(table.costs[tuple([values[one] for one in table.variables])]) for table in tables])
