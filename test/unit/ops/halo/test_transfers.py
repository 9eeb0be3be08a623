"""Plans of exchanges against NumPy: rounds are carried out on arrays, and every window must hold its elements."""

from __future__ import annotations

import numpy as np
import pytest

from shardpass.ops.halo import Reach, neighbours, uniform
from shardpass.ops.transfers import (
    Exchange,
    Held,
    Round,
    Window,
    plan_exchange,
    reversed_tiles,
    tile_of,
    tile_window,
    tiles,
)

NOTHING = -1


def hold(part: Held, length: int) -> np.ndarray:
    """[positions, length]: the global index that each local element stands for; NOTHING where none."""
    out = np.full((len(part.base), length), NOTHING)
    for p, (base, start, stop) in enumerate(zip(part.base, part.start, part.stop, strict=True)):
        for index in range(start, stop):
            out[p, index - base] = index
    return out


def run(plan: Exchange, local: np.ndarray, width: int) -> np.ndarray:
    """Carries out ``plan``; asserts that a round sends and receives once at most."""
    out = np.full((len(local), width), NOTHING)
    for step in (*plan.kept, *plan.rounds):
        senders = [q for q in step.source if q >= 0]
        assert len(set(senders)) == len(senders)
        for p, q in enumerate(step.source):
            if q >= 0:
                piece = local[q, step.take[q] : step.take[q] + step.extent[p]]
                assert len(piece) == step.extent[p] <= step.size
                out[p, step.put[p] : step.put[p] + step.extent[p]] = piece
    return out


def assert_serves(plan: Exchange, local: np.ndarray, window: Window, held: set[int]) -> None:
    found = run(plan, local, window.width)
    for p, (start, stop) in enumerate(zip(window.start, window.stop, strict=True)):
        for index in range(start, stop):
            assert found[p, index - start] == (index if index in held else NOTHING), (p, index)


def lacking(held: Held, window: Window) -> int:
    """The most elements that any position needs and does not hold: no plan receives fewer."""
    there = set().union(*(range(a, b) for a, b in zip(held.start, held.stop, strict=True)))
    return max(
        len(set(range(a, b)) & there - set(range(c, d)))
        for a, b, c, d in zip(window.start, window.stop, held.start, held.stop, strict=True)
    )


@pytest.mark.parametrize("count", [2, 3, 4, 8])
@pytest.mark.parametrize(("size", "results"), [(16, 16), (16, 13), (13, 16), (5, 11), (24, 12), (7, 1)])
@pytest.mark.parametrize(("first", "step", "span"), [(0, 1, 1), (3, 1, 1), (-2, 1, 5), (-1, 2, 3), (4, 3, 2)])
def test_windows_of_tiles(count: int, size: int, results: int, first: int, step: int, span: int) -> None:
    window = Reach(0, 0, 0, size, results, first, step, span).window(count)
    held = tiles(size, count)
    plan = plan_exchange((held,), window)
    assert_serves(plan, hold(held, tile_of(size, count)), window, set(range(size)))
    assert plan.received >= lacking(held, window)
    assert all(r.source[p] != p for r in plan.rounds for p in range(count))


