"""Elements of two bits, which XLA's CPU client gathers and adds wrongly (by tools/fuzz/redistribute.py)."""

import execution as x
import ml_dtypes
import numpy as np
import pytest

from shardpass.redistribute import plan_redistribution

CASES = {
    "gathered": ((12, 6), "{devices=[4,1,2]<=[8] last_tile_dim_replicate}", "{replicated}"),
    "gathered, sizes that do not divide": ((1, 7, 3), "{devices=[1,8,1]<=[8]}", "{replicated}"),
    "exchanged": ((16, 8), "{devices=[8,1]<=[8]}", "{devices=[2,4]<=[8]}"),
    "borders that cross": ((9, 5), "{devices=[2,4]<=[8]}", "{devices=[4,2]<=[2,4]T(1,0)}"),
}


@pytest.mark.parametrize("element", ["i2", "ui2"])
@pytest.mark.parametrize("name", CASES)
def test_two_bits_come_through(element: str, name: str) -> None:
    shape, source, target = CASES[name]
    plan = plan_redistribution(shape, element, source, target, num_devices=8)
    kind = np.dtype(getattr(ml_dtypes, {"i2": "int2", "ui2": "uint2"}[element]))
    whole = np.random.default_rng(0).integers(0, 2, shape).astype(np.int8).astype(kind)
    x.expect_tiles(plan, whole, x.run_plan(plan, whole))


def test_two_bits_are_added() -> None:
    plan = plan_redistribution((4, 6), "i2", "{unreduced}", "{devices=[2,1,4]<=[8] last_tile_dim_replicate}")
    owner = np.random.default_rng(0).integers(0, 8, (4, 6))
    tiles = [np.where(owner == d, 1, 0).astype(np.int8).astype(ml_dtypes.int2) for d in range(8)]
    got = x.execute(x.compile_text(plan.to_module(), 8), tiles)
    assert all((tile.astype(np.int8) == 1).all() for tile in got)
    assert all(tile.dtype == ml_dtypes.int2 for tile in got)


def test_nothing_to_do_is_no_conversion() -> None:
    text = plan_redistribution((4, 6), "i2", "{devices=[2,1]<=[2]}", "{devices=[2,1]<=[2]}").to_module()
    assert "convert" not in text
