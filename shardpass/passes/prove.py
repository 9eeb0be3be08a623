"""``shardpass-prove``: proves that the program of one device computes the pipeline's input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shardpass.diagnostics import ShardpassError, report
from shardpass.diagnostics.table_proving import NO_PROOF, NOT_PROVED, NOTHING_WHOLE
from shardpass.ir.annotations import TILED_SHARDING, Signature, main_of
from shardpass.ir.locations import place_of
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.given import given_module
from shardpass.pipeline.registry import register


@register
@dataclass(frozen=True)
class Prove(ModulePass):
    """Proves that the partitioned program computes the pipeline's input; does not change the module.

    Last in the pipeline ``partition``, and off by default. The prover shares no rule with the earlier passes
    (docs/proving.md). A refuted program is an error: on some inputs the two programs differ. An
    unproved program is a warning that names the op at which the proof ends.

    Options:
        prove: "false": the pass does nothing
        require-proof: an unproved program is an error; the programs are not run to find a difference
        strict-proof: proofs use no law that holds only approximately for floats, such as x + 0 = x

    Input:

        module attributes {mhlo.num_partitions = 2 : i32} {
          func.func @main(%x: tensor<8x4xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"})
              -> (tensor<8x4xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) {
            %0 = stablehlo.negate %x : tensor<8x4xf32>
            return %0 : tensor<8x4xf32>
          }
        }

    Output:

        module attributes {mhlo.num_partitions = 2 : i32} {
          func.func @main(%x: tensor<8x4xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"})
              -> (tensor<8x4xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) {
            %0 = stablehlo.negate %x : tensor<8x4xf32>
            return %0 : tensor<8x4xf32>
          }
        }
    """

    name = "shardpass-prove"
    summary = "prove the partitioned program (off unless asked for)"

    prove: bool = False
    require_proof: bool = False
    strict_proof: bool = False

    @property
    def compares(self) -> bool:
        return self.prove

    def run(self, module: Any) -> bool:
        if not self.prove:
            return False
        whole = given_module()
        if whole is None or _is_partitioned(whole):
            raise NOTHING_WHOLE.error(place_of(main_of(module).location), name=self.name)
        self._prove(whole, module)
        return False

    def _prove(self, whole: Any, module: Any) -> None:
        from shardpass.proving import prove  # programs that are not proved load no prover

        without = NO_PROOF if self.require_proof else NOT_PROVED
        try:
            verdict = prove(whole, module, refute=not self.require_proof, strict=self.strict_proof)
            finding = verdict.diagnostic(without)
        except ShardpassError as error:  # main of the whole program takes tokens, or partial sums
            first = error.diagnostics[0]
            finding = without.at(first.place, op="func.func", why=first.message, about="main")
        if finding is not None:
            report(finding)


def _is_partitioned(module: Any) -> bool:
    signature = Signature(main_of(module))
    return any(TILED_SHARDING in row for row in (*signature.arguments, *signature.results))
