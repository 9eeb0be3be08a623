"""Check what rules of other packages return: models, plans, and the values that replace an op's results.

A rule that returns something else would fail later, in code of shardpass, and look like a fault of shardpass. Here
it is SP139, with the package and the class or function. Rules of shardpass pass unchecked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics import Place, ShardpassError
from shardpass.diagnostics.table_driver import FOREIGN
from shardpass.ir.tensors import shape_of
from shardpass.ops.model import LocalPlan, OpModel, Site, Split
from shardpass.ops.splits.factors import DimMap, Rule

OWN = __name__.partition(".")[0]


def checked_model(model: Any, read: Any, op: Any) -> OpModel[Any] | None:
    """Check ``model``, which the function ``read`` returned for ``op``, and return it.

    Raises:
        ShardpassError: SP139 where another package's function gave no model, or a model whose rule is not ``op``'s.
    """
    maker = read if model is None or is_own(type(model)) else type(model)
    if model is None or is_own(maker):
        return model  # type: ignore[no-any-return]
    if not isinstance(model, OpModel):
        raise _fault(read, op.name, f"it gives {_kind(model)}, and not an OpModel or None")
    rule = getattr(model, "rule", None)
    if not isinstance(rule, Rule):
        raise _fault(maker, op.name, f"rule is {_kind(rule)}, and not a Rule")
    for side, maps, values in (("operands", rule.operands, op.operands), ("results", rule.results, op.results)):
        if len(maps) != len(values):
            raise _fault(maker, op.name, f"its rule has {len(maps)} {side}, and the op {len(values)}")
        for index, (dims, value) in enumerate(zip(maps, values, strict=True)):
            _check_dims(maker, op, rule, f"{side[:-1]} {index}", dims, len(shape_of(value)))
    return model


def _check_dims(maker: Any, op: Any, rule: Rule, where: str, dims: DimMap, rank: int) -> None:
    if len(dims) != rank:
        raise _fault(maker, op.name, f"its rule gives {where} {len(dims)} dimensions, of which it has {rank}")
    for factor in (factor for dim in dims for factor in dim):
        if not 0 <= factor < len(rule.factors):
            reason = f"its rule gives {where} the factor {factor}, and has {len(rule.factors)} factors"
            raise _fault(maker, op.name, reason)


def plan_of(model: OpModel[Any], split: Split) -> LocalPlan:
    """Return ``model.plan(split)``. Raises SP139 where another package's model returns no plan of the split."""
    local = model.plan(split)
    if not isinstance(local, LocalPlan) and not is_own(type(model)):
        raise _fault(type(model), "plan", f"it gives {_kind(local)}, and not a LocalPlan")
    return local  # type: ignore[no-any-return]


def emitted(model: OpModel[Any], local: LocalPlan, site: Site) -> Sequence[Any]:
    """Return ``model.emit(local, site)``. Raises SP139 where another package's model returns wrong values."""
    count, name = len(site.op.results), site.op.name
    made = model.emit(local, site)
    if is_own(type(model)):
        return made
    _check_values(type(model), name, "emit", made, count)
    for index, value in enumerate(made):
        expected, actual = local.split.result_tile(index), shape_of(value)
        if tuple(actual) != tuple(expected):
            reason = f"emit gives the shape {actual} for result {index}, whose tile is {expected}"
            raise _fault(type(model), name, reason)
    return made


def written_out(expand: Callable[[Any], Any], op: Any) -> list[Any] | None:
    """Return ``expand(op)``. Raises SP139 where another package's function returns values of other types."""
    types, name = [result.type for result in op.results], op.name
    made = expand(op)
    if made is None or is_own(expand):
        return made  # type: ignore[no-any-return]
    _check_values(expand, name, "expand", made, len(types))
    for index, (value, expected) in enumerate(zip(made, types, strict=True)):
        if value.type != expected:
            reason = f"expand gives {value.type} for result {index}, which is {expected}"
            raise _fault(expand, name, reason)
    for built in _built(made, op):
        try:
            built.verify()
        except ir.MLIRError as error:
            reason = f"expand builds an invalid {built.name}: {error.error_diagnostics[0].message}"
            raise _fault(expand, name, reason) from None
    return list(made)


def _built(made: Sequence[Any], op: Any) -> Iterator[Any]:
    """Collect the ops that compute the values ``made`` from the operands of ``op`` and have its location."""
    waiting, seen = list(made), list(op.operands)
    while waiting:
        value = waiting.pop()
        if value in seen or isinstance(value.owner, ir.Block) or value.owner.location != op.location:
            continue
        seen += value.owner.results
        waiting += value.owner.operands
        yield value.owner


def _check_values(maker: Any, name: str, what: str, made: Any, count: int) -> None:
    if not isinstance(made, Sequence | ir.OpResultList) or len(made) != count:
        given = f"{len(made)} values" if isinstance(made, Sequence) else _kind(made)
        raise _fault(maker, name, f"{what} gives {given}, and the op has {count} results")
    for index, value in enumerate(made):
        if not isinstance(value, ir.Value):
            raise _fault(maker, name, f"{what} gives {_kind(value)} for result {index}, and not a value of MLIR's")


def is_own(maker: Any) -> bool:
    """Return whether the class or function ``maker`` is defined in shardpass."""
    return str(getattr(maker, "__module__", "")).partition(".")[0] == OWN


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _fault(maker: Any, name: str, reason: str) -> ShardpassError:
    module = str(getattr(maker, "__module__", ""))
    place = Place(str(getattr(sys.modules.get(module), "__file__", None) or ""))
    return FOREIGN.error(
        place, name=f"the rule of {name}", package=module, function=getattr(maker, "__qualname__", "?"), reason=reason
    )
