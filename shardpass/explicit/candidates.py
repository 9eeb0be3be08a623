"""The edits that are tried at an error, those first that cost least by themselves.

1. ``out_sharding=`` at the op, with each spec of the result.
2. A ``jax.reshard`` of one operand, to each spec; of all operands of one shape, to the spec of one of them; of all
   operands, to whole arrays.
3. A constraint that does not hold is made a ``reshard``.
4. Of a loop or a branch: ``carries``.

Each is tried on the op alone (``alone``), which takes milliseconds, and those that JAX accepts there are priced. Of
edits that give the result one type the cheapest two are kept, and at most MOST in all. Of a callable that holds arrays
of the trace, such as a module of flax, nothing can be tried alone: its edits are tried in the program.

Complexity: one trace of the op for each spec of each operand and of the result, at most ``specs.MOST`` each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from shardpass.edits.jax_text import spec_text
from shardpass.edits.sites import Spec
from shardpass.explicit.alone import Alone, Values
from shardpass.explicit.expression import Edit, Expression
from shardpass.explicit.specs import explicit_axes, spec_of, specs

MOST, OF_ONE_TYPE = 8, 2
PRICED = 32  # edits that are priced
UNTRIED = 12  # edits of a callable that cannot be tried alone


@dataclass(frozen=True)
class Candidate:
    """An edit at an expression. ``price``: of the op alone above that of the cheapest edit there."""

    at: Expression
    edit: Edit
    price: float

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
    """All operands whole."""
    return Edit(tuple((number, ((),) * len(one.shape)) for number, one in _arrays(values).items() if any(spec_of(one))))


def candidates(at: Expression, values: Values, result: Any, machine: str) -> list[Candidate]:
    """The edits of ``at``, cheapest first. ``result``: what has its shape; None where that is not known."""
    alone = Alone(at, values, machine)
    if alone.mesh is None:
        return []
    axes = explicit_axes(alone.mesh)
    edits = list(dict.fromkeys(_edits(at, values, result, axes)))
    typed = [one for one in map(alone.typed, edits) if one is not None]
    if not typed:
        return [Candidate(at, edit, 0.0) for edit in edits[:UNTRIED]]
    prices = [(alone.price(one), one) for one in typed[:PRICED]]
    found = sorted(((price, one) for price, one in prices if price is not None), key=lambda pair: pair[0])
    if not found:
        return []
    counts: Counter[tuple[str, ...]] = Counter()
    kept = []
    for price, one in found:
        counts[one.types] += 1
        if counts[one.types] <= OF_ONE_TYPE:
            kept.append(Candidate(at, one.edit, price - found[0][0]))
    return kept[:MOST]


def _edits(at: Expression, values: Values, result: Any, axes: dict[str, int]) -> Iterator[Edit]:
    arrays = _arrays(values)
    known = {number: spec_of(one) for number, one in arrays.items()}
    if at.is_constraint:
        yield Edit(moved=True)
    parts: list[Iterator[Edit]] = []
    if at.may_say and result is not None:
        parts.append(iter([Edit(out=spec) for spec in specs(result.shape, axes, list(known.values()))]))
    for number, one in arrays.items():
        like = [known[number], *(spec for other, spec in known.items() if other != number)]
        changed = [spec for spec in specs(one.shape, axes, like) if spec != known[number]]
        parts.append(iter([Edit(((number, spec),)) for spec in changed]))
    yield from _alike(arrays, known)
    yield from _in_turn(parts)
    if len(arrays) > 1:
        yield whole(values)


def _alike(arrays: Values, known: dict[int, Spec]) -> Iterator[Edit]:
    """All operands of one shape with the spec of one of them."""
    for number, one in arrays.items():
        others = [other for other, two in arrays.items() if two.shape == one.shape and known[other] != known[number]]
        if others:
            yield Edit(tuple((other, known[number]) for other in others))


def _arrays(values: Values) -> Values:
    found = {}
    for number, one in values.items():
        if number >= 0 and getattr(one, "shape", None) and getattr(one, "sharding", None) is not None:
            found[number] = one
    return found


def _in_turn(parts: list[Iterator[Edit]]) -> Iterator[Edit]:
    left = list(parts)
    while left:
        for one in list(left):
            edit = next(one, None)
            if edit is None:
                left.remove(one)
            else:
                yield edit


def _one_line(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
