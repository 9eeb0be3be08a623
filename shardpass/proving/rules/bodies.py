"""The regions of an op as a key: what they return, as expressions of their arguments.

Ops that no result follows from, the order of ops and the names of values say nothing of that, so the key has none of
them: it lists each expression once, in the order in which the results ask for it. Example: the comparator ``a < b`` is
one key whether or not its constants stand before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shardpass.cost.collective import KINDS
from shardpass.ir.tensors import enum_word
from shardpass.ir.walk import inputs_of, operation
from shardpass.proving.relations.evaluate import Unknown
from shardpass.proving.relations.terms import Key
from shardpass.proving.rules.elementwise import key_of, order_of

# ops that do more than return a function of their operands, or that name a function of their module
_OTHERS = (
    *("rng", "custom_call", "infeed", "outfeed", "send", "recv", "call", "composite", "partition_id", "replica_id"),
    *KINDS,
)


def region_key(op: Any) -> Key:
    """Return a key for the computation of the regions of ``op``.

    Raises Unknown where they use values from outside that are no constants, or ops that are no functions.
    """
    body = _Expressions()
    for value in inputs_of(op)[len(op.operands) :]:
        if hasattr(value.owner, "arguments") or operation(value.owner).name != "stablehlo.constant":
            raise Unknown("its body uses values from outside of it")
    regions = tuple(body.region(region) for region in op.regions)
    return (regions, tuple(body.rows))


def functions_key(names: Sequence[str], functions: Mapping[str, Any]) -> Key:
    """Return a key for the computation of the functions ``names``. Raises Unknown if one is missing or has effects."""
    body = _Expressions()
    if any(name not in functions or len(functions[name].regions[0].blocks) != 1 for name in names):
        raise Unknown("it calls a function that the module does not have")
    return tuple(body.region(functions[name].regions[0]) for name in names), tuple(body.rows)


class _Expressions:
    """The expressions of regions: rows of an op, its operands, the types of its results and its regions."""

    def __init__(self) -> None:
        self.rows: dict[Key, int] = {}
        self._numbers: dict[Any, object] = {}
        self._arguments = 0

    def region(self, region: Any) -> Key:
        """Return the types of the arguments of ``region``, and the expressions that it returns."""
        block = region.blocks[0]
        for argument in block.arguments:
            self._numbers[argument] = ("argument", self._arguments, str(argument.type))
            self._arguments += 1
        *_, end = [operation(op) for op in block.operations]
        self._make(end.operands)
        return len(block.arguments), tuple(self._numbers[value] for value in end.operands)

    def _make(self, values: Sequence[Any]) -> None:
        todo = list(reversed(values))
        while todo:
            value = todo[-1]
            if value in self._numbers:
                todo.pop()
                continue
            op = operation(value.owner)
            if op.name == "stablehlo.constant":
                self._numbers[value] = key_of(op, str(value.type))
                continue
            if op.name.split(".")[-1] in _OTHERS:
                raise Unknown(f"its body has the op {op.name}")
            missing = [v for v in op.operands if v not in self._numbers]
            if missing:
                todo += reversed(missing)
                continue
            inner = tuple(self.region(region) for region in op.regions)
            types = tuple(str(result.type) for result in op.results)
            row = (_key(op), tuple(self._numbers[v] for v in op.operands), types, inner)
            number = self.rows.setdefault(row, len(self.rows))
            for k, result in enumerate(op.results):
                self._numbers[result] = (number, k)


def _key(op: Any) -> Key:
    if op.name == "stablehlo.compare":  # the type of the operands says the rest
        return (op.name, enum_word(op.attributes["comparison_direction"]), order_of(op.attributes))
    return key_of(op)
