"""Plans of exchanges against NumPy: rounds are carried out on arrays, and every window must hold its elements."""

from __future__ import annotations

import numpy as np
import pytest
from support import daily

from shardpass.ops.halo.placing import placed
from shardpass.ops.halo.reach import Reach
from shardpass.ops.halo.strips import Strip, StripLayout, beside
from shardpass.ops.halo.transfers import (
    Exchange,
    Owned,
    Round,
    Window,
    plan_exchange,
    reversed_tiles,
    tile_of,
    tile_window,
    tiles,
)

NOTHING = -1


def hold(part: Owned, length: int) -> np.ndarray:
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


def assert_serves(plan: Exchange, local: np.ndarray, window: Window, owned: set[int]) -> None:
    found = run(plan, local, window.width)
    for p, (start, stop) in enumerate(zip(window.start, window.stop, strict=True)):
        for index in range(start, stop):
            assert found[p, index - start] == (index if index in owned else NOTHING), (p, index)
    assert_put_together(plan, local, window, owned)


def lacking(owned: Owned, window: Window) -> int:
    """The most elements that any position needs and does not hold: no plan receives fewer."""
    there = set().union(*(range(a, b) for a, b in zip(owned.start, owned.stop, strict=True)))
    return max(
        len(set(range(a, b)) & there - set(range(c, d)))
        for a, b, c, d in zip(window.start, window.stop, owned.start, owned.stop, strict=True)
    )


@pytest.mark.parametrize("count", [2, 3, 4, 8])
@pytest.mark.parametrize(("size", "results"), [(16, 16), (16, 13), (13, 16), (5, 11), (24, 12), (7, 1), (0, 3)])
@pytest.mark.parametrize(("first", "step", "span"), [(0, 1, 1), (3, 1, 1), (-2, 1, 5), (-1, 2, 3), (4, 3, 2)])
def test_windows_of_tiles(count: int, size: int, results: int, first: int, step: int, span: int) -> None:
    window = Reach(0, 0, size, results, first, step, span).window(count)
    owned = tiles(size, count)
    plan = plan_exchange((owned,), window)
    assert_serves(plan, hold(owned, tile_of(size, count)), window, set(range(size)))
    assert plan.received >= lacking(owned, window)
    assert all(r.source[p] != p for r in plan.rounds for p in range(count))


