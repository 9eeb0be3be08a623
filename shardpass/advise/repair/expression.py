"""The expression at which JAX raised an error, with its operands, and its text with other operands or a sharding.

Example: of ``jnp.einsum('bd,df->bf', x, self.w[0])`` the operands are the text, ``x`` and ``self.w[0]``; with the third
resharded and the sharding of the result written it is

    jnp.einsum('bd,df->bf', x, jax.reshard(self.w[0], P('data')), out_sharding=P('data', 'model'))

Texts are made by insertions, so that comments and line breaks stay.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeGuard

import jax

from shardpass.advise.find.source import Replacement, SourceFile, called, requoted
from shardpass.advise.place.specs import Spec, spec_text
from shardpass.ir.frames import Frame

PROBE = "__shardpass_probe__"  # in texts: a function of (number, value) that returns the value
OUT, FUNCTION = -1, -2  # the numbers of the whole expression and of what it calls, for the probe
_UNPROBED = (ast.Starred, ast.Slice, ast.GeneratorExp, ast.Constant)
_WSC = "with_sharding_constraint"


@dataclass(frozen=True)
class Edit:
    """The replacement of one expression.

    ``operands``: the spec to which each operand (by number; OUT: the result) is resharded. ``out``: the
    ``out_sharding``. ``moved``: whether the call itself becomes a ``reshard``.
    """

    operands: tuple[tuple[int, Spec], ...] = ()
    out: Spec | None = None
    moved: bool = False


@dataclass(frozen=True, order=True)
class _Insertion:
    """Text to insert at ``start``. At one place, text that ends a node precedes text that begins one.

    Of those that end, the inner comes first; of those that begin, the outer. ``stop``: for a replacement, the end of
    the text that is removed.
    """

    start: int
    begins: bool
    depth: int
    text: str = field(compare=False)
    stop: int = field(default=-1, compare=False)


class Expression:
    """One expression of ``file``, and the edits of its text. ``plain``: a mesh is in use, so that specs name none."""

    def __init__(self, file: SourceFile, node: ast.expr, plain: bool = False) -> None:
        self.file, self.node, self.plain = file, node, plain
        self.operands = dict(enumerate(_operands(node)))
        self.called = called(node) if isinstance(node, ast.Call) else ""

    @property
    def text(self) -> str:
        """The expression in one line, as ``ast.unparse`` writes it."""
        return ast.unparse(self.node)

    def operand(self, number: int) -> str:
        """Return the text of an operand, or of the expression itself (OUT), in one line."""
        return ast.unparse(self.node if number == OUT else self.operands[number])

    @property
    def may_say(self) -> bool:
        """Whether the expression is of a kind that may have an ``out_sharding``."""
        if isinstance(self.node, ast.BinOp):
            return isinstance(self.node.op, ast.MatMult)
        return isinstance(self.node, ast.Call | ast.Subscript)

    @property
    def is_constraint(self) -> bool:
        return self.called.endswith(_WSC)

    # ---------------------------------------------------------------- texts

    def watched(self, edit: Edit) -> str:
        """Return the file's text with ``edit``, and with the expression's value passed to the probe."""
        wrap = self._wrap(self.node, f"{PROBE}({OUT}, ", ")", -1)
        return self._inserted([*self._insertions(edit), *wrap, *self._import()])

    def probed(self) -> str:
        """Return the file's text with each operand, and the callee, passed to the probe."""
        wraps = [self._wrap(node, f"{PROBE}({number}, ", ")", 2) for number, node in self.operands.items()]
        if isinstance(self.node, ast.Call):
            wraps.append(self._wrap(self.node.func, f"{PROBE}({FUNCTION}, ", ")", 1))
        return self._inserted([one for wrap in wraps for one in wrap])

    def edited(self, edit: Edit) -> str:
        """Return the file's text with ``edit``."""
        return self._inserted([*self._insertions(edit), *self._import()])

    def resharded(self, spec: str) -> list[Replacement]:
        """Return the replacements in the file that reshard the expression to ``spec``, or change the spec of a
        reshard.
        """
        made = [*self._resharding(OUT, self._sharding(spec)), *self._import()]
        return [Replacement(one.start, max(one.start, one.stop), one.text) for one in sorted(made)]

    def alone(self, edit: Edit, arrays: Mapping[int, str], function: str) -> str:
        """Return the text of the expression by itself.

        ``arrays``: the names that replace its operands, by number. ``function``: the name that replaces what it calls.
        """
        insertions = list(self._insertions(edit, alone=True))
        names = [(self.operands[number], name) for number, name in arrays.items()]
        if isinstance(self.node, ast.Call) and function and not edit.moved:
            names.append((self.node.func, function))
        for node, name in names:
            start, stop = self.file.span(node)
            insertions.append(_Insertion(start, True, 9, name, stop))
        start, stop = self.file.span(self.node)
        return f"({self._inserted(insertions, start, stop)})"

    def _insertions(self, edit: Edit, alone: bool = False) -> Iterator[_Insertion]:
        """Yield the insertions of ``edit``. ``alone``: of the expression by itself, where an operand that is a reshard
        already is resharded again.
        """
        say = (lambda spec: spec) if alone else self._sharding
        for number, spec in edit.operands:
            yield from self._resharding(number, say(spec_text(spec)), alone)
        if edit.moved:
            assert isinstance(self.node, ast.Call)
            start, stop = self.file.span(self.node.func)
            yield _Insertion(start, True, 5, f"{self._jax}.reshard", stop)
        if edit.out is not None:
            yield from self._with_sharding(say(spec_text(edit.out)))

    def _resharding(self, number: int, sharding: str, anew: bool = False) -> Iterator[_Insertion]:
        node = self.node if number == OUT else self.operands[number]
        if _is_reshard(node) and not anew:
            start, stop = self.file.span(node.args[1])
            yield _Insertion(start, True, 5, sharding, stop)
        else:
            yield from self._wrap(node, f"{self._jax}.reshard(", f", {sharding})", 0 if number == OUT else 3)

    def _with_sharding(self, sharding: str) -> Iterator[_Insertion]:
        node, raw = self.node, self.file.raw
        start, stop = self.file.span(node)
        if isinstance(node, ast.BinOp):
            left, right = self.file.span(node.left)[1], self.file.span(node.right)[0]
            sign = raw.index(b"@", left)
            left, right = len(raw[:sign].rstrip()), right - len(raw[sign + 1 : right].lstrip())
            yield _Insertion(start, True, 1, f"{self._numpy}.matmul(")
            yield _Insertion(left, True, 0, ", ", right)
            yield _Insertion(stop, False, -1, f", out_sharding={sharding})")
        elif isinstance(node, ast.Subscript):
            yield _Insertion(raw.index(b"[", self.file.span(node.value)[1]), True, 0, ".at")
            yield _Insertion(stop, False, -1, f".get(out_sharding={sharding})")
        elif isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg == "out_sharding":
                    first, last = self.file.span(keyword.value)
                    yield _Insertion(first, True, 5, sharding, last)
                    return
            ends = [self.file.span(one)[1] for one in (*node.args, *(one.value for one in node.keywords))]
            tail = raw[max(ends, default=stop - 1) : stop - 1]
            end = stop - 1 if b"#" in tail else len(raw[: stop - 1].rstrip())
            comma = ", " if ends and b"," not in tail.partition(b"#")[0] else " " if tail.endswith(b",") else ""
            yield _Insertion(end, False, -2, f"{comma}out_sharding={sharding}")

    def _wrap(self, node: ast.AST, before: str, behind: str, depth: int) -> Iterator[_Insertion]:
        start, stop = self.file.span(node)
        yield _Insertion(start, True, depth, before)
        yield _Insertion(stop, False, -depth, behind)

    def _inserted(self, insertions: list[_Insertion], start: int = 0, stop: int | None = None) -> str:
        raw, parts = self.file.raw, []
        place, stop = start, len(self.file.raw) if stop is None else stop
        for one in sorted(insertions):
            if one.start < place:  # inside of what is replaced
                continue
            parts += [raw[place : one.start], one.text.encode()]
            place = max(one.start, one.stop)
        return b"".join([*parts, raw[place:stop]]).decode()

    # ---------------------------------------------------------------- how the file calls things

    def _sharding(self, spec: str) -> str:
        """Write a sharding (``spec``: ``P(...)``) as the file does."""
        if not self.plain:
            return self.file.sharding(spec)
        name = self.file.spec_name
        is_known = name.encode() + b"(" in self.file.raw or f"as {name}".encode() in self.file.raw
        return (name if is_known else "jax.P") + requoted(spec, self.file.quote()).removeprefix("P")

    @cached_property
    def _jax(self) -> str:
        return _alias(self.file, "jax") or "jax"

    @cached_property
    def _numpy(self) -> str:
        return _alias(self.file, "jax.numpy") or f"{self._jax}.numpy"

    @property
    def modules(self) -> dict[str, Any]:
        """Returns the objects that edits refer to, by the names that the file has for them."""
        names = {self._jax: jax, self._numpy: jax.numpy}
        return {name: module for name, module in names.items() if "." not in name} | {"jax": jax}

    def _import(self) -> list[_Insertion]:
        """Return the insertion of ``import jax``, if the file has no name for JAX."""
        if _alias(self.file, "jax"):
            return []
        imports = (one for one in self.file.tree.body if isinstance(one, ast.Import | ast.ImportFrom))
        first = next((one for one in imports if getattr(one, "module", "") != "__future__"), None)
        return [_Insertion(0 if first is None else self.file.line_start(first), True, 0, "import jax\n")]


