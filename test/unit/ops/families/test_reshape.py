"""reshape where cut points do not nest, or sizes do not divide, against the whole program on one device."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from jax.sharding import PartitionSpec as P
from support.differential import draw
from support.split import check_split

from shardpass.ops.families.reshape import DimGroup, Rows, exchanged, groups_of

pytestmark = pytest.mark.turns(2)

RNG = np.random.default_rng(5)
CASES = [
    ((6, 4), (8, 3)),
    ((5, 4), (20,)),
    ((20,), (5, 4)),
    ((6, 10), (15, 2, 2)),
    ((9, 8), (3, 3, 8)),
    ((1, 12), (12, 1)),
    ((30, 7), (5, 6, 7)),
    ((6, 5, 4), (10, 12)),
    ((3, 4, 6), (12, 2, 3)),
    ((6, 4, 18), (8, 3, 9, 2)),
]


@pytest.mark.parametrize(("source", "target"), CASES)
def test_equal_to_one_device(source: tuple[int, ...], target: tuple[int, ...]) -> None:
    x = draw(RNG, source, np.float32)
    for mesh, given, made in [((4,), P("x"), P("x")), ((3, 2), P("x"), P("x")), ((8,), P("x"), None)]:
        check_split(lambda x: x.reshape(target) + 1, [x], [given], mesh, [made])
    if len(source) > 1 and len(target) > 1:
        check_split(lambda x: x.reshape(target) + 1, [x], [P("x", "y")], (2, 2), [P("y", "x")])


def test_on_the_reference_interpreter() -> None:
    x = draw(RNG, (6, 5, 4), np.int32)
    check_split(lambda x: x.reshape(10, 12), [x], [P("x")], (4,), [P("x")], interpreter=True)


def test_rows_change_places_without_a_gather() -> None:
    """500 rows of 84 into 300 rows of 140 over 8 devices: tiles of 63 and 38 rows differ by little."""
    x = draw(RNG, (500, 84), np.float32)
    seen = check_split(lambda x: x.reshape(300, 20, 7) * 2, [x], [P("x")], (8,), [P("x")])
    assert seen.kinds == ["collective_permute"]
    assert seen.collectives[0].bytes_received < 63 * 84 * 4


def test_tiles_that_hold_the_same_elements_stay() -> None:
    """15 rows of 4 over 3 devices are 20 elements each, on both sides."""
    seen = check_split(lambda x: x.reshape(60), [draw(RNG, (15, 4), np.float32)], [P("x")], (3,), [P("x")])
    assert seen.kinds == []


@pytest.mark.parametrize(
    ("source", "given", "target", "made"),
    [
        ((12,), P(("x", "y")), (3, 4), P("x", "y")),
        ((3, 4), P("x", "y"), (12,), P(("x", "y"))),
        ((3, 2, 2), P("x", "y"), (6, 2), P(("x", "y"))),
        ((2, 6), P(None, ("x", "y")), (2, 3, 2), P(None, "x", "y")),
        ((3, 8, 5), P("x", "y"), (24, 5), P(("x", "y"))),
        ((9, 4), P("x", "y"), (3, 3, 4), P("x", None, None)),  # 9 rows in three: what follows them is whole
    ],
)
def test_an_odd_factor_nests_where_the_mesh_has_it(
    source: tuple[int, ...], given: P, target: tuple[int, ...], made: P
) -> None:
    """Three parts are the rows, and two the halves of a row: both sides hold the same elements."""
    mesh = {"x": 3, "y": 2}
    same = _tiles(source, given, mesh) == _tiles(target, made, mesh)
    seen = check_split(lambda x: x.reshape(target) + 1, [draw(RNG, source, np.float32)], [given], (3, 2), [made])
    assert (seen.kinds == []) is same


def _tiles(shape: tuple[int, ...], spec: P, mesh: dict[str, int]) -> list[list[int]]:
    """The row-major numbers of the elements on each device, by NumPy."""
    whole, found = np.arange(prod(shape)).reshape(shape), []
    for place in np.ndindex(*mesh.values()):
        at, part = dict(zip(mesh, place, strict=True)), whole
        for dim, said in enumerate(spec):
            axes = (said,) if isinstance(said, str) else said or ()
            index = 0
            for axis in axes:
                index = index * mesh[axis] + at[axis]
            part = np.split(part, prod(mesh[axis] for axis in axes), dim)[index]
        found.append(part.ravel().tolist())
    return found


def test_an_odd_factor_is_exchanged_where_the_mesh_has_it_not() -> None:
    """12 over 2 devices are 6 elements each, and 3 rows of 4 are 2 rows and 1: two elements move."""
    seen = check_split(lambda x: x.reshape(3, 4) + 1, [draw(RNG, (12,), np.float32)], [P("x")], (2,), [P("x")])
    assert (seen.kinds, [one.bytes_received for one in seen.collectives]) == (["collective_permute"], [2 * 4])


def test_groups() -> None:
    assert groups_of((6, 4, 5), (8, 3, 5)) == [DimGroup((0, 1), (0, 1)), DimGroup((2,), (2,))]
    assert groups_of((1, 6), (6, 1)) == [DimGroup((0,), ()), DimGroup((1,), (0, 1))]
    assert groups_of((4, 1, 6), (4, 6)) == [DimGroup((0, 1), (0,)), DimGroup((2,), (1,))]
    assert groups_of((1,), ()) == [DimGroup((0,), ())]
    for source, target in CASES:
        for group in groups_of(source, target):
            assert prod(source[d] for d in group.source) == prod(target[d] for d in group.target)


def test_which_groups_are_exchanged() -> None:
    assert not exchanged((24,), (4, 6))
    assert exchanged((5, 4), (20,))
    assert exchanged((6, 4), (8, 3))
    assert not exchanged((7,), (7,))


@pytest.mark.parametrize(("source", "target", "total"), [(6, 8, 24), (5, 20, 20), (7, 3, 21), (500, 300, 1500)])
@pytest.mark.parametrize("count", [2, 3, 8])
def test_rows_arrive(source: int, target: int, total: int, count: int) -> None:
    """The exchange in NumPy: every device ends with its rows of the result."""
    rows = Rows(0, 0, source, target, total)
    have, want = -(-source // count) * (total // source), rows.width(count)
    local = np.full((count, have), -1)
    for p in range(count):
        part = np.arange(total)[p * have : (p + 1) * have]
        local[p, : len(part)] = part
    out = np.full((count, want), -1)
    plan = rows.exchange(count)
    for step in (*plan.kept, *plan.rounds):
        for p, q in enumerate(step.source):
            if q >= 0:
                out[p, step.put[p] : step.put[p] + step.extent[p]] = local[
                    q, step.take[q] : step.take[q] + step.extent[p]
                ]
    for p in range(count):
        part = np.arange(total)[p * want : (p + 1) * want]
        assert out[p, : len(part)].tolist() == part.tolist()
