"""Classes of dimensions and their conflicts, counted by hand on the program of the module's text."""

from __future__ import annotations

from support.programs import read

from shardpass.planning.options.space import space_of
from shardpass.propagation.program import Propagated

PRODUCT = """func.func @main(%x: tensor<64x16xf32> {{mhlo.sharding = "{x}"}},
    %w: tensor<16x32xf32> {{mhlo.sharding = "{w}"}}) -> tensor<64x32xf32> {{
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<64x16xf32>, tensor<16x32xf32>) -> tensor<64x32xf32>
  return %0 : tensor<64x32xf32> }}"""
ROWS, COLUMNS = "{devices=[8,1]<=[8]}", "{devices=[1,8]<=[8]}"


def found(x: str, w: str) -> tuple[int, int]:
    space = space_of(Propagated(read(PRODUCT.format(x=x, w=w)), {}).engine)
    return space.classes, len({conflict[:2] for conflict in space.conflicts})


def test_batch_and_features_want_one_axis() -> None:
    assert found(ROWS, ROWS) == (3, 1)  # they meet in x


def test_batch_and_columns_want_one_axis() -> None:
    assert found(ROWS, COLUMNS) == (3, 1)  # they meet in the result


def test_one_split_alone_is_no_conflict() -> None:
    assert found(ROWS, "{replicated}") == (3, 0)
