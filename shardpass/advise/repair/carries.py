"""Edits for loops and branches with mismatched types: reshard the initial carry, or a result of a body.

Example: ``jax.lax.scan(body, jnp.zeros((8, 16)), xs)`` with a body that returns its carry as ``float32[8@data,16]``
starts with ``jax.reshard(jnp.zeros((8, 16)), P('data'))``, or its body returns ``jax.reshard(carry, P())``.

A component is followed through tuples, lists and dicts that are written out, and through names that have one
assignment.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from shardpass.advise.find.source import SourceFile, keyword_of
from shardpass.advise.place.specs import Spec
from shardpass.advise.repair.errors import Clash, Step, spec_of
from shardpass.advise.repair.expression import OUT, Edit, Expression

_LOOPS = {"scan": (0, 1, "init"), "while_loop": (1, 2, "init_val"), "fori_loop": (2, 3, "init_val")}  # body, start
_NUMBERS = re.compile(r"output of branch ?(\d+)")  # of the branches of a switch that differ


def carry_edits(at: Expression, clash: Clash) -> Iterator[tuple[Expression, Edit]]:
    """Yield the edits that make the first two types of ``clash`` equal."""
    call, file = at.node, at.file
    if not clash.pairs or not isinstance(call, ast.Call):
        return
    pair, name = clash.pairs[0], at.called.rpartition(".")[2]
    one, other = spec_of(pair.one), spec_of(pair.other)
    if name in _LOOPS:
        body, start, keyword = _LOOPS[name]
        path = pair.path[1:] if name == "fori_loop" and "scan body" in clash.text else pair.path
        yield from _resharded(at, _argument(call, start, keyword), path, other)
        result = result_of_body(file, _argument(call, body, ""), call)
        yield from _resharded(at, result, (0, *path) if name == "scan" else path, one)
    else:
        for branch, spec in zip(_branches(file, call, name, clash), (other, one), strict=False):
            yield from _resharded(at, result_of_body(file, branch, call), pair.path, spec)


def _branches(file: SourceFile, call: ast.Call, name: str, clash: Clash) -> list[ast.expr | None]:
    """Return the two branches of ``cond`` or ``switch`` whose types differ."""
    if name == "cond":
        return [_argument(call, 1, "true_fun"), _argument(call, 2, "false_fun")]
    given = _argument(call, 1, "branches") if name == "switch" else None
    branches = None if given is None else file.resolved(given)
    numbers = [int(one) for one in _NUMBERS.findall(clash.text)][:2]
    if not isinstance(branches, ast.List | ast.Tuple) or len(numbers) < 2 or max(numbers) >= len(branches.elts):
        return []
    return [branches.elts[number] for number in numbers]


def body_and_start(call: ast.Call) -> tuple[ast.expr | None, ast.expr | None]:
    """Return the body and the initial carry of a call of ``scan``, None for one that is not written there."""
    body, start, keyword = _LOOPS["scan"]
    return _argument(call, body, "f"), _argument(call, start, keyword)


def _argument(call: ast.Call, place: int, keyword: str) -> ast.expr | None:
    named = keyword_of(call, keyword) if keyword else None
    if named is not None:
        return named
    plain = len(call.args) > place and not any(isinstance(one, ast.Starred) for one in call.args)
    return call.args[place] if plain else None


def result_of_body(file: SourceFile, function: ast.expr | None, near: ast.Call) -> ast.expr | None:
    """Return the one expression that a function of the file returns: a lambda, or the last definition of its name
    before ``near``.
    """
    if isinstance(function, ast.Lambda):
        return function.body
    name = function.id if isinstance(function, ast.Name) else ""
    every = (node for node in ast.walk(file.tree) if isinstance(node, ast.FunctionDef) and node.name == name)
    before = [node for node in every if node.lineno < near.lineno]
    if not before:
        return None
    definition = max(before, key=lambda node: node.lineno)
    inside = (node for node in ast.walk(definition) if isinstance(node, ast.Return))
    results = [node.value for node in inside if node.value is not None and file.function_around(node) is definition]
    return results[0] if len(results) == 1 else None


def _resharded(
    at: Expression, node: ast.expr | None, path: Sequence[Step], spec: Spec
) -> Iterator[tuple[Expression, Edit]]:
    """Yield the edit that reshards the component at ``path`` of ``node``, where the file writes it out."""
    for step in path:
        node = None if node is None else component(at.file.resolved(node), step)
    if node is not None:
        yield Expression(at.file, node, at.plain), Edit(((OUT, spec),))


def component(node: ast.expr | None, step: Step) -> ast.expr | None:
    """Return the member ``step`` of a tuple, list or dict that is written out; None for any other expression."""
    match node:
        case ast.Tuple(elts=parts) | ast.List(elts=parts) if isinstance(step, int) and step < len(parts):
            return parts[step]
        case ast.Dict(keys=keys, values=values):
            named = zip(keys, values, strict=True)
            return next((value for key, value in named if isinstance(key, ast.Constant) and key.value == step), None)
        case ast.Call(func=ast.Name(id="dict"), keywords=named):
            return next((one.value for one in named if one.arg == step), None)
    return None
