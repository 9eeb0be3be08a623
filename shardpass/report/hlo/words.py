"""Explain the reason for an HLO collective, from its metadata and neighbouring ops.

The partitioner gives a collective the name stack of the op for which it was made. Whether the array that is moved is an
operand or the result of that op is seen from the neighbours that have the same name stack. A collective of a shard_map
is the program's own.
"""

from __future__ import annotations

import re

from shardpass.cost import collective as kinds
from shardpass.hlo.collectives import HloCollective
from shardpass.hlo.read import HloProgram
from shardpass.report.hlo.values import Part, Values
from shardpass.sharding.quoting import shown

_PARTITIONERS = {"xla": "XLA", "shardy": "Shardy", "shardpass": "shardpass"}
_OWN = re.compile(r"\b(?:shard_map|xla_pmap)\b.*/(p(?:sum|max|min|permute|broadcast)\w*|all_gather\w*|all_to_all\w*|"
                  r"reduce_scatter\w*|ragged_all_to_all\w*)$")  # fmt: skip
_KEPT = "; each device keeps only its slice: XLA for GPU and TPU scatters this sum, half the bytes of its all_reduce"
_COMBINED = {
    "add": "adds up",
    "maximum": "takes the maximum of",
    "minimum": "takes the minimum of",
    "multiply": "multiplies",
    "and": "takes the conjunction of",
    "or": "takes the disjunction of",
}


class Words:
    """Sentences about the collectives of ``program``, which ``partitioner`` made."""

    def __init__(self, program: HloProgram, values: Values, partitioner: str) -> None:
        self.program, self.values = program, values
        self.who = _PARTITIONERS.get(partitioner, partitioner)

    def reason(self, one: HloCollective, part: Part) -> str:
        """Explain in one sentence why the arrays of ``part`` are moved."""
        stack = shown(part.named.stack)
        own = _OWN.search(stack)
        if own is not None:
            return f"the program itself asks for {own[1]} in shard_map"
        op = stack.rsplit("/", 1)[-1]
        return self._sentence(one, part, op, self._what(one, part, op)) + (_KEPT if part.sliced else "")

    def _sentence(self, one: HloCollective, part: Part, op: str, what: str) -> str:
        given = ", ".join(dict.fromkeys(map(str, part.given or part.results)))
        got = ", ".join(dict.fromkeys(map(str, part.results)))
        parts = f"what each device computes of {op}" if op else "what each device computes"
        match one.kind:
            case kinds.ALL_REDUCE:
                return f"{self.who} {self._combines(one)} {parts}, {given}"
            case kinds.REDUCE_SCATTER:
                return f"{self.who} {self._combines(one)} {parts}, {given}, and each device keeps its part, {got}"
            case kinds.ALL_GATHER:
                return f"{self.who} gathers {what}: {given} on each device becomes {got}"
            case kinds.ALL_TO_ALL | "ragged_all_to_all":
                return f"{self.who} splits {what} along another dimension: {given} on each device"
            case kinds.PERMUTE:
                return f"{self.who} sends {what} to other devices: {given} on each"
        return f"{self.who} sends {what} from the first device of each group to the others: {given}"

    def _combines(self, one: HloCollective) -> str:
        """Return the verb of the reduction."""
        applied = dict(one.op.called).get("to_apply", "")
        root = self.program.computations[applied].root if applied in self.program.computations else None
        return _COMBINED.get("" if root is None else root.opcode, "combines")

    def _what(self, one: HloCollective, part: Part, op: str) -> str:
        """Name the array of the op that the collective moves."""
        if not op:
            return "an array"
        stack, inner = part.named.stack, self.program.computations[one.computation]
        before = [self.values.behind(one.computation, operand)[0][1] for operand in part.operands]
        if any(maker.stack == stack for maker in before):
            return f"the result of {op}"
        if any(user.stack == stack for user in inner.users.get(one.op.name, ())):
            return f"an operand of {op}"
        return f"an array for {op}"
