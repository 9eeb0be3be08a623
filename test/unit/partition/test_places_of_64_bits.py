"""Arrays with more elements along a dimension than 32 bits can count."""

from __future__ import annotations

import pytest

import shardpass

SIZE = 2**40
PROGRAM = """func.func @main(%x: tensor<{n}xf32> {{mhlo.sharding = "{{devices=[8]<=[8]}}"}}) -> tensor<{m}xf32> {{
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  {body}
  return %0 : tensor<{m}xf32>
}}"""
PAD = (
    "%0 = stablehlo.pad %x, %c, low = [3], high = [4], interior = [0] "
    ": (tensor<{n}xf32>, tensor<f32>) -> tensor<{m}xf32>"
)
JOINED = "%0 = stablehlo.concatenate %x, %x, dim = 0 : (tensor<{n}xf32>, tensor<{n}xf32>) -> tensor<{m}xf32>"


@pytest.mark.parametrize(("body", "more"), [(PAD, 7), (JOINED, SIZE)])
def test_places_that_do_not_fit_are_refused_where_they_are(body: str, more: int) -> None:
    text = PROGRAM.format(n=SIZE, m=SIZE + more, body=body.format(n=SIZE, m=SIZE + more))
    with pytest.raises(shardpass.ShardpassError) as caught:
        shardpass.run_pipeline(text, "partition")
    assert (caught.value.code, caught.value.diagnostics[0].place.line) == ("SP306", 3)


def test_an_elementwise_op_has_no_places() -> None:
    text = PROGRAM.format(n=SIZE, m=SIZE, body=f"%0 = stablehlo.sine %x : tensor<{SIZE}xf32>")
    assert f"stablehlo.sine %arg0 : tensor<{SIZE // 8}xf32>" in str(shardpass.run_pipeline(text, "partition"))
