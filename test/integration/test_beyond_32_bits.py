"""One array of more than 2^31 elements, computed: 9 GiB of memory."""

from __future__ import annotations

import numpy as np
import pytest

import shardpass

SIZE = 2**31 + 1


@pytest.mark.slow
def test_a_sum_of_ones() -> None:
    """An uneven dimension of 2147483649 rows over 8 devices: i8 holds the sum of its ones modulo 256.

    A tile has 268435457 rows, 1 modulo 256, so that a tile more or less changes the sum.
    """
    text = f"""module attributes {{mhlo.num_partitions = 8 : i32}} {{
      func.func @main(%x: tensor<{SIZE}xi8> {{mhlo.sharding = "{{devices=[8]<=[8]}}"}}) -> tensor<i8> {{
        %c = stablehlo.constant dense<0> : tensor<i8>
        %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [0]
          : (tensor<{SIZE}xi8>, tensor<i8>) -> tensor<i8>
        return %0 : tensor<i8>
      }}
    }}"""
    run = shardpass.compile(shardpass.run_pipeline(text, "partition"))
    assert int(np.asarray(run(np.ones(SIZE, np.int8))[0])) == SIZE % 256
