"""Every example, partitioned: the right numbers, no value too large, and nothing left for XLA to add.

Witnesses of the numbers: the unpartitioned program on one device, XLA's own partitioner on as many devices as the
program asks for, and StableHLO's reference interpreter for the small ones.
"""

import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from jaxlib.mlir import ir

from shardpass.element_types import element_type
from shardpass.ir.annotations import main_of
from shardpass.ir.context import parse_module
from shardpass.ir.tensors import every_op
from shardpass.pipeline.run import run_pipeline
from shardpass.runtime import compile, compile_by_xla, compile_single, interpret
from shardpass.runtime.compare import compare
from shardpass.runtime.hlo import added_by_xla
from shardpass.runtime.inputs import poison, random_inputs
from shardpass.runtime.partitioned_signature import read_signature
from shardpass.sharding import Sharding, parse_sharding

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FILES = sorted(path.name for path in EXAMPLES.glob("*.mlir"))
SMALL = [name for name in FILES if not name.startswith("transformer")]
examples = pytest.mark.parametrize("name", FILES)


@cache
def partitioned(name):
    return run_pipeline((EXAMPLES / name).read_text(), "partition", filename=f"examples/{name}")


def inputs(name, seed=0):
    return random_inputs(read_signature(partitioned(name)).arguments, seed)


def references(name):
    """Results of the unpartitioned program on one device, and of XLA's partitioner; both notations share them."""
    return _references(f"{name.partition('.')[0]}.sdy.mlir")


@cache
def _references(name):
    text = (EXAMPLES / name).read_text()
    found = {"xla": compile_by_xla(text)(*inputs(name))}
    if not _manual(text):
        found["one device"] = compile_single(text)(*inputs(name))
    return {witness: [np.asarray(r) for r in results] for witness, results in found.items()}


def _manual(text):
    return "SPMDFullToShardShape" in text or "sdy.manual_computation" in text


def assert_close(found, name):
    for witness, wanted in references(name).items():
        wrong = [difference for difference in compare(found, wanted) if not difference.passed]
        assert not wrong, f"{witness}: " + "; ".join(f"result {d.index}: {d}" for d in wrong)


@cache
def compiled(name):
    return compile(partitioned(name))


@examples
def test_numbers_on_xla(name):
    exe = compiled(name)
    results = exe.run(*exe.place(*inputs(name), padding=poison))
    assert_close(results, name)


@pytest.mark.turns(4)
@pytest.mark.parametrize("name", SMALL)
def test_numbers_on_the_interpreter(name):
    assert_close(interpret(partitioned(name), *inputs(name), padding=poison), name)


@examples
def test_xla_adds_no_collective(name):
    module = partitioned(name)
    assert added_by_xla(compiled(name).hlo_text(), module) == []


# --- no value too large


def values(module):
    """(op, type) of every tensor value that an op of main computes, its regions included."""
    for op in every_op(main_of(module).operation):
        for result in op.results:
            if isinstance(result.type, ir.RankedTensorType):
                yield op, result.type


def bytes_of(shape, element):
    return element_type(str(element)).bytes(math.prod(shape))


def largest_tile(module):
    """Bytes of the greatest tile among the values of a propagated module, each under its own sharding.

    Manual regions, and what has no sharding, count with the shapes that are written there.
    """
    found = 0
    for op in every_op(main_of(module).operation):
        shardings = sharding_of(op)
        for result, sharding in zip(op.results, shardings, strict=True):
            if not isinstance(result.type, ir.RankedTensorType):
                continue
            shape = tuple(result.type.shape)
            tile = shape if sharding is None or sharding.is_manual else sharding.tile_shape(shape)
            found = max(found, bytes_of(tile, result.type.element_type))
    return found


def sharding_of(op):
    if "mhlo.sharding" not in op.attributes:
        return [None] * len(op.results)
    sharding = parse_sharding(op.attributes["mhlo.sharding"].value)
    return [sharding] if isinstance(sharding, Sharding) else list(sharding)


def check_sizes(propagated, module):
    arguments = [bytes_of(b.tile, b.element) for b in read_signature(module).arguments]
    bound = max([largest_tile(propagated), *arguments])
    sizes = [(bytes_of(kind.shape, kind.element_type), op.name) for op, kind in values(module)]
    largest, op = max(sizes, default=(0, ""))
    assert largest <= bound, f"{op} holds {largest} bytes; no tile is larger than {bound}"


@examples
def test_no_value_is_larger_than_the_shardings_imply(name):
    """Largest local value <= largest tile, over the values of the whole program, under their propagated shardings.

    A step between two shardings may hold the larger of the two tiles, and one of them is then a value's own; an
    operand brought whole to one op alone would be larger than any, and is what this finds.
    """
    text = (EXAMPLES / name).read_text()
    check_sizes(run_pipeline(text, "propagate", filename=f"examples/{name}"), partitioned(name))


def test_a_value_that_is_too_large_is_seen():
    gathering = str(partitioned("format_rows.mlir")).replace(
        "%0 = stablehlo.add %arg0, %arg1 : tensor<2x3xi32>",
        """%1 = "stablehlo.all_gather"(%arg0) {
      all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}
      : (tensor<2x3xi32>) -> tensor<4x3xi32>
    %0 = stablehlo.slice %1 [0:2, 0:3] : (tensor<4x3xi32>) -> tensor<2x3xi32>""",
    )
    propagated = run_pipeline((EXAMPLES / "format_rows.mlir").read_text(), "propagate")
    check_sizes(propagated, partitioned("format_rows.mlir"))
    with pytest.raises(AssertionError, match="all_gather holds 48 bytes; no tile is larger than 24"):
        check_sizes(propagated, parse_module(gathering))
