"""Arrays whose positions fill 64 bits, or more than these."""

from __future__ import annotations

import pytest

import shardpass

SPLIT = '{mhlo.sharding = "{devices=[8]<=[8]}"}'


def partitioned(size: int, body: str) -> str:
    text = f"""func.func @main(%x: tensor<{size}xi64> {SPLIT}) -> (tensor<{size}xi64> {SPLIT}) {{
      {body} : tensor<{size}xi64>
      return %0 : tensor<{size}xi64>
    }}"""
    return str(shardpass.run_pipeline(text, "partition{effort=0}"))


@pytest.mark.parametrize("size", [2**40, 2**63 - 1])
def test_an_elementwise_op_has_no_places(size: int) -> None:
    assert f"stablehlo.negate %arg0 : tensor<{-(-size // 8)}xi64>" in partitioned(size, "%0 = stablehlo.negate %x")


@pytest.mark.parametrize(("size", "fits"), [(2**63 - 8, True), (2**63 - 1, False)])
def test_places_beyond_64_bits_are_refused_where_they_are(size: int, fits: bool) -> None:
    """The last tile of 2^63 - 1 elements would end at 2^63."""
    body = "%0 = stablehlo.iota dim = 0"
    if fits:
        assert f"stablehlo.iota dim = 0 : tensor<{size // 8}xi64>" in partitioned(size, body)
        return
    with pytest.raises(shardpass.ShardpassError) as caught:
        partitioned(size, body)
    diagnostic = caught.value.diagnostics[0]
    assert (diagnostic.code, diagnostic.place.line) == ("SP306", 2)
    assert diagnostic.message == f"stablehlo.iota needs the number {2**63}, which does not fit its type, i64"
