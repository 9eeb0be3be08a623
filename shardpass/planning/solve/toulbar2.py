"""A network given to toulbar2, an exact solver of cost function networks (Hurley et al. 2016; pytoulbar2, INRAE).

A bound comes first: virtual arc consistency (Cooper et al. 2010) moves costs along the tables until no assignment can
be cheaper than what is left at the root. A search by depth and best first (HBFS) then looks for assignments below the
known price, in a limit of backtracks. There is no limit of time, as that would let the same program be decided
otherwise on another day, and as toulbar2's timer is a signal. TRW-S is left out: its bounds are no better here, and
take 3 to 6 times as long.

Costs are whole numbers there: they are divided by a unit, a small part of the known price (``FINE``), and rounded down;
entries above the known price are cut to it, as no cheaper assignment has one.
Rounded down, a bound of the rounded network is one of the network. Where no price is known, the first search has a
coarse unit, after the sum of the greatest entries, and the next a finer one after the price of the first answer.

Its options belong to a thread and the rest of its state to the process: each call sets all options that matter, and
calls wait for one another. It prints nothing and leaves no handler of signals behind.

Example: entries of 0.25 and 3e-7 s below a known price of 0.5 s in 10 tables: the unit is 5e-11 s, the entries are
5e9 and 6,000.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from shardpass.planning.solve.network import Costs, Network
from shardpass.planning.solve.result import Result

PRECISE = 1e-9  # of a price: rounding of sums of floats
FINE, FINER = 1e7, 1e10  # units in the known price; the second of networks up to SMALL entries
SMALL = 1 << 11  # above it, arc consistencies may take minutes to settle where units are fine
SETTLED = 100  # units that arc consistencies leave where they are: for fewer they may take minutes to settle
LARGEST = 1e15  # a whole number that sums of thousands of tables keep below toulbar2's largest cost, 5e17
_one_at_a_time = threading.Lock()


def available() -> bool:
    """Return whether toulbar2 is installed; it has no wheels for some platforms."""
    try:
        import pytoulbar2.pytb2  # noqa: F401  40 ms, which programs that elimination solves need not spend
    except ImportError:
        return False
    return True


def solve(network: Network, known: Mapping[int, int] | None, backtracks: int) -> Result:
    """Return the best assignment after ``backtracks``, no more expensive than ``known``, with a lower bound of
    all prices.
    """
    if not network.tables:  # toulbar2 ends the process where there is no variable
        return Result(dict.fromkeys(network.sizes, 0), network.base, network.base)
    best = Result({}, math.inf, -math.inf)
    if known is not None and math.isfinite(price := network.price(known)):
        best = Result(known, price, -math.inf)
    while True:
        slack = best.price - network.base
        if slack <= 0:
            return replace(best, bound=best.price, why="")
        upper = slack if math.isfinite(slack) else _greatest(network)
        fine = FINER if network.entries <= SMALL else FINE
        unit = upper / (fine if math.isfinite(slack) else LARGEST)
        better = _searched(network, slack, unit, backtracks)
        bound = max(best.bound, better.bound)
        if better.price >= best.price:
            return replace(best, bound=min(bound, best.price), why=better.why)
        best = replace(better, bound=min(bound, better.price))
        if better.why or unit <= 2 * abs(best.price) / fine:
            return best


def _greatest(network: Network) -> float:
    """Return an upper bound of the prices of all allowed assignments."""
    greatest = [table.costs[np.isfinite(table.costs)].max(initial=0.0) for table in network.tables]
    return math.fsum(greatest) * (1 + PRECISE) or 1.0


def _searched(network: Network, slack: float, unit: float, backtracks: int) -> Result:
    """Return the best assignment with a price (without the base) below ``slack``. If there is none, its price is
    infinite.
    """
    upper = slack if math.isfinite(slack) else _greatest(network)
    top = math.ceil(upper / unit) + 1
    with _one_at_a_time:
        numbers, dual, limited = _run(network, top, unit, backtracks)
    values = {} if numbers is None else dict(zip(network.sizes, numbers, strict=True))
    price = math.inf if numbers is None else network.price(values)
    if limited:
        return Result(values, price, network.base + min(dual * unit, upper), f"{backtracks} backtracks were spent")
    if numbers is None:
        return Result(values, price, network.base + upper if math.isfinite(slack) else math.inf)
    return Result(values, price, price - unit * len(network.tables))


def _run(network: Network, top: int, unit: float, backtracks: int) -> tuple[list[int] | None, float, bool]:
    """Run toulbar2: returns (values, bound in units, whether a limit ended the search)."""
    import pytoulbar2
    import pytoulbar2.pytb2 as solver

    solver.init()  # the options of this thread, which are unset in all but the one that imported toulbar2
    problem = pytoulbar2.CFN(top, resolution=0, vac=1, seed=1, verbose=-1)
    options = solver.option
    options.trwsAccuracy = -1  # none
    # a first search, among the values that virtual arc consistency leaves tight: most often these are the best
    options.useRASPS = 1
    options.RASPSnbBacktracks = backtracks
    options.backtrackLimit = backtracks
    options.costThreshold = options.costThresholdPre = SETTLED
    wcsp = problem.CFN.wcsp
    places = {}
    for variable, size in network.sizes.items():
        places[variable] = wcsp.makeEnumeratedVariable(f"v{variable}", 0, size - 1)
    for table in network.tables:
        scope = [places[variable] for variable in table.variables]
        costs = np.floor(np.minimum(table.costs / unit, top))
        _add(problem, scope, costs)
    answer = problem.Solve()
    limited = bool(options.limited)
    dual = float(problem.GetDDualBound())
    return (None if answer is None else list(answer[0])), dual, limited


def _add(problem: object, scope: list[int], costs: Costs) -> None:
    """Add a table to toulbar2's problem; a table of two or three variables is added as an array, which is faster."""
    scopes = np.array([scope])
    if len(scope) in (2, 3):
        problem.AddFunctions(scopes, costs[None])  # type: ignore[attr-defined]
    else:
        problem.AddFunction(scope, costs.ravel().tolist())  # type: ignore[attr-defined]
