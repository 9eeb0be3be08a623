"""Mark properties of a per-device program that XLA does not infer.

1. That the program is manual. XLA reads this off arguments and results and spreads it along uses. An op that is made of
   nothing (a constant, an iota, a random number, the device's own id) and meets no argument is not reached: XLA then
   refuses the program, or aborts (``!IsManualLeaf()``, hlo_sharding.cc). So a collective of such a value, and
   ``partition_id``, are marked ``{manual}``:

       %c = constant      %s = all_reduce(%c) {mhlo.sharding = "{manual}"}
       %arg               %t = all_reduce(%arg), with no mark

   Not all collectives are marked: with such marks Shardy of jaxlib 0.12 aborts on modules that JAX hands it.

2. That an FFT is row-major. XLA's CPU client has no other, yet lets the layouts of the ops beside an FFT reach it, and
   fails as it runs (``IsMonotonicWithDim0Major``, fft_thunk.cc): a collective along another dimension than the leading
   one wants that dimension to be the major one. ``custom_call @LayoutConstraint``, as JAX writes it, ends this and
   costs nothing itself. Operand and result of an FFT have one layout, so that one constraint holds both. XLA's TPU
   compiler computes FFTs by products, and refuses such a call on complex numbers: ``free_layouts`` removes it.

State of 1: ``_Reached.known``, of ops and carried values that were asked for. Whether an argument reaches a value is
asked backward from the collectives, since most of them find an argument after few steps; so a program without
collectives costs a look at its names, and any other O(ops) at most.

Checked with jaxlib 0.10.2 and 0.12.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from jaxlib.mlir import ir

from shardpass.ir.annotations import MANUAL, SHARDING, custom_call_target, make_custom_call
from shardpass.ir.collectives import OPS
from shardpass.ir.walk import OpLists, named, operation

ACROSS_DEVICES = OPS | {"stablehlo.partition_id"}
ALONG = ("all_gather_dim", "scatter_dimension", "split_dimension", "concat_dimension")
LAYOUT = "LayoutConstraint"
WHILE, FFT = "stablehlo.while", "stablehlo.fft"


def mark_manual(lists: OpLists) -> bool:
    """Mark ``partition_id`` and collectives that depend on no argument as manual; returns whether any was."""
    across = named(lists.blocks, ACROSS_DEVICES) if not lists.names.isdisjoint(ACROSS_DEVICES) else []
    reached = _Reached()
    alone = [op for op in across if not any(map(reached.value, op.operands))]
    for op in alone:
        op.attributes[SHARDING] = ir.StringAttr.get(MANUAL, op.context)
    return bool(alone)


class _Reached:
    """The values that depend on an argument, through operands and through values that loops carry.

    The arguments of a block count as reached, save those of a loop, for which the value that the loop starts from
    counts.
    """

    def __init__(self) -> None:
        self.known: dict[Any, bool] = {}  # op, or argument of a loop's block

    def value(self, value: Any) -> bool:
        """Return whether ``value`` depends on an argument, following inputs until the first argument."""
        root = _source(value)
        path = [(root, self._inputs(root))]
        while path and root not in self.known:
            source, inputs = path[-1]
            before = next(inputs, None)
            if before is None:
                self.known[source] = False
                path.pop()
            elif before not in self.known:
                path.append((before, self._inputs(before)))
            if before is not None and self.known.get(before):
                self.known.update(dict.fromkeys((step for step, _ in path), True))  # each is made of the next
                break
        return self.known[root]

    def _inputs(self, source: Any) -> Iterator[Any]:
        """Return the inputs of ``source``; a block argument that no loop carries is decided here."""
        inputs: Iterable[Any] = ()
        if not isinstance(source, ir.BlockArgument):
            inputs = source.operands
        else:
            loop, number = operation(source.owner.owner), source.arg_number
            if loop.name == WHILE and number < len(loop.operands):
                inputs = (loop.operands[number],)
            else:
                self.known[source] = True
        return map(_source, inputs)


def _source(value: Any) -> Any:
    """Return the op that defines ``value``; for an argument of a block, the argument."""
    owner = value.owner
    return value if isinstance(owner, ir.Block) else operation(owner)


def keep_row_major(lists: OpLists) -> bool:
    """Constrain the layout of FFT results that a collective could change; returns whether there were any."""
    if FFT not in lists.names or not any(_is_along_minor(op) for op in named(lists.blocks, OPS)):
        return False
    for op in named(lists.blocks, (FFT,)):
        result = op.results[0]
        rank = result.type.rank
        if rank < 2:
            continue
        with ir.InsertionPoint.after(op), op.location:
            minor_first = ir.Attribute.parse(f"[dense<{[*range(rank)][::-1]}> : tensor<{rank}xindex>]")
            layouts = {"operand_layouts": minor_first, "result_layouts": minor_first}
            kept = make_custom_call(LAYOUT, result, result.type, layouts)
        result.replace_all_uses_except(kept, operation(kept.owner))
    return True


def free_layouts(module: Any) -> None:
    """Remove the constraints of ``keep_row_major`` from a module that XLA compiles for TPUs."""
    for op in named(OpLists(module.operation).blocks, ("stablehlo.custom_call",)):
        if custom_call_target(op) == LAYOUT and getattr(op.operands[0].owner, "name", "") == FFT:
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()


def _is_along_minor(op: Any) -> bool:
    """Return whether the collective ``op`` is along a dimension other than the first."""
    return any(op.attributes[name].value for name in ALONG if name in op.attributes)
