"""Sums over devices that could stay partial: find the specs ``P(..., unreduced={"model"})`` for this, by tracing.

Problem: a product that contracts a split dimension leaves a partial sum on each device, and its ``out_sharding``
completes that at once. Where only linear ops follow, partial sums may be added first and completed once. JAX has a type
for them (0.10 and 0.12): ``unreduced`` of what waits, and ``reduced`` of an array whose gradient does. XLA follows the
types as they are, so the program sends less only where they say so.

1. Products that are added (two branches of a layer before its residual): each ``out_sharding`` of a sum's terms gets
   the axes of its contraction, and the sum a reshard to the type that it had:

       jax.reshard(jnp.matmul(h, a, out_sharding=P("data", unreduced={"model"})) + ..., P("data"))

   All products must wait over the same axes. JAX adds no whole array to a partial one, so a sum with other terms is
   refused, and a remark (SP842) has JAX's reason.
2. Gradients that a scan adds up (microbatches): the start of the carry is unreduced over an axis of the batch, the
   weights that are differentiated are reduced over it, and the carry is completed behind the loop.

Each edit is tried on top of the findings before it, must return the same types, and is one where it costs less
(``reshards.cheaper``).

Complexity: a trace for each sum, and one for each loop and axis.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from shardpass.advise.find.sentences import cost_of
from shardpass.advise.find.source import Replacement, SourceFile, called
from shardpass.advise.place.specs import Spec, spec_text
from shardpass.advise.repair.carries import body_and_start, component, result_of_body
from shardpass.advise.repair.errors import read
from shardpass.advise.repair.expression import Expression
from shardpass.advise.repair.reshards import Replacements, Reshards, TypeEdit, cheaper
from shardpass.advise.repair.specs import spec_of_type
from shardpass.advise.repair.written import KEYWORD, Written
from shardpass.diagnostics import Diagnostic, Place
from shardpass.diagnostics.table_explicit import NO_WAIT
from shardpass.ir import jax_private
from shardpass.report.findings import REPLACE, Annotated

MOST = 12  # sums that are traced, beside what a search of reshards may trace


@dataclass(frozen=True)
class Sum:
    """A sum that may wait over ``axes``. ``name``: its text. ``spec``: of its result. ``edits``: of the file."""

    name: str
    place: Place
    spec: Spec
    axes: tuple[str, ...]
    edits: Replacements
    of_products: bool = False

    @property
    def waiting(self) -> str:
        return partial_text(self.spec, "unreduced", self.axes)


def partial_text(spec: Spec, word: str, axes: Sequence[str]) -> str:
    """Return ``spec`` as text, with ``axes`` as ``unreduced`` or ``reduced`` (``word``)."""
    text = spec_text(spec)
    return f"{text[:-1]}{', ' if any(spec) else ''}{word}={{{', '.join(map(repr, axes))}}})"


def waiting_sums(search: Reshards) -> list[Diagnostic]:
    """Add findings about sums to those of ``search``. Returns remarks (SP842) on sums that JAX cannot keep partial."""
    refused: list[Diagnostic] = []
    search.most += MOST
    for one in (*_added_products(search), *_added_gradients(search)):
        tried = search.tried(TypeEdit((), one.edits))
        if tried is not None and cheaper(search.now, tried.figures):
            words = f"the sum of `{one.name}` over {', '.join(one.axes)} could wait: completed at once it costs"
            note = Annotated(KEYWORD, one.name, spec_text(one.spec), one.waiting, one.place)
            code = f"{one.name}: {one.waiting}"
            search.keep(tried, REPLACE, f"{words} {cost_of(search.now, tried.figures)} more", (note,), (code,))
        clash = read(search.error) if tried is None and search.error is not None else None
        if clash is not None and one.of_products:
            axes = ", ".join(one.axes)
            refused.append(NO_WAIT.at(one.place, name=one.name, axes=axes, spec=one.waiting, error=clash.text))
    return refused


# ---------------------------------------------------------------- products that are added


def _added_products(search: Reshards) -> Iterator[Sum]:
    """Yield sums of products whose ``out_sharding`` completes them over the same axes."""
    calls = search.calls
    known = {(one.file.path, one.file.span(one.call)): one for one in calls if one.form == KEYWORD}
    for file in {one.file.path: one.file for one in calls}.values():
        for node in ast.walk(file.tree):
            if not _is_sum(node) or _is_sum(file.parents[node]):
                continue
            terms = [_term(file, one) for one in _terms(node)]
            written = [known.get((file.path, file.span(one))) for one in terms if one is not None]
            products = [one for one in written if one is not None and one.spec is not None]
            if len(products) >= 2:
                yield from _sum(file, node, products, not search.retracer.abstract.empty)


def _sum(file: SourceFile, node: ast.BinOp, products: Sequence[Written], plain: bool) -> Iterator[Sum]:
    specs, axes = {spec_of_type(one.target) for one in products}, {_contracted(one) for one in products}
    if len(specs) != 1 or len(axes) != 1:
        return
    (spec,), (over,) = specs, axes
    if spec is None or not over:
        return
    edits = _wrapped(file, node, spec_text(spec), plain)
    for one in products:
        made = one.with_spec(partial_text(spec, "unreduced", over))
        if made is None:
            return
        edits += [(file, replacement) for replacement in made]
    yield Sum(ast.unparse(node)[:60], Place(file.path, node.lineno), spec, over, tuple(edits), of_products=True)


def _is_sum(node: ast.AST | None) -> TypeGuard[ast.BinOp]:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)


def _terms(node: ast.expr) -> Iterator[ast.expr]:
    if _is_sum(node):
        yield from _terms(node.left)
        yield from _terms(node.right)
    else:
        yield node


def _term(file: SourceFile, node: ast.expr) -> ast.expr | None:
    """Return a summand; a name that is used once is replaced by the expression assigned to it."""
    if not isinstance(node, ast.Name):
        return node
    return file.assigned(node.id, node) if file.uses(node.id) == 1 else None


def _contracted(call: Written) -> tuple[str, ...]:
    """Return the axes of the dimensions that the products of a call contract."""
    axes: set[str] = set()
    for equation in call.equations:
        if equation.primitive.name != "dot_general" or "transpose(" in str(equation.source_info.name_stack):
            continue
        (left, _), _ = equation.params["dimension_numbers"]
        spec = spec_of_type(equation.invars[0].aval)
        axes |= set() if spec is None else {name for dim in left for name in spec[dim]}
    return tuple(sorted(axes))


# ---------------------------------------------------------------- gradients that a scan adds up


def _added_gradients(search: Reshards) -> Iterator[Sum]:
    """Yield carries of scans whose body adds a gradient to the carry, once for each axis that does not split them."""
    met, plain = set(), not search.retracer.abstract.empty
    for equation in jax_private.equations(search.jaxpr):
        if equation.primitive.name != "scan":
            continue
        for path, _, span in jax_private.frames_of(equation):
            file = search.files.files.at(path)
            call = None if file is None else search.files.call_at(file, span)
            if file is None or call is None or (path, file.span(call)) in met or called(call)[-4:] != "scan":
                continue
            met.add((path, file.span(call)))
            body = equation.params["jaxpr"].out_avals  # of what a scan stacks one dimension less
            pairs = zip(equation.outvars, body, strict=True)
            carries = [result.aval for result, own in pairs if result.aval.shape == own.shape]
            for number, carry in enumerate(carries):
                spec = spec_of_type(carry)
                if spec is not None:
                    place = number if len(carries) > 1 else None
                    yield from _gradients(file, call, place, spec, search.axes, plain)


def _gradients(
    file: SourceFile, call: ast.Call, number: int | None, spec: Spec, axes: dict[str, int], plain: bool
) -> Iterator[Sum]:
    body, start = body_and_start(call)
    ends = component(result_of_body(file, body, call), 0), start, _result(file, call)
    made, start, total = ends if number is None else [component(one, number) for one in ends]
    gradients = [one for one in map(_gradient, _terms(made)) if one is not None] if _is_sum(made) else []
    if made is None or start is None or total is None or len(gradients) != 1:
        return
    for axis in axes:
        if any(axis in names for names in spec):
            continue
        edits = _wrapped(file, start, partial_text(spec, "unreduced", (axis,)), plain)
        edits += _wrapped(file, gradients[0], partial_text(spec, "reduced", (axis,)), plain)
        edits += _wrapped(file, total, spec_text(spec), plain)
        yield Sum(ast.unparse(made)[:60], Place(file.path, made.lineno), spec, (axis,), tuple(edits))


def _gradient(node: ast.expr) -> ast.expr | None:
    """Return the ``weights`` of a ``jax.grad(loss)(weights, ...)``; None for any other expression."""
    match node:
        case ast.Call(func=ast.Call(keywords=[]) as made, args=[weights, *_]) if called(made).endswith("grad"):
            return weights
    return None


def _result(file: SourceFile, call: ast.Call) -> ast.expr | None:
    """Return the only expression that reads the carry after a scan, or None."""
    parent = file.parents[call]
    if isinstance(parent, ast.Subscript) and isinstance(parent.slice, ast.Constant) and parent.slice.value == 0:
        return parent
    if not isinstance(parent, ast.Assign) or not isinstance(parent.targets[0], ast.Tuple):
        return None
    name, scope = parent.targets[0].elts[0], file.parents[parent]
    every = [one for one in ast.walk(scope) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]
    behind = [one for one in every if isinstance(name, ast.Name) and one.id == name.id]
    reads = [one for one in behind if one.lineno > (parent.end_lineno or parent.lineno)]
    return reads[0] if len(reads) == 1 else None


def _wrapped(file: SourceFile, node: ast.expr, spec: str, plain: bool) -> list[tuple[SourceFile, Replacement]]:
    """Return the edit that reshards ``node`` to ``spec``; ``plain``: as of ``Expression``."""
    return [(file, one) for one in Expression(file, node, plain).resharded(spec)]
