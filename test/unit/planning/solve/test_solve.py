"""The best assignment and its bound, by each solver, beside every assignment of small random networks."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from support.networks import every_price, grid, random_tables

from shardpass.planning.solve import highs, toulbar2
from shardpass.planning.solve.network import Network, Table
from shardpass.planning.solve.result import Result
from shardpass.planning.solve.solve import Budget, solve

Solver = Callable[[Network, Mapping[int, int] | None, int], Result]


def with_all(network: Network, known: Mapping[int, int] | None, _: int) -> Result:
    return solve(network, known)


def without_elimination(network: Network, known: Mapping[int, int] | None, backtracks: int) -> Result:
    return solve(network, known, Budget(0, 0, backtracks))


SOLVERS = [with_all, without_elimination, toulbar2.solve, highs.solve]


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("forbidden", [0.0, 0.3])
@pytest.mark.parametrize("solver", SOLVERS[:3])
def test_the_optimum_and_its_bound(solver: Solver, forbidden: float, wide: bool) -> None:
    impossible = 0
    for seed in range(150):
        tables, sizes = random_tables(seed, forbidden, wide)
        least = min(every_price(tables, sizes))
        known = dict.fromkeys(sizes, 0) if seed % 3 else None
        found = solver(Network.of(tables, sizes), known, 1000)
        if math.isinf(least):
            impossible += 1
            assert math.isinf(found.price)
            assert not found.values
            continue
        assert found.price == pytest.approx(least, rel=1e-6), seed
        assert found.bound <= least * (1 + 1e-9), seed
        assert found.gap < 1e-6
        assert not found.why
        assert found.values.keys() == sizes.keys()
    assert bool(impossible) == bool(forbidden)


def test_arc_consistencies_settle_early() -> None:
    """At a threshold of one unit they took over a minute on 640,000 entries, and 0.1 s at this one."""
    import pytoulbar2.pytb2

    toulbar2.solve(grid(2, 7, 4), None, 50)
    options = pytoulbar2.pytb2.option
    assert (options.costThreshold, options.costThresholdPre) == (100, 100)


@pytest.mark.parametrize("forbidden", [0.0, 0.3])
def test_highs_says_the_same(forbidden: float) -> None:
    for seed in range(60):
        tables, sizes = random_tables(seed, forbidden)
        least = min(every_price(tables, sizes))
        found = highs.solve(Network.of(tables, sizes), None, 1000)
        assert found.price == pytest.approx(least, rel=1e-6), seed
        assert math.isinf(least) or found.bound <= least * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_both_say_the_same_of_what_enumeration_cannot_try(seed: int) -> None:
    """36 variables of three values each: 1.5e17 assignments."""
    network = grid(seed, 6, 3)
    found, witness = toulbar2.solve(network, None, 10**6), highs.solve(network, None, 10**6)
    assert found.price == pytest.approx(witness.price, rel=1e-6)
    assert found.bound == pytest.approx(found.price, rel=1e-6)
    assert not found.why
    assert solve(network).price == pytest.approx(found.price)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_known_assignment_that_is_best_is_the_answer(solver: Solver) -> None:
    for seed in range(40):
        tables, sizes = random_tables(seed)
        network = Network.of(tables, sizes)
        best = solver(network, None, 1000)
        again = solver(network, best.values, 1000)
        assert again.price == pytest.approx(best.price, rel=1e-9)
        assert again.gap < 1e-6


@pytest.mark.parametrize("solver", SOLVERS)
def test_networks_with_nothing_to_decide(solver: Solver) -> None:
    assert solver(Network.of([]), None, 10) == Result({}, 0.0, 0.0)
    one = solver(Network.of([Table((7,), np.array([3.0]))]), None, 10)
    assert (dict(one.values), one.price, one.bound) == ({7: 0}, 3.0, 3.0)
    free = solver(Network.of([], {4: 3}), {4: 2}, 10)
    assert (free.price, free.bound) == (0.0, 0.0)
    assert free.values[4] in range(3)


def test_a_limit_is_told_and_the_bound_stays_one() -> None:
    """Frustrated tables whose bound does not meet the price before a search, which may take one backtrack alone."""
    network = grid(3, 9, 6)
    short = toulbar2.solve(network, dict.fromkeys(network.sizes, 0), 1)
    long = toulbar2.solve(network, None, 10**6)
    assert "backtracks" in short.why
    assert short.bound <= long.price * (1 + 1e-9)
    assert short.price >= long.price * (1 - 1e-9)
    assert short.gap > 0
    assert long.gap < 1e-6


def test_without_a_wheel_highs_solves(monkeypatch: pytest.MonkeyPatch) -> None:
    network = grid(1, 4, 3)
    expected = solve(network, None, Budget(1, 1, 200)).price
    monkeypatch.setattr(toulbar2, "available", lambda: False)
    found = solve(network, None, Budget(1, 1, 200))
    assert found.price == pytest.approx(expected, rel=1e-6)
    monkeypatch.setattr(highs, "MOST_ENTRIES", 10)
    known = dict.fromkeys(network.sizes, 0)
    left = solve(network, known, Budget(1, 1, 200))
    assert "toulbar2 is not installed" in left.why
    assert left.price == pytest.approx(network.price(known))
    assert left.bound <= expected


def test_one_variable_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its least entry, over all of its tables and the base; forbidden where every value is."""
    network = Network.of([Table((5,), np.array([3.0, math.inf, 1.5])), Table((5,), np.array([0.5, 0.0, 4.0]))], {5: 3})
    monkeypatch.setattr("shardpass.planning.solve.solve.Elimination", None)
    found = solve(network)
    assert (dict(found.values), found.price, found.bound) == ({5: 0}, 3.5, 3.5)
    none = solve(Network.of([Table((5,), np.array([math.inf, 1.0])), Table((5,), np.array([0.0, math.inf]))]))
    assert (none.values, none.bound) == ({}, math.inf)


