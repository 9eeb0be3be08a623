"""Fixes results that follow from the user's annotations, so that a search for cheaper shardings does not change them.

Problem. ``f = jax.jit(lambda x: with_sharding_constraint(x, P("x")) * 2)`` has no annotation of its result, and
propagation gives it ``P("x")``. With an argument split over two axes a search would split the result over both, as that
sends nothing. But people annotate results of functions in this form, and JAX's own tests rely on it.

A result follows from a fixed value where a chain of ops leads from one to the other, in each of which all dimensions of
the result are dimensions of the operand, split alike: elementwise ops, transposes, what loops carry.

Example, x=2, y=2: ``constraint [x, -] -> multiply [x, -] -> transpose [-, x] -> return`` fixes the result; the
product of two fixed matrices does not, as its rows and columns are those of different operands.

Complexity: O(steps) for all results from which no chain leads to a fixed value, and the steps of the search for each
of the others, which ends at the first fixed value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shardpass.ops.splits.factors import Factor, Kind
from shardpass.propagation.engine import Propagation, Step


def fix_implied(engine: Propagation, results: Iterable[int]) -> tuple[int, ...]:
    """Fix those of ``results`` (values of the engine, propagated) that follow from the user's annotations."""
    dead: set[int] = set()
    following = tuple(each for each in results if not engine.values[each].fixed and _follows(engine, each, dead))
    for result in following:
        engine.fix(result)
    return following


def _follows(engine: Propagation, result: int, dead: set[int]) -> bool:
    """Return whether a chain leads to a fixed value. ``dead`` collects the values from which none does."""
    todo, seen = [result], {result}
    while todo:
        index = todo.pop()
        for number in engine.values[index].steps:
            for before in _same_dims(engine, engine.steps[number], index):
                known = engine.values[before]
                if known.fixed and len(known.open_dims) < len(known.shape):
                    return True
                if before not in seen and before not in dead:
                    seen.add(before)
                    todo.append(before)
    dead |= seen
    return False


def _same_dims(engine: Propagation, step: Step, index: int) -> Iterator[int]:
    """Return the operands of ``step`` with all dimensions of its result ``index``, split alike."""
    rule, count = step.rule, len(step.rule.operands)
    if index not in step.values[count:] or not all(map(_is_plain, rule.factors)):
        return
    known = engine.values[index]
    dim_map = rule.results[step.values[count:].index(index)]
    wanted = {factors: axes for factors, axes in zip(dim_map, known.dims, strict=True) if factors}
    for before, operand in zip(step.values[:count], rule.operands, strict=True):
        axes_of = {factors: axes for factors, axes in zip(operand, engine.values[before].dims, strict=True) if factors}
        if axes_of == wanted:
            yield before


def _is_plain(factor: Factor) -> bool:
    return factor.kind is Kind.PARALLEL and not factor.elastic and not factor.blocked