@pytest.mark.parametrize("seed", range(30))
def test_windows_at_random(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count, size = int(rng.integers(2, 7)), int(rng.integers(1, 30))
    width = int(rng.integers(1, 12))
    start = rng.integers(-8, size + 8, count)
    stop = start + rng.integers(0, width + 1, count)
    window = Window(tuple(map(int, start)), tuple(map(int, stop)), width)
    held = tiles(size, count)
    plan = plan_exchange((held,), window)
    assert_serves(plan, hold(held, tile_of(size, count)), window, set(range(size)))


@pytest.mark.parametrize("sizes", [(8, 8), (7, 9, 2), (1, 15), (16, 1), (0, 5), (3, 3, 3, 3)])
@pytest.mark.parametrize("count", [2, 4, 5])
def test_arrays_side_by_side(sizes: tuple[int, ...], count: int) -> None:
    """Concatenation: each position holds a tile of every array."""
    held, local, offset, shift = [], [], 0, 0
    for size in sizes:
        held.append(tiles(size, count, offset, shift))
        tile = tile_of(size, count)
        local.append(np.where((own := hold(tiles(size, count), tile)) >= 0, own + offset, NOTHING))
        offset, shift = offset + size, shift + tile
    window = tile_window(offset, count)
    plan = plan_exchange(tuple(held), window)
    assert_serves(plan, np.concatenate(local, axis=1), window, set(range(offset)))


@pytest.mark.parametrize(("size", "count"), [(8, 4), (9, 4), (10, 8), (3, 8), (12, 5)])
def test_tiles_turned_round(size: int, count: int) -> None:
    held = reversed_tiles(size, count)
    turned = hold(tiles(size, count), tile_of(size, count))[:, ::-1]
    local = np.where(turned >= 0, size - 1 - turned, NOTHING)  # coordinates from the end
    assert (local[local >= 0] < size).all()
    np.testing.assert_array_equal(local, hold(held, tile_of(size, count)))
    plan = plan_exchange((held,), tile_window(size, count))
    assert_serves(plan, local, tile_window(size, count), set(range(size)))


def test_a_halo_is_one_round_for_each_side() -> None:
    """Windows of three over tiles of four: one element from the left, one from the right."""
    window = Reach(0, 0, 0, 16, 16, -1, 1, 3).window(4)
    plan = plan_exchange((tiles(16, 4),), window)
    assert uniform(tiles(16, 4), window)
    assert neighbours(window, 4) == [(-1, 3, 1), (0, 0, 4), (1, 0, 1)]
    assert sorted(r.source for r in plan.rounds) == [(-1, 0, 1, 2), (1, 2, 3, -1)]
    assert plan.received == 2


def test_a_wide_halo_reaches_past_the_neighbour() -> None:
    window = Reach(0, 0, 0, 8, 8, -5, 1, 6).window(4)  # five to the left, of tiles of two
    assert neighbours(window, 2) == [(-3, 1, 1), (-2, 0, 2), (-1, 0, 2), (0, 0, 2)]


def test_the_second_half_goes_to_all() -> None:
    """x[8:] of 16 over 4: each tile of the half is cut in two, and no position receives twice."""
    plan = plan_exchange((tiles(16, 4),), Reach(0, 0, 0, 16, 8, 8).window(4))
    assert plan.received == 4  # two rounds of two elements; a gather would be twelve
    assert len(plan.rounds) == 2


def test_turning_even_tiles_round_swaps_positions() -> None:
    plan = plan_exchange((reversed_tiles(8, 4),), tile_window(8, 4))
    assert plan == Exchange((), (Round(2, (3, 2, 1, 0), (0,) * 4, (0,) * 4, (2,) * 4),))


@pytest.mark.parametrize("dilation", [2, 3, 5])
@pytest.mark.parametrize(("size", "results", "first", "step", "span"), [(9, 20, -1, 1, 3), (6, 7, 0, 2, 4)])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_dilated_windows_hold_every_element_they_span(
    dilation: int, size: int, results: int, first: int, step: int, span: int, count: int
) -> None:
    """Element i lies at i * dilation; ``phase`` says how far into the window the first one lies."""
    reach = Reach(0, 0, 0, size, results, first, step, span, dilation)
    whole, (window, phase) = reach.window(count), reach.elements(count)
    for p in range(count):
        assert 0 <= phase[p] < dilation
        assert window.start[p] * dilation == whole.start[p] + phase[p]
        spanned = [i for i in range(-50, 50) if whole.start[p] <= i * dilation < whole.stop[p]]
        assert list(range(window.start[p], window.stop[p])) == spanned or not spanned
        assert window.stop[p] - window.start[p] <= window.width


def test_results_counted_from_the_end() -> None:
    """A turned kernel of seven over four positions: the first tile is the last in the window's order."""
    window = Reach(0, 0, 0, 9, 7, 0, 1, 3, backward=True).window(4)
    assert window.start == (5, 3, 1, -1)
    assert window.stop == (9, 7, 5, 3)
