"""What MLIR's canonicalize and cse, in the pipeline `partition`, must keep: they were made without us in mind."""

from collections import Counter
from pathlib import Path

import pytest
from jaxlib.mlir import ir

from shardpass.ir.collectives import collectives
from shardpass.pipeline.named import NAMED
from shardpass.pipeline.run import run_pipeline

EXAMPLES = Path(__file__).parents[3] / "examples"
CLEANUP = "canonicalize,cse"
BEFORE, _, _ = NAMED["partition"].partition("," + CLEANUP)


def said(module):
    """Everything that the runtime and the explainer read off a partitioned module."""
    function = next(op for op in module.body.operations if op.attributes["sym_name"].value == "main")
    signature = [str(function.attributes[name]) for name in ("function_type", "arg_attrs", "res_attrs")]
    attributes = {a if isinstance(a, str) else a.name for a in module.operation.attributes}
    return signature, attributes, Counter(collectives(module))


def count(module):
    found = []
    module.operation.walk(lambda op: (found.append(op.name), ir.WalkResult.ADVANCE)[1])
    return len(found)


@pytest.mark.parametrize("name", ["mlp_train_step", "transformer_block", "shard_map_matmul", "format_rows"])
def test_signature_and_collectives_stay_with_places_and_reasons(name):
    file = EXAMPLES / f"{name}.mlir"
    raw = run_pipeline(file.read_text(), BEFORE, filename=str(file))
    clean = run_pipeline(raw, CLEANUP)
    assert said(clean) == said(raw)
    assert count(clean) <= count(raw)


def test_they_pay():
    file = EXAMPLES / "transformer_block.mlir"
    raw = run_pipeline(file.read_text(), BEFORE, filename=str(file))
    assert count(run_pipeline(raw, CLEANUP)) < 0.9 * count(raw)
