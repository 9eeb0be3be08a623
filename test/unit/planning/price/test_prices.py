"""What follows from splits alone beside planned redistributions, and how few of these a search still plans."""

from __future__ import annotations

import itertools
import math

import pytest
from support import daily

import shardpass
from shardpass.diagnostics import collect
from shardpass.element_types import element_type
from shardpass.ops.splits.factors import DimAxes
from shardpass.ops.splits.prime_mesh import PrimeMesh, prime_mesh
from shardpass.planning.decide.search import decide
from shardpass.planning.price import prices as module
from shardpass.planning.price.prices import Prices, least_received
from shardpass.program.program import Array
from shardpass.program.table import table_of
from shardpass.redistribute import estimate_bytes
from shardpass.sharding import Mesh

PAIRS = 600  # of splits, drawn each day
MESHES = (Mesh((("x", 2), ("y", 2), ("z", 2))), Mesh((("x", 2), ("y", 3))), Mesh((("x", 8),)))


def splits(rank: int, axes: int) -> list[DimAxes]:
    """Every split of an array of ``rank`` over some of ``axes`` sub-axes, in every order."""
    found = []
    for taken in itertools.product(range(-1, rank), repeat=axes):
        dims = [[axis for axis, dim in enumerate(taken) if dim == one] for one in range(rank)]
        found += list(itertools.product(*[itertools.permutations(one) for one in dims]))
    return found


def array(shape: tuple[int, ...], element: str = "f32") -> Array:
    known = element_type(element)
    return Array(shape, known, known.bytes(math.prod(shape)))


def diverge(source: DimAxes, target: DimAxes) -> bool:
    return any(one != other for s, t in zip(source, target, strict=True) for one, other in zip(s, t, strict=False))


@pytest.mark.parametrize("mesh", [prime_mesh(mesh) for mesh in MESHES], ids=lambda mesh: str(mesh.mesh))
def test_what_is_said_to_be_exact_is_what_the_planner_receives(mesh: PrimeMesh) -> None:
    """Of even tiles; where tiles change their owners, a bound that is met by most plans."""
    every, met, bounds = splits(2, len(mesh.sizes)), 0, 0
    known = array((mesh.num_devices * 2, mesh.num_devices * 3))
    for source, target in daily.drawn(list(itertools.product(every, repeat=2)), PAIRS):
        ends = mesh.sharding(source), mesh.sharding(target)
        least, exact = least_received(known, *ends, mesh)
        planned = estimate_bytes(known.shape, "f32", *ends, num_devices=mesh.num_devices)
        assert exact is not diverge(source, target)
        assert least == planned if exact else 0 < least <= planned
        bounds += not exact
        met += not exact and least == planned
    assert met > bounds / 2 or not daily.is_whole()


@pytest.mark.parametrize("mesh", [prime_mesh(mesh) for mesh in MESHES], ids=lambda mesh: str(mesh.mesh))
def test_of_uneven_tiles_a_bound_is_said(mesh: PrimeMesh) -> None:
    """Of each pair; over all of them more than a third of the bytes that are received."""
    every, bounds, received = splits(2, len(mesh.sizes)), 0, 0
    known = array((7, 13))
    for source, target in daily.drawn(list(itertools.product(every, repeat=2)), PAIRS):
        ends = mesh.sharding(source), mesh.sharding(target)
        least, exact = least_received(known, *ends, mesh)
        planned = estimate_bytes(known.shape, "f32", *ends, num_devices=mesh.num_devices)
        assert 0 <= least <= planned
        assert not exact or source == target == ((), ())
        bounds += least
        received += planned
    assert 3 * bounds > received or not daily.is_whole()


def test_the_first_device_of_uneven_tiles_lacks_the_rest_of_its_tile() -> None:
    """10 rows of 8 f32 in tiles of ceil(10/4) = 3 rows; the device is to have ceil(8/4) = 2 columns of all 10 rows."""
    mesh = prime_mesh(MESHES[0])
    ends = mesh.sharding(((0, 1), ())), mesh.sharding(((), (0, 1)))
    assert least_received(array((10, 8)), *ends, mesh) == (4 * (10 * 2 - 3 * 2), False)
    assert Prices(8).least(array((10, 8)), *ends, mesh) == 56
    assert Prices(8).move(array((10, 8)), *ends, mesh) >= 56


def test_nothing_is_said_of_elements_that_share_a_byte() -> None:
    mesh = prime_mesh(MESHES[0])
    ends = mesh.sharding(((0, 1), ())), mesh.sharding(((), (0, 1)))
    assert least_received(array((16, 8), "i4"), *ends, mesh) == (0, False)
    assert Prices(8).least(array((16, 8), "i4"), *ends, mesh) == 0
    assert Prices(8).move(array((16, 8), "i4"), *ends, mesh) > 0


def test_a_search_plans_no_redistribution_for_its_price_where_the_price_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows of x, columns of w and d=8 alone: no tile ever changes its owner for another along one dimension."""
    asked = []

    def counted(*arguments: object, **options: object) -> int:
        asked.append(arguments)
        return estimate_bytes(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "estimate_bytes", counted)
    text = """
    module attributes {mhlo.num_partitions = 8 : i32} {
      func.func @main(%x: tensor<64x64xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"},
                      %w: tensor<64x64xf32> {mhlo.sharding = "{devices=[1,8]<=[8]}"}) -> tensor<64x64xf32> {
        %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
          : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
        %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<64x64xf32>) -> tensor<64x64xf32>
        %2 = stablehlo.add %0, %1 : tensor<64x64xf32>
        return %2 : tensor<64x64xf32>
      }
    }"""
    with collect():
        imported = shardpass.run_pipeline(text, "shardpass-import")
        with imported.context:
            decision = decide(table_of(imported, "propagate").program, {}, 1)
    assert decision.searched is not None
    assert not asked
