"""LAPACK's triangular solves: columns of b are solved one by one where a is on the left, rows where it is on the right.

The witness is NumPy: the solution of a strip of b is that strip of the whole solution.
"""

import numpy as np
import pytest

from shardpass.proving import prove

SIDES = {"L": 76, "R": 82}


def program(side, dim, parts):
    """One of ``parts`` devices has a strip of b along ``dim`` of the matrix, with the whole of a."""
    tile = [1, 4, 4]
    tile[dim] //= parts
    kind = f"tensor<{'x'.join(map(str, tile))}xf32>"
    a = "tensor<1x4x4xf32>"
    split = ",".join(str(parts if d == dim else 1) for d in range(3))
    side_of = ' {{mhlo.sharding = "{{manual}}", shardpass.global_type = tensor<1x4x4xf32>, shardpass.sharding = "{s}"}}'
    whole, strip = (
        (side_of.format(s=s) if parts > 1 else "") for s in ("{replicated}", f"{{devices=[{split}]<=[{parts}]}}")
    )
    return f"""module attributes {{mhlo.num_partitions = 2 : i32}} {{
  func.func @main(%a: {a}{whole}, %b: {kind}{strip}) -> ({kind}{strip}) {{
    %0 = stablehlo.custom_call @lapack_strsm_ffi(%a, %b) {{mhlo.backend_config = {{diag = 78 : ui8,
      side = {SIDES[side]} : ui8, trans_x = 78 : ui8, uplo = 76 : ui8}}}} : ({a}, {kind}) -> {kind}
    return %0 : {kind}
  }}
}}"""


def solved(side, a, b):
    return np.linalg.solve(a, b) if side == "L" else np.linalg.solve(a.T, b.T).T


@pytest.mark.parametrize(("side", "dim"), [("L", 2), ("L", 1), ("R", 1), ("R", 2)])
def test_strips_of_the_right_hand_side(side, dim):
    rng = np.random.default_rng(1)
    a, b = np.tril(rng.normal(size=(4, 4))) + 4 * np.eye(4), rng.normal(size=(4, 4))
    strip = (slice(None), slice(0, 2)) if dim == 2 else (slice(0, 2), slice(None))
    free = (side == "L") == (dim == 2)
    if free:
        np.testing.assert_allclose(solved(side, a, b[strip]), solved(side, a, b)[strip])
    assert prove(program(side, dim, 1), program(side, dim, 2), refute=False).proved is free
