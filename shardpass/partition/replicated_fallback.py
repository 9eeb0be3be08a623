"""What an op takes whole although it is split, and why: no gather of that sort goes unsaid.

* SP301: an op without a rule is computed whole on every device.
* SP304: a rule has a dimension that cannot be split (``Kind.REPLICATED``), the operand is split along it, and the
  split that was chosen has no other place for its axes: they are gathered.

A gather that the partitioner prefers, as it moves fewer bytes than the other ways, is no finding: ``explain`` tells it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shardpass.diagnostics import report
from shardpass.diagnostics.table_passes import TAKEN_WHOLE
from shardpass.ir.annotations import custom_call_target
from shardpass.ir.locations import place_of
from shardpass.ir.tensors import inputs_of, is_ranked
from shardpass.ops.registry import OpDef, find
from shardpass.ops.splits.assign import Assignment
from shardpass.ops.splits.factors import Kind, Rule, used_axes
from shardpass.program.program import Node

if TYPE_CHECKING:
    from shardpass.partition.partitioner import Held, Partitioner


def name_of(op: Any) -> str:
    """The op for people: of a custom call, which."""
    target = custom_call_target(op)
    return f"{op.name} @{target}" if target else str(op.name)


def why_no_rule(op: Any) -> str:
    """Why ``op`` has no rule, for people."""
    entry = find(op.name)
    if entry is None:
        return "shardpass has no rule for this op"
    if not all(map(is_ranked, [*op.operands, *op.results])):
        return "some of its operands or results are not arrays"
    if entry.family == "replicated":
        return entry.note
    if len(inputs_of(op)) > len(op.operands):
        return "its region uses values that are defined outside of it"
    if custom_call_target(op):
        return "no rule says how a call of this target may be split"
    return "its rule does not cover this form of the op"


def report_taken_whole(
    work: Partitioner, node: Node, entry: OpDef, rule: Rule, held: list[Held], chosen: Assignment
) -> None:
    """A remark for each operand that is gathered because ``rule`` cannot split what it is split along."""
    for index, (value, dims) in enumerate(zip(held, chosen.operands, strict=True)):
        if value.dims is None or value.dims == dims:
            continue
        kept = used_axes(dims)
        stuck = [
            dim
            for dim, axes in enumerate(value.dims)
            if not kept.issuperset(axes) and not _splits(rule, rule.operands[index][dim])
        ]
        gathered = work.price(value.kind, value.sharding, node.mesh.sharding(dims), node.mesh) if stuck else 0
        if gathered:
            free = [d for d, n in enumerate(value.shape) if n > 1 and _splits(rule, rule.operands[index][d])]
            report(
                TAKEN_WHOLE.at(
                    place_of(node.op.location),
                    op=name_of(node.op),
                    operand=index,
                    type=value.kind,
                    dims=_listed(stuck),
                    bytes=gathered,
                    note=entry.note or "see docs/ops.md",
                    hint=f"split it along {_listed(free)} instead"
                    if free
                    else "replicate it: none of its dimensions can be split here",
                )
            )


def _splits(rule: Rule, factors: tuple[int, ...]) -> bool:
    return any(rule.factors[f].kind is not Kind.REPLICATED for f in factors)


def _listed(dims: list[int]) -> str:
    numbers = " and ".join(map(str, dims))
    return f"dimension {numbers}" if len(dims) == 1 else f"dimensions {numbers}"
