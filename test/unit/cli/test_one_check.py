"""``shardpass check`` says what ``shardpass check-replication`` says, as a warning, or as an error when strict.

And ``check``, ``run --check`` and ``prove`` agree; ``tools.prove.agreement`` asks them about all programs.
"""

from __future__ import annotations

import pytest
from support.corpus import corpus

from shardpass.cli.check import run_and_collect
from shardpass.cli.check_module import check_module
from shardpass.cli.check_replication import PIPELINE
from shardpass.diagnostics import Severity
from tools.prove.agreement import ERROR, FAILS, MAY_DIFFER, OK, PASSES, PROVED, REFUTED, UNKNOWN, Answers, answers
from tools.prove.proofs import texts

REGION = """
module @jit_f attributes {mhlo.num_partitions = 2 : i32} {
  func.func public @main(%x: tensor<8x8xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"})
      -> (tensor<8x4xf32> {mhlo.sharding = "{replicated}"}) {
    %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{devices=[1,2]<=[2]}"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {mhlo.sharding = "{manual}"} : (tensor<8x8xf32>) -> tensor<8x4xf32>
    %2 = stablehlo.negate %1 : tensor<8x4xf32>
    %3 = stablehlo.custom_call @Sharding(%2) {mhlo.sharding = "{manual}"} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %4 = stablehlo.custom_call @SPMDShardToFullShape(%3) {mhlo.sharding = "{replicated}"} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %4 : tensor<8x4xf32>
  }
}
"""  # noqa: E501  IR is not wrapped


@pytest.mark.parametrize("strict", [False, True])
def test_a_region_whose_devices_differ(strict: bool) -> None:
    """Each device returns its own columns of x, and the program says that all return the same."""
    (one,) = check_module(REGION, "m.mlir", strict=strict).findings
    assert (one.code, one.severity) == ("SP237", Severity.ERROR if strict else Severity.WARNING)
    assert ("shardpass check-replication" in one.remedy) == (not strict)


def test_the_commands_agree_on_the_corpus() -> None:
    regions = [(name, text) for name, text in corpus() if "SPMDShardToFullShape" in text or "manual_comp" in text]
    found = 0
    for name, text in regions:
        asked = {d.message for d in run_and_collect(text, name, PIPELINE) if d.code == "SP237"}
        assert {d.message for d in check_module(text, name).findings if d.code == "SP237"} == asked, name
        found += bool(asked)
    assert len(regions) > 20
    assert found > 2


@pytest.mark.parametrize("name", ["format_rows", "format_blocks.sdy", "shard_map_matmul"])
def test_check_run_and_prove_agree_on_a_right_program(name: str) -> None:
    (text,) = (text for one, text in texts([name]) if one == name)
    assert answers(text) == Answers(OK, PASSES, PROVED)


def test_they_agree_on_a_program_with_an_error() -> None:
    text = REGION.replace("{devices=[1,2]<=[2]}", "{devices=[2]<=[2]}")
    got = answers(text)
    assert (got.check, got.run, got.proof) == (ERROR, ERROR, ERROR)
    assert got.agree


def test_they_agree_on_devices_that_differ() -> None:
    got = answers(REGION)
    assert got.check == MAY_DIFFER
    assert got.proof != PROVED
    assert got.agree


@pytest.mark.parametrize(
    ("one", "agree"),
    [
        (Answers(OK, PASSES, UNKNOWN), True),
        (Answers(OK, FAILS, PROVED), False),
        (Answers(OK, PASSES, REFUTED), False),
        (Answers(OK, ERROR, ERROR), False),
        (Answers(ERROR, PASSES, PROVED), False),
        (Answers(MAY_DIFFER, PASSES, PROVED), False),
    ],
)
def test_what_agrees(one: Answers, agree: bool) -> None:
    assert one.agree == agree
