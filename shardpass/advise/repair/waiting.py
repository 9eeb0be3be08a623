"""The order in which states of a search are tried: first one program for each first edit, then around the best ones.

The regret of a state is by how much its edits cost more, each alone, than the cheapest edit at the same place. What an
edit makes of the program behind it, regret does not know: a spec that is cheap for one op may cost at all later ones.

1. Until there is a program: least regret first, which is the cheapest edit at each error; of equal regret the state
   with most edits, so that a program with many errors is reached before all that costs as little is tried at its first.
2. Then each first edit is followed, by least regret, to a program of its own, for at most PATIENCE states. A first edit
   whose regret is above the price of the best program is not followed.
3. Then a state is estimated by the best program that shares most of its edits: that program's price, and how much the
   regret of the state is above its regret. Least estimate first.

Example: of the first edits a and b, a is 1 us cheaper alone; the best program with a costs 9 us, that with b 5 us. The
next state is the second best edit behind b.

Complexity: O(states * edits) for each state that is tried.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from shardpass.advise.place.specs import Spec

PATIENCE = 8  # states of a first edit that are tried for its first program


@dataclass(frozen=True, eq=False)
class State:
    """Edits, and the texts of the user's files with them. ``arguments``: new specs of arguments, by number.

    ``before``: the state without the last edit.
    """

    texts: Mapping[str, str] = field(default_factory=dict)
    edits: tuple[str, ...] = ()
    arguments: Mapping[int, Spec] = field(default_factory=dict)
    regret: float = 0.0
    before: State | None = None

    def path(self) -> Iterator[State]:
        """Yield this state, the one before it, and so on."""
        one: State | None = self
        while one is not None:
            yield one
            one = one.before

    @property
    def first(self) -> State:
        """The state with only the first edit."""
        return [*self.path()][:-1][-1] if self.before is not None else self


class Waiting:
    """The states to try, and for each state the best program behind it."""

    def __init__(self) -> None:
        self._states: dict[State, int] = {}
        self._order = itertools.count()
        self._best: dict[State, tuple[float, float]] = {}  # price and regret
        self._tried: Counter[State] = Counter()  # by first edit

    def __bool__(self) -> bool:
        return bool(self._states)

    def add(self, state: State) -> None:
        self._states[state] = next(self._order)

    def next(self) -> State:
        """Remove and return the state to try next."""
        state = min(self._states, key=self._rank)
        del self._states[state]
        self._tried[state.first] += 1
        return state

    def reached(self, state: State, price: float) -> None:
        """Record that ``state`` traces and costs ``price`` seconds."""
        for one in state.path():
            self._best[one] = min(self._best.get(one, (price, state.regret)), (price, state.regret))

    @property
    def follows_first_edits(self) -> bool:
        """Whether the search still looks for a program behind one of the first edits."""
        return any(self._rank(state)[0] == 0 for state in self._states)

    def _rank(self, state: State) -> tuple[int, float, int, int]:
        first, order = state.first, self._states[state]
        least = min((price for price, _ in self._best.values()), default=math.inf)
        is_followed = first not in self._best and first.regret <= least and self._tried[first] < PATIENCE
        if not self._best or is_followed:
            return 0, state.regret, -len(state.edits), order
        price, regret = next(self._best[one] for one in state.path() if one in self._best)
        return 1, price + state.regret - regret, 0, order
