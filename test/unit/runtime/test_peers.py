"""What XLA's and Shardy's partitioners make of a small program, and how they fail."""

import subprocess

import pytest

from shardpass.diagnostics import ShardpassError
from shardpass.runtime import peers
from shardpass.runtime.peers import WAYS, ask

# f32[8,16] times f32[16,8] over a split contraction: a sum of 256 bytes, of which 3/4 go in and 3/4 come out
PRODUCT = """
module @product attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                         %y: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
      -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
    %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
       : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }
}
"""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("given", [PRODUCT, PRODUCT.encode()], ids=["text", "bytes"])
def test_collectives_bytes_and_memory(way, given):
    found = ask(way, given, 4)
    assert dict(found.kinds) == {"all_reduce": (1, 384)}
    assert (found.bytes_received, found.runs) == (384, 1)
    arguments, results = 2 * (8 * 4 * 4), 8 * 8 * 4
    assert arguments + results <= found.memory <= 8 * (arguments + results)  # and temporaries


def test_a_program_that_it_refuses_is_told_with_its_reason():
    with pytest.raises(ShardpassError) as error:
        ask("xla", "module { nonsense }", 4)
    assert error.value.code == "SP553"
    assert "xla" in str(error.value)


def test_a_process_that_ends_without_a_word_is_told_with_its_status(monkeypatch):
    ended = subprocess.CompletedProcess([], 7, b"", b"\n")
    monkeypatch.setattr(peers.subprocess, "run", lambda *_, **__: ended)
    with pytest.raises(ShardpassError, match="status 7"):
        ask("shardy", PRODUCT, 4)


def test_a_process_that_takes_too_long_is_told(monkeypatch):
    def late(command, **_):
        raise subprocess.TimeoutExpired(command, peers.TIMEOUT)

    monkeypatch.setattr(peers.subprocess, "run", late)
    with pytest.raises(ShardpassError, match="600 s"):
        ask("shardy", PRODUCT, 4)
