"""The edits that are tried at an error, those first that cost least by themselves.

1. ``out_sharding=`` at the op, with each spec of the result.
2. A ``jax.reshard`` of one operand, to each spec; of all operands of one shape, to the spec of one of them; of all
   operands, to whole arrays.
3. A constraint that does not hold is made a ``reshard``.
4. Of a loop or a branch: ``carries``.

Each is tried on the op alone (``alone``), which takes milliseconds, and those that JAX accepts there are priced. Of
edits that give the result one type the cheapest is kept, one of the op and one of its operands, at most MOST in all. Of
a callable that holds arrays of the trace, such as a module of flax, nothing can be tried alone: its edits are tried in
the program.

Complexity: one trace of the op for each spec of each operand and of the result, at most ``specs.MOST`` each, once for
an expression with the same types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import jax

from shardpass.advise.find.propose.program import one_of_each
from shardpass.advise.place.specs import spec_text
from shardpass.advise.repair.alone import Alone, Values, of_array
from shardpass.advise.repair.expression import Edit, Expression
from shardpass.advise.repair.specs import explicit_axes, spec_of, specs

MOST = 12  # edits of one expression
PRICED = 32  # edits that are priced
UNTRIED, UNTRIED_RESULTS = 12, 8  # edits of a callable that cannot be tried alone, and of its result


@dataclass(frozen=True)
class Candidate:
    """An edit at an expression. ``price``: seconds of the op alone beyond those of the cheapest edit there.

    ``again``: whether a cheaper edit gives the result the same type, so that only an argument may change by this one.
    """

    at: Expression
    edit: Edit
    price: float
    again: bool = False

    def __str__(self) -> str:
        parts = [
            f"reshard of `{_one_line(self.at.operand(number))}` to {spec_text(spec)}"
            for number, spec in self.edit.operands
        ]
        if self.edit.moved:
            parts.append(f"`{self.at.called}` made a reshard")
        if self.edit.out is not None:
            parts.append(f"out_sharding={spec_text(self.edit.out)} of `{_one_line(self.at.text)}`")
        return ", ".join(parts)


def whole(values: Values) -> Edit:
    """Return the edit that reshards all operands to whole arrays."""
    return Edit(tuple((number, ((),) * len(one.shape)) for number, one in _arrays(values).items() if any(spec_of(one))))


class Known:
    """Lists the edits of expressions, and remembers them by the expression and the types of its operands."""

    def __init__(self, machine: str) -> None:
        self.machine = machine
        self._edits: dict[Any, list[Candidate]] = {}
        self._kept: list[Values] = []  # so that no identity is that of another object later

    def candidates(self, at: Expression, values: Values, result: Callable[[], Any]) -> list[Candidate]:
        """Return the edits of ``at``, cheapest first.

        ``values``: its operands. ``result``: traces the expression for an object with the shape of its result.
        """
        key = at.text, tuple((number, _identity(one)) for number, one in values.items())
        if key not in self._edits:
            self._kept.append(values)
            self._edits[key] = list(_priced(at, values, result, self.machine))
        return [replace(one, at=at) for one in self._edits[key]]


def _identity(value: Any) -> Any:
    if isinstance(value, jax.ShapeDtypeStruct):
        return value.shape, value.dtype, value.sharding, value.weak_type
    return "" if of_array(value) else id(value)


def _priced(at: Expression, values: Values, result: Callable[[], Any], machine: str) -> Iterator[Candidate]:
    alone = Alone(at, values, machine)
    if alone.mesh is None:
        return
    shape = alone.shape(whole(values))
    if shape is None:
        shape = getattr(result(), "shape", None)
    edits = list(dict.fromkeys(_edits(at, values, shape, explicit_axes(alone.mesh))))
    typed = [one for one in map(alone.typed, edits) if one is not None]
    if not typed:  # specs of the result first, as no edit of arguments reaches a callable's own arrays
        results = [one for one in edits if one.out is not None][:UNTRIED_RESULTS]
        others = [one for one in edits if one.out is None][: UNTRIED - len(results)]
        yield from (Candidate(at, edit, 0.0) for edit in (*results, *others))
        return
    prices = [(alone.price(one), one) for one in typed[:PRICED]]
    cheapest = sorted(((price, one) for price, one in prices if price is not None), key=lambda pair: pair[0])
    kept: dict[object, Candidate] = {}
    met = set()
    for price, one in cheapest:
        candidate = Candidate(at, one.edit, price - cheapest[0][0], one.types in met)
        kept.setdefault((one.types, one.edit.out is None), candidate)
        met.add(one.types)
    yield from list(kept.values())[:MOST]


def _edits(at: Expression, values: Values, shape: Any, axes: dict[str, int]) -> Iterator[Edit]:
    arrays = _arrays(values)
    known = {number: spec_of(one) for number, one in arrays.items()}
    if at.is_constraint:
        yield Edit(moved=True)
    parts: list[list[Edit]] = []
    if at.may_say and shape is not None:
        parts.append([Edit(out=spec) for spec in specs(shape, axes, list(known.values()))])
    for number, one in arrays.items():
        like = [known[number], *(spec for other, spec in known.items() if other != number)]
        parts.append([Edit(((number, spec),)) for spec in specs(one.shape, axes, like) if spec != known[number]])
        others = [other for other, two in arrays.items() if two.shape == one.shape and known[other] != known[number]]
        if others:
            yield Edit(tuple((other, known[number]) for other in others))
    yield from one_of_each(parts)
    if len(arrays) > 1:
        yield whole(values)


def _arrays(values: Values) -> Values:
    known = {number: one for number, one in values.items() if number >= 0 and getattr(one, "shape", None)}
    return {number: one for number, one in known.items() if getattr(one, "sharding", None) is not None}


def _one_line(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