def expression_at(file: SourceFile, frame: Frame, plain: bool) -> Expression | None:
    """Return the expression that ``frame`` spans; if it spans none, the only call of its line, or None."""
    node = file.expression_at(frame)
    if node is None:
        calls = [one for one in ast.walk(file.tree) if isinstance(one, ast.Call) and one.lineno == frame.place.line]
        node = calls[0] if len(calls) == 1 else None
    return Expression(file, node, plain) if node is not None else None


def _operands(node: ast.expr) -> Iterator[ast.expr]:
    parts: list[ast.expr] = []
    match node:
        case ast.Call(func=function, args=parts, keywords=named):
            owner = [function.value] if isinstance(function, ast.Attribute) else []
            parts = [*owner, *parts, *(one.value for one in named if one.arg is not None)]
        case ast.BinOp(left=left, right=right):
            parts = [left, right]
        case ast.Compare(left=left, comparators=parts):
            parts = [left, *parts]
        case ast.Subscript(value=left, slice=right):
            parts = [left, right]
        case ast.UnaryOp(operand=one) | ast.Attribute(value=one):
            parts = [one]
    for part in parts:
        yield from _parts(part)


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Tuple(elts=inside) | ast.List(elts=inside) | ast.Dict(values=inside):
            pass
        case ast.Subscript(value=ast.Attribute(value=array, attr="at"), slice=index):
            inside = [array, index]
        case _:
            if not isinstance(node, _UNPROBED):
                yield node
            return
    for one in inside:
        yield from _parts(one)


def _is_reshard(node: ast.expr) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and called(node).rpartition(".")[2] == "reshard" and len(node.args) == 2


def _alias(file: SourceFile, module: str) -> str:
    """Return the name by which the file refers to ``module``, "" if it does not."""
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                if one.name == module and (one.asname or "." not in module):
                    return one.asname or one.name
                if module == "jax" and one.asname is None and one.name.startswith("jax."):
                    return "jax"
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            for one in node.names:
                if f"{node.module}.{one.name}" == module:
                    return one.asname or one.name
    return ""
