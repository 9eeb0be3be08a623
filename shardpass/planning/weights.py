"""Weights, told by how they are used: a start of the search in which they wait.

A weight is a right operand of a product, as ``x @ w`` is written, or a right operand of a convolution; conversions and
moves may lie between. Where weights and batch are split over one axis, a propagation in which weights wait splits the
activations over the batch. Complexity: one walk over the ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shardpass.program.program import NOTHING_SAID, Op, Program, Said

TAKES_WEIGHTS = ("stablehlo.dot_general", "stablehlo.convolution")
HANDS_ON = frozenset(f"stablehlo.{name}" for name in ("convert", "transpose", "reshape", "custom_call"))


def right_operands_late(program: Program) -> Program | None:
    """``program`` with its weights, and its results, taking part late; None where that changes nothing."""
    weights = right_operands(program)
    said = dict(program.said)
    arguments = [value for value in program.body.arguments if value in weights]
    late = [value for value in arguments if _may_wait(said.get(value, NOTHING_SAID))]
    if not late:
        return None
    for value in late:
        said[value] = _waiting(said[value], program, value)
    results = tuple(
        _waiting(one, program, value) if _may_wait(one) and program.arrays[value] is not None else one
        for one, value in zip(program.results_said, program.body.returned, strict=True)
    )
    return replace(program, said=said, results_said=results)


def _may_wait(said: Said) -> bool:
    """Whether a sharding splits anything and the user gave it no turn of its own."""
    sharding = said.sharding
    return sharding is not None and sharding.is_tiled and not said.priorities


def _waiting(said: Said, program: Program, value: int) -> Said:
    return replace(said, priorities=(1,) * program.array(value).rank)


def right_operands(program: Program, lookups: Sequence[str] = ()) -> set[int]:
    """Values that are right operands of products, or that only conversions and moves lie between.

    ``lookups``: ops whose first operand counts too.
    """
    source: dict[int, int] = {}
    found: set[int] = set()

    def origin(value: int) -> int:
        return source.get(value, value)

    def look(op: Op) -> None:
        if op.name in HANDS_ON and op.operands:
            source.update((result, origin(op.operands[0])) for result in op.results)
        elif op.name in TAKES_WEIGHTS:
            found.add(origin(op.operands[1]))
        elif op.name in lookups:
            found.add(origin(op.operands[0]))

    for op in program.body.every_op():
        look(op)
    return found
