"""``shardpass check`` says what ``shardpass check-replication`` says, as a warning, or as an error when strict.

And ``check``, ``run --check`` and ``prove`` agree:

    check        run --check   prove
    no error     passes        proved, or unknown: a proof may say less, and names the op at which it ends
    SP237        either        not proved: devices may differ, and nothing says that they do
    an error     an error      an error
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from support.corpus import corpus

import shardpass
from shardpass.cli.check import run_and_collect
from shardpass.cli.check_module import check_module
from shardpass.cli.check_replication import PIPELINE
from shardpass.diagnostics import Severity, ShardpassError, collect
from shardpass.diagnostics.table_passes import NOT_REPLICATED
from shardpass.ir.context import parse_module
from shardpass.proving import prove
from shardpass.runtime.run_report import try_out
from tools.prove.proofs import texts

OK, MAY_DIFFER, ERROR = "no error", NOT_REPLICATED.id, "error"
PASSES, FAILS = "passes", "fails"
PROVED, REFUTED, UNKNOWN = "proved", "refuted", "unknown"
AGREE = {(OK, PASSES, PROVED), (OK, PASSES, UNKNOWN), (ERROR, ERROR, ERROR)} | {
    (MAY_DIFFER, run, proof) for run in (PASSES, FAILS) for proof in (REFUTED, UNKNOWN)
}


@dataclass(frozen=True)
class Answers:
    """What the three commands say of a program, and why where they do not agree on all."""

    check: str
    run: str
    proof: str
    why: str = ""

    @property
    def agree(self) -> bool:
        return (self.check, self.run, self.proof) in AGREE


def answers(text: str) -> Answers:
    """Asks the three commands about the program ``text``."""
    findings = check_module(text, "program", perf=False).findings
    errors = [one for one in findings if one.severity is Severity.ERROR]
    doubtful = any(one.code == NOT_REPLICATED.id for one in findings)
    check = ERROR if errors else MAY_DIFFER if doubtful else OK
    try:
        with collect():
            whole, local = parse_module(text), shardpass.run_pipeline(text, "partition")
            trial = try_out(local, original=whole)
            assert trial.check is not None
            passed = not trial.check.failed and not trial.check.special.mismatches
            verdict = prove(whole, shardpass.run_pipeline(text, "partition"))
    except ShardpassError as error:
        return Answers(check, ERROR, ERROR, str(error).splitlines()[0])
    proof = REFUTED if verdict.refuted else UNKNOWN if verdict.unknown else PROVED
    why = [f"result {one.index} differs by {one}" for one in trial.check.failed]
    why += [remark.message for remark in trial.check.remarks] if not passed else []
    why += [] if proof == PROVED else str(verdict).splitlines()[:1]
    return Answers(check, PASSES if passed else FAILS, proof, "; ".join(why))


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