@pytest.mark.parametrize("seed", daily.drawn(range(30), 10))
def test_windows_at_random(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count, size = int(rng.integers(2, 7)), int(rng.integers(1, 30))
    width = int(rng.integers(1, 12))
    start = rng.integers(-8, size + 8, count)
    stop = start + rng.integers(0, width + 1, count)
    window = Window(tuple(map(int, start)), tuple(map(int, stop)), width)
    owned = tiles(size, count)
    plan = plan_exchange((owned,), window)
    assert_serves(plan, hold(owned, tile_of(size, count)), window, set(range(size)))


@pytest.mark.parametrize("sizes", [(8, 8), (7, 9, 2), (1, 15), (16, 1), (0, 5), (3, 3, 3, 3)])
@pytest.mark.parametrize("count", [2, 4, 5])
def test_arrays_side_by_side(sizes: tuple[int, ...], count: int) -> None:
    """Concatenation: each position holds a tile of every array."""
    owned, local, offset, shift = [], [], 0, 0
    for size in sizes:
        owned.append(tiles(size, count, offset, shift))
        tile = tile_of(size, count)
        local.append(np.where((own := hold(tiles(size, count), tile)) >= 0, own + offset, NOTHING))
        offset, shift = offset + size, shift + tile
    window = tile_window(offset, count)
    plan = plan_exchange(tuple(owned), window)
    assert_serves(plan, np.concatenate(local, axis=1), window, set(range(offset)))


@pytest.mark.parametrize(("size", "count"), [(8, 4), (9, 4), (10, 8), (3, 8), (12, 5)])
def test_tiles_turned_round(size: int, count: int) -> None:
    owned = reversed_tiles(size, count)
    turned = hold(tiles(size, count), tile_of(size, count))[:, ::-1]
    local = np.where(turned >= 0, size - 1 - turned, NOTHING)  # coordinates from the end
    assert (local[local >= 0] < size).all()
    np.testing.assert_array_equal(local, hold(owned, tile_of(size, count)))
    plan = plan_exchange((owned,), tile_window(size, count))
    assert_serves(plan, local, tile_window(size, count), set(range(size)))


def put_together(plan: Exchange, local: np.ndarray, width: int) -> np.ndarray:
    """What ``placed`` says, carried out: whole boxes are put, one over the other, with what lies beyond the runs."""
    placement = placed(plan, width)
    long = np.concatenate([local, np.full((len(local), 50), NOTHING - 1)], axis=1)
    out = np.full((len(local), placement.length), NOTHING)
    end = 0
    for box in placement.boxes:
        if placement.aligned:
            assert len(set(box.put)) == 1
            assert box.put[0] >= end
            assert not box.masked
            end = box.put[0] + box.round.size
        for p, q in enumerate(box.round.source):
            size = box.round.extent[p] if box.masked else box.round.size
            taken = long[q, box.take[q] : box.take[q] + size] if q >= 0 else np.full(size, NOTHING - 1)
            out[p, box.put[p] : box.put[p] + size] = taken
    return out[:, :width]


def assert_put_together(plan: Exchange, local: np.ndarray, window: Window, owned: set[int]) -> None:
    found = put_together(plan, local, window.width)
    for p, (start, stop) in enumerate(zip(window.start, window.stop, strict=True)):
        for index in range(start, stop):
            assert index not in owned or found[p, index - start] == index, (p, index)


def side_by_side(layout: StripLayout, local: np.ndarray, count: int, tile: int) -> np.ndarray:
    """[positions, width]: the windows that ``layout`` brings; NOTHING where no one sends."""
    row = []
    for number, strip in enumerate(layout.strips):
        if strip.distance == 0:
            row.append(local[:, strip.first : strip.first + strip.length])
            continue
        piece = np.full((count, strip.length), NOTHING)
        for shipment in layout.shipments:
            senders = [q for q in shipment.source if q >= 0]
            assert len(set(senders)) == len(senders)
            assert all(0 <= t <= tile - shipment.size for t in shipment.take)
            for at in [first for n, first in shipment.strips if n == number]:
                for p, q in enumerate(shipment.source):
                    if q >= 0:
                        box = local[q, shipment.take[q] : shipment.take[q] + shipment.size]
                        piece[p] = box[at : at + strip.length]
        row.append(piece)
    whole = np.concatenate([*row, np.full((count, layout.length), NOTHING)], axis=1)
    return np.stack([whole[p, at : at + layout.width] for p, at in enumerate(layout.offsets)])


def assert_beside(size: int, count: int, window: Window) -> None:
    layout, tile = beside(size, count, window), tile_of(size, count)
    found = side_by_side(layout, hold(tiles(size, count), tile), count, tile)
    for p, (start, stop) in enumerate(zip(window.start, window.stop, strict=True)):
        for index in range(start, stop):
            inside = 0 <= index < size
            # a permute that serves both sides brings something also where nothing is: it is overwritten
            assert found[p, index - start] == (index if inside else NOTHING) or (layout.shared and not inside)


@pytest.mark.parametrize("count", [2, 3, 4, 8])
@pytest.mark.parametrize(("size", "results"), [(16, 16), (16, 13), (13, 16), (5, 11), (24, 12), (7, 1), (0, 3)])
@pytest.mark.parametrize(
    ("first", "step", "span"), [(0, 1, 1), (3, 1, 1), (-2, 1, 5), (-1, 2, 3), (4, 3, 2), (-40, 1, 2)]
)
def test_strips_beside_the_tile(count: int, size: int, results: int, first: int, step: int, span: int) -> None:
    assert_beside(size, count, Reach(0, 0, size, results, first, step, span).window(count))


@pytest.mark.parametrize("seed", daily.drawn(range(60), 20))
def test_windows_at_random_beside_the_tile(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count, size, width = int(rng.integers(2, 7)), int(rng.integers(1, 30)), int(rng.integers(1, 12))
    start = rng.integers(-8, size + 8, count)
    stop = start + rng.integers(0, width + 1, count)
    assert_beside(size, count, Window(tuple(map(int, start)), tuple(map(int, stop)), width))


def test_a_halo_is_one_permute_for_each_side() -> None:
    """Windows of three over tiles of four: one element from the left, one from the right."""
    window = Reach(0, 0, 16, 16, -1, 1, 3).window(4)
    layout = beside(16, 4, window)
    assert layout.strips == (Strip(-1, 3, 1), Strip(0, 0, 4), Strip(1, 0, 1))
    assert [s.source for s in layout.shipments] == [(-1, 0, 1, 2), (1, 2, 3, -1)]
    assert layout.received == plan_exchange((tiles(16, 4),), window).received == 2
    assert not layout.shared


def test_on_two_positions_one_permute_serves_both_sides() -> None:
    layout = beside(8, 2, Reach(0, 0, 8, 8, -1, 1, 3).window(2))
    assert layout.strips == (Strip(-1, 3, 1), Strip(0, 0, 4), Strip(1, 0, 1))
    (only,) = layout.shipments
    assert (only.size, only.source, only.take) == (1, (1, 0), (3, 0))  # the last element of one, the first of the other
    assert layout.shared


def test_a_wide_halo_reaches_past_the_neighbour() -> None:
    layout = beside(8, 4, Reach(0, 0, 8, 8, -5, 1, 6).window(4))  # five to the left, of tiles of two
    assert layout.strips == (Strip(-3, 1, 1), Strip(-2, 0, 2), Strip(-1, 0, 2), Strip(0, 0, 2))


def test_windows_that_drift_are_cut_from_the_strips() -> None:
    """Twelve results over tiles of four of sixteen: window p begins at 3p, p elements before the tile."""
    layout = beside(16, 4, Reach(0, 0, 16, 12).window(4))
    assert layout.strips == (Strip(-1, 1, 3), Strip(0, 0, 3))
    assert layout.offsets == (3, 2, 1, 0)
    assert layout.received == 3


def test_a_roll_of_even_tiles_is_put_together_without_offsets() -> None:
    """Ten back over four tiles of eight: the end of the second tile before, then most of the one before."""
    wrapped = Owned((-22, -14, -6, 2), (0, 0, 0, 2), (0, 0, 2, 10))  # elements 22 to 31 are results 0 to 9
    others = Owned((10, 18, 26, 34), (10, 18, 26, 32), (18, 26, 32, 32))
    plan = plan_exchange((wrapped, others), tile_window(32, 4))
    placement = placed(plan, 8)
    assert placement.aligned
    assert [(b.put[0], b.round.size) for b in placement.boxes] == [(0, 2), (2, 6)]
    assert plan.received == 8


def test_the_second_half_goes_to_all() -> None:
    """x[8:] of 16 over 4: each tile of the half is cut in two, and no position receives twice."""
    plan = plan_exchange((tiles(16, 4),), Reach(0, 0, 16, 8, 8).window(4))
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
    reach = Reach(0, 0, size, results, first, step, span, dilation)
    whole, (window, phase) = reach.window(count), reach.elements(count)
    for p in range(count):
        assert 0 <= phase[p] < dilation
        assert window.start[p] * dilation == whole.start[p] + phase[p]
        spanned = [i for i in range(-50, 50) if whole.start[p] <= i * dilation < whole.stop[p]]
        assert list(range(window.start[p], window.stop[p])) == spanned or not spanned
        assert window.stop[p] - window.start[p] <= window.width
    owned = [sum(start <= i * dilation < start + whole.width for i in range(-50, 50)) for start in whole.start]
    assert window.width == max(1, *owned)  # no more than the fullest window holds


def test_results_counted_from_the_end() -> None:
    """A turned kernel of seven over four positions: the first tile is the last in the window's order."""
    window = Reach(0, 0, 9, 7, 0, 1, 3, backward=True).window(4)
    assert window.start == (5, 3, 1, -1)
    assert window.stop == (9, 7, 5, 3)
