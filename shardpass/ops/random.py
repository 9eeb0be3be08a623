"""Random numbers: the same ones as on one device, or at least the same ones on every device.

* rng_bit_generator is a function of its state. Every device generates all bits and keeps its part, so they are those
  of the whole program, for every algorithm and on every backend. (What a state means, and so how to skip ahead to
  a tile's first word, differs by backend for the default algorithm.)
* rng is no function: each device draws numbers of its own, or the same ones on each tile, as the backend likes. Device
  0's are taken everywhere: the others add ``nothing`` to them in an all_reduce.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.reductions import all_reduce
from shardpass.ir.tensors import shape_of
from shardpass.ops import positions as at
from shardpass.ops.factors import Rule, RuleBuilder
from shardpass.ops.local import Local
from shardpass.ops.registry import define


def whole(op: Any) -> Rule | None:
    """No dimension of any operand or result is split; a result is sliced after."""
    return RuleBuilder([len(shape_of(v)) for v in op.operands], [len(shape_of(v)) for v in op.results]).build()


def localize_rng(local: Local) -> list[Any] | None:
    op, mesh = local.op, local.mesh
    axes = tuple(range(len(mesh.sizes)))
    if mesh.num_devices == 1:
        return None
    drawn = op.results[0]
    element = drawn.type.element_type
    first = min(int(device) for device in mesh.mesh.devices.reshape(-1))
    with local.after():
        device = at.as_i32(hlo.partition_id())
        mine = at.compare("EQ", device, at.splat(at.i32(), first))
        kept = hlo.select(mine, drawn, at.splat(drawn.type, at.nothing_text(element)))
        joined = all_reduce(kept, mesh.groups(axes), at.adder(element), next(local.channels))
        local.explain(joined, axes, f"{op.name} draws other numbers on each device: device {first}'s are taken")
        return [joined.results[0]]


define("stablehlo.rng_bit_generator", "random", whole, note="every device generates all bits and keeps its part")
define("stablehlo.rng", "random", whole, localize_rng, note="drawn on one device: a device's numbers are its own")
