"""Tiles whose borders cross: the halo's rows are cut before padding and slicing, and from nothing else."""

import re

import numpy as np
import pytest

import shardpass
from shardpass.pipeline.run import run_pipeline
from shardpass.redistribute import plan_redistribution
from shardpass.redistribute.program import ops

HALVES = "{mesh['a'=2,'b'=2,'c'=2], [{}, {'a'}]}"
QUARTERS = "{mesh['a'=2,'b'=2,'c'=2], [{}, {'a','b'}]}"
EIGHTHS = "{mesh['a'=2,'b'=2,'c'=2], [{'c'}, {'a','b'}]}"


def test_a_padded_and_sliced_value_is_used_once():
    """9 columns in tiles of 5 become tiles of 3, and 3 rows, padded to 4, are split: pad, slice, slide."""
    plan = plan_redistribution((3, 9), "f32", HALVES, EIGHTHS, num_devices=8)
    kinds = [type(op) for op in plan.program]
    assert kinds[:3] == [ops.Pad, ops.DynamicSlice, ops.Slide]
    text = plan.to_module()
    sliced = re.findall(r"(%\w+) = stablehlo.dynamic_slice .*-> tensor<2x5xf32>", text)
    assert len(sliced) == 1
    assert len(re.findall(rf"{sliced[0]}\b", text)) == 2  # where it is made, and one use


def test_rows_of_a_padded_tile_are_right_on_devices():
    plan = plan_redistribution((3, 9), "f32", HALVES, EIGHTHS, num_devices=8)
    x = np.arange(27, dtype=np.float32).reshape(3, 9)
    np.testing.assert_array_equal(np.asarray(shardpass.compile(plan.to_module())(x)[0]), x)


@pytest.mark.parametrize("edges", [((0, -1), (0, 1)), ((0, 1), (0, -1)), ((1, 0), (0, 0)), ((-1, 0), (1, 0))])
@pytest.mark.parametrize("interior", [0, 1])
def test_a_pad_of_the_users_keeps_its_edges(edges, interior):
    """A tile that is moved along the sliding dimension, or padded and spread along the other, before it slides.

    The witness is NumPy, tile by tile: 9 columns on two devices are tiles of 5, the last with one column of rubbish.
    """
    (low, high), rows = edges, 3
    shape = (rows + (rows - 1) * interior + low[0] + high[0], 5)
    kind, tile = (f"tensor<{r}x{c}xf32>" for r, c in ((rows, 5), shape))
    whole, sent = f"tensor<{rows}x9xf32>", f"tensor<{shape[0]}x9xf32>"
    plan = plan_redistribution((shape[0], 9), "f32", HALVES, QUARTERS, num_devices=8)
    assert any(isinstance(op, ops.Slide) for op in plan.program)
    out = f"tensor<{plan.target_tile[0]}x{plan.target_tile[1]}xf32>"
    text = f"""module attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
      func.func public @main(%x: {kind} {{mhlo.sharding = "{{manual}}", shardpass.global_type = {whole},
          shardpass.sharding = "{HALVES}"}}) -> ({out} {{mhlo.sharding = "{{manual}}",
          shardpass.global_type = {sent}, shardpass.sharding = "{QUARTERS}"}}) {{
        %z = stablehlo.constant dense<7.0> : tensor<f32>
        %p = stablehlo.pad %x, %z, low = [{low[0]}, {low[1]}], high = [{high[0]}, {high[1]}],
          interior = [{interior}, 0] : ({kind}, tensor<f32>) -> {tile}
        %r = stablehlo.custom_call @shardpass.redistribute(%p) {{shardpass.from = "{HALVES}",
          shardpass.to = "{QUARTERS}", shardpass.global_type = {sent}}} : ({tile}) -> {out}
        return %r : {out}
      }}
    }}"""
    x = np.arange(1, 9 * rows + 1, dtype=np.float32).reshape(rows, 9)
    padded = []
    for part in (x[:, :5], np.pad(x[:, 5:], ((0, 0), (0, 1)))):
        spread = np.full((rows + (rows - 1) * interior, 5), 7, np.float32)
        spread[:: interior + 1] = part
        grown = np.pad(spread, [(max(a, 0), max(b, 0)) for a, b in zip(low, high, strict=True)], constant_values=7)
        padded.append(grown[max(-low[0], 0) :, max(-low[1], 0) :][: shape[0], :5])
    wanted = np.concatenate(padded, axis=1)[:, :9]
    (got,) = shardpass.compile(run_pipeline(text, "shardpass-redistribute"))(x)
    np.testing.assert_array_equal(np.asarray(got), wanted)