def test_a_ring_of_wide_variables_needs_no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside products of matrices in which sums are minima: the least of the diagonal goes around the ring."""
    random, count, size = np.random.default_rng(7), 6, 48
    costs = [random.random((size, size)) for _ in range(count)]
    around = costs[0]
    for table in costs[1:]:
        around = (around[:, :, None] + table[None]).min(axis=1)
    ring = Network.of([Table((place, (place + 1) % count), table) for place, table in enumerate(costs)])
    assert size**3 > Budget().entries  # too many to eliminate a variable with more than two neighbours
    monkeypatch.setattr(toulbar2, "available", lambda: pytest.fail("a solver was asked"))
    found = solve(ring)
    assert found.price == pytest.approx(float(np.diagonal(around).min()))
    assert found.gap == 0


def test_the_same_again_and_in_threads() -> None:
    networks = [grid(seed, 7, 4) for seed in range(6)]
    expected = [toulbar2.solve(network, None, 50) for network in networks]
    assert [toulbar2.solve(network, None, 50) for network in networks] == expected
    found: dict[int, list[Result]] = {}

    def work(thread: int) -> None:
        found[thread] = [toulbar2.solve(network, None, 50) for network in networks]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {0: expected, 1: expected}


def test_another_process_says_the_same_and_prints_nothing() -> None:
    program = (
        "from support.networks import grid; from shardpass.planning.solve import toulbar2; import sys;"
        "found = toulbar2.solve(grid(2, 7, 4), None, 50); sys.stderr.write(repr(sorted(found.values.items())))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment(), check=True)
    assert ran.stdout == ""
    assert ran.stderr == repr(sorted(toulbar2.solve(grid(2, 7, 4), None, 50).values.items()))


def test_no_handler_of_signals_is_left() -> None:
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGVTALRM, signal.SIGXCPU)
    before = [signal.getsignal(one) for one in signals], caught()
    toulbar2.solve(grid(2, 7, 4), None, 50)
    assert ([signal.getsignal(one) for one in signals], caught()) == before


def caught() -> str:
    """The signals for which this process has a handler, as the kernel knows them; "" where it does not say."""
    try:
        with open("/proc/self/status") as status:
            return next((line for line in status if line.startswith("SigCgt")), "")
    except OSError:
        return ""


def test_an_interrupt_during_a_solve_reaches_python() -> None:
    """The child says when its solve begins, is interrupted, and must end by KeyboardInterrupt as soon as that ends."""
    program = (
        "import sys; from support.networks import grid; from shardpass.planning.solve import toulbar2\n"
        "toulbar2.solve(grid(0, 3, 2), None, 5)\n"
        "network = grid(3, 9, 6)\n"
        "try:\n"
        "    print('begins', flush=True)\n"
        "    while True: toulbar2.solve(network, None, 50)\n"
        "except KeyboardInterrupt: print('interrupted', flush=True)\n"
        "print(toulbar2.solve(grid(0, 3, 2), None, 5).price > 0)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment())
    assert child.stdout is not None
    assert child.stdout.readline() == "begins\n"
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=60)[0] == "interrupted\nTrue\n"
    assert child.returncode == 0


def environment() -> dict[str, str]:
    """Of a child that imports as this test does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.mark.parametrize("budget", [Budget(), Budget(0, 1 << 20), Budget(0, 0)])
def test_an_answer_after_entries_are_raised(budget: Budget) -> None:
    """One in each round, as planned reshards raise them; each answer is that of all assignments."""
    random = np.random.default_rng(3)
    for seed in range(6):
        tables, sizes = random_tables(seed)
        for _ in range(5 if tables else 0):
            network = Network.of(tables, sizes)
            found = solve(network, None, budget)
            assert found.price == pytest.approx(min(every_price(tables, sizes)))
            assert found.price == pytest.approx(network.price(found.values))
            place = int(random.integers(len(tables)))
            table = tables[place]
            raised = table.costs.copy()
            raised[tuple([found.values[variable] for variable in table.variables])] += random.random()
            tables[place] = Table(table.variables, raised)
