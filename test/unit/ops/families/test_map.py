"""map and get_dimension_size against one device."""

from __future__ import annotations

import numpy as np
import pytest
from support.differential import check_text, draw


@pytest.mark.parametrize("split", ["[4,2]<=[8]", "[2,4]<=[8]"])
def test_map_is_elementwise(split: str) -> None:
    x = "tensor<10x6xf32>"
    text = f"""
      module attributes {{mhlo.num_partitions = 8 : i32}} {{
        func.func @main(%x: {x} {{mhlo.sharding = "{{devices={split}}}"}},
            %y: {x} {{mhlo.sharding = "{{devices={split}}}"}})
            -> ({x} {{mhlo.sharding = "{{devices={split}}}"}}) {{
          %0 = "stablehlo.map"(%x, %y) <{{dimensions = array<i64: 0, 1>}}> ({{
            ^bb0(%a: tensor<f32>, %b: tensor<f32>):
              %1 = stablehlo.multiply %a, %b : tensor<f32>
              %2 = stablehlo.add %1, %a : tensor<f32>
              stablehlo.return %2 : tensor<f32>
          }}) : ({x}, {x}) -> {x}
          return %0 : {x}
        }}
      }}"""
    rng = np.random.default_rng(1)
    seen = check_text(text, [draw(rng, (10, 6), np.float32), draw(rng, (10, 6), np.float32)], interpreter=True)
    assert seen.kinds == []


def test_the_size_is_that_of_the_whole_array() -> None:
    text = """
      module attributes {mhlo.num_partitions = 8 : i32} {
        func.func @main(%x: tensor<10x6xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}) -> tensor<i32> {
          %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<10x6xf32>) -> tensor<i32>
          return %0 : tensor<i32>
        }
      }"""
    assert check_text(text, interpreter=True).kinds == []
