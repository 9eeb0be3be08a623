"""The small faults that a source text can have: each replaces one span of the text.

Faults are found on the syntax tree and made in the text, so that comments and layout stay and a diff shows one line.
Text that only people read (docstrings, f-strings, annotations) and assertions get none, nor do decorators: the size of
a cache changes no result.

1. *operator*: an arithmetic operator, a bit operator or a comparison is another; a sign is dropped.
2. *constant*: a whole number is one more or one less; True is False.
3. *word*: a name, attribute or text is its opposite (``OPPOSITES``): min for max, source for target, LT for LE. A bare
   name only where the opposite is a name of the same file, or of Python.
4. *arguments*: two neighbouring arguments are swapped.
5. *condition*: a part of a condition is dropped, or a whole one is always true or always false; ``not`` is dropped.
6. *mask*: one side of ``a & b`` is dropped; a mask, a clamp or an order is not applied (``UNWRAPPED``).
7. *groups*: what groups are made of lacks its first part.
8. *statement*: a call for its effect, an update, an assignment to a part, a raise, a break is removed.

Example: ``if low <= x and x < high:`` has eight: two other comparisons, two dropped parts, always true, always false,
and ``low`` and ``high`` for each other.
"""

from __future__ import annotations

import ast
import builtins
import difflib
from dataclasses import dataclass

BINARY: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "//"),
    ast.FloorDiv: ("//", "*"),
    ast.Div: ("/", "*"),
    ast.Mod: ("%", "//"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "&"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}
COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
_PAIRS = (
    *(("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"), ("any", "all"), ("zeros", "ones")),
    *(("ceil", "floor"), ("add", "subtract"), ("multiply", "add"), ("and_", "or_"), ("operand", "result")),
    *(("operands", "results"), ("source", "target"), ("sender", "receiver"), ("before", "after"), ("first", "last")),
    *(("low", "high"), ("lower", "upper"), ("start", "stop"), ("starts", "stops"), ("left", "right"), ("LT", "LE")),
    *(("GT", "GE"), ("EQ", "NE"), ("SIGNED", "UNSIGNED"), ("append", "remove"), ("real", "imag")),
)
OPPOSITES = {b: a for a, b in _PAIRS} | dict(_PAIRS)
UNWRAPPED = {"mask": 0, "clamp": 1, "clip": 0, "sorted": 0, "reversed": 0, "abs": 0, "where": 1, "select": 1}
SYMMETRIC = {"isinstance", "min", "max", "minimum", "maximum", "gcd", "lcm", "array_equal"}
SYMMETRIC |= {"add", "multiply", "and_", "or_", "logical_and", "logical_or", "cast", "getattr"}


@dataclass(frozen=True, order=True)
class Fault:
    """The bytes ``start`` to ``stop`` of a file replaced by ``new``.

    ``line``: of the fault. ``lines``: first and last line of the statement that it is in, without a statement's body.
    """

    file: str
    start: int
    stop: int
    new: str
    kind: str
    line: int
    lines: tuple[int, int]

    def apply(self, text: bytes) -> bytes:
        return text[: self.start] + self.new.encode() + text[self.stop :]

    def diff(self, text: bytes) -> str:
        """The changed lines, without context."""
        before, after = (t.decode().splitlines() for t in (text, self.apply(text)))
        rows = difflib.unified_diff(before, after, n=0, lineterm="")
        return "\n".join(row for row in rows if row[:3] not in ("---", "+++", "@@ "))


def faults(file: str, text: bytes) -> list[Fault]:
    """All faults of one file, in the order of the text; a few leave text that is none of Python, or means the same."""
    finder = _Finder(file, text)
    finder.visit(ast.parse(text))
    return sorted(set(finder.out))


def is_other(fault: Fault, text: bytes) -> bool:
    """Whether the fault leaves text that Python can parse, and that means another."""
    try:
        return ast.dump(ast.parse(fault.apply(text))) != ast.dump(ast.parse(text))
    except (SyntaxError, ValueError):
        return False


class _Finder(ast.NodeVisitor):
    """Collects faults in ``out``; ``_lines`` is the statement that the walk is in."""

    def __init__(self, file: str, text: bytes) -> None:
        self.file, self.text = file, text
        self.out: list[Fault] = []
        self._begins = [0]
        for row in text.splitlines(keepends=True):
            self._begins.append(self._begins[-1] + len(row))
        self._lines = (1, 1)
        names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
        self._names = names | set(dir(builtins))

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        begin = self._begins[node.lineno - 1] + node.col_offset
        return begin, self._begins[node.end_lineno - 1] + node.end_col_offset

    def _of(self, node: ast.expr | ast.stmt) -> str:
        start, stop = self._span(node)
        return self.text[start:stop].decode()

    def _add(self, kind: str, start: int, stop: int, new: str) -> None:
        line = 1 + self.text.count(b"\n", 0, start)
        self.out.append(Fault(self.file, start, stop, new, kind, line, self._lines))

    def _replace(self, kind: str, node: ast.expr | ast.stmt, new: str) -> None:
        self._add(kind, *self._span(node), new)

    def _between(self, kind: str, left: ast.expr, right: ast.expr, old: str, new: str) -> None:
        """Another token between two operands."""
        start, stop = self._span(left)[1], self._span(right)[0]
        at = self.text.find(old.encode(), start, stop)
        if at >= 0:
            self._add(kind, at, at + len(old), new)

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.stmt):
            outer = self._lines
            self._lines = _own_lines(node)
            self._statement(node)
            self._lines = outer
        else:
            super().visit(node)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assert() | ast.Import() | ast.ImportFrom() | ast.Global() | ast.Nonlocal():
                return
            case ast.Expr(value=ast.Constant()):
                return
            case ast.AnnAssign(value=value):
                if value is not None:
                    self.visit(value)
                return
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
                    self.visit(default)
                for inner in node.body:
                    self.visit(inner)
                return
            case ast.ClassDef():
                for inner in node.body:
                    self.visit(inner)
                return
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                return
            case ast.If(test=test):
                self._whole_condition(test)
            case ast.Raise() | ast.Break() | ast.Continue() | ast.AugAssign() | ast.Delete():
                self._replace("statement", node, "pass")
            case ast.Expr(value=ast.Call()):
                self._replace("statement", node, "pass")
            case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
                self._replace("statement", node, "pass")
        self.generic_visit(node)

    def _whole_condition(self, test: ast.expr) -> None:
        self._replace("condition", test, "True")
        self._replace("condition", test, "False")

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._replace("condition", test, "True")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._whole_condition(node.test)
        self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Text for people; and before Python 3.12 its parts have no places."""

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for value in node.values:
            self._replace("condition", value, str(isinstance(node.op, ast.And)))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub | ast.Invert):
            kind = "condition" if isinstance(node.op, ast.Not) else "operator"
            self._add(kind, self._span(node)[0], self._span(node.operand)[0], "")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if type(node.op) in BINARY and not _is_text_or_types(node):
            self._between("operator", node.left, node.right, *BINARY[type(node.op)])
            if isinstance(node.op, ast.BitAnd):
                self._replace("mask", node, f"({self._of(node.left)})")
                self._replace("mask", node, f"({self._of(node.right)})")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for left, op, right in zip((node.left, *node.comparators), node.ops, node.comparators, strict=False):
            self._between("operator", left, right, *COMPARISONS[type(op)])
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._replace("constant", node, str(not node.value))
        elif isinstance(node.value, int):
            self._replace("constant", node, str(node.value + 1))
            if node.value > 0:
                self._replace("constant", node, str(node.value - 1))
        elif isinstance(node.value, str) and node.value in OPPOSITES:
            self._replace("word", node, repr(OPPOSITES[node.value]))

    def visit_Name(self, node: ast.Name) -> None:
        other = OPPOSITES.get(node.id)
        if isinstance(node.ctx, ast.Load) and other in self._names:
            self._replace("word", node, str(other))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr in OPPOSITES and isinstance(node.ctx, ast.Load):
            stop = self._span(node)[1]
            self._add("word", stop - len(node.attr.encode()), stop, OPPOSITES[node.attr])
        self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        """``strict=`` of a zip is an assertion."""
        if node.arg != "strict":
            self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        called = _called(node)
        plain = not any(isinstance(a, ast.Starred | ast.GeneratorExp) for a in node.args)
        if plain and called not in SYMMETRIC:
            for left, right in zip(node.args, node.args[1:], strict=False):
                swapped = self.text[self._span(left)[1] : self._span(right)[0]].decode()
                new = f"{self._of(right)}{swapped}{self._of(left)}"
                self._add("arguments", self._span(left)[0], self._span(right)[1], new)
        if plain and len(node.args) > UNWRAPPED.get(called, len(node.args)):
            self._replace("mask", node, f"({self._of(node.args[UNWRAPPED[called]])})")
        if plain and node.args and "groups" in called:
            self._replace("groups", node.args[0], f"{self._of(node.args[0])}[1:]")
        self.generic_visit(node)


def _called(node: ast.Call) -> str:
    """The last name of what is called."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _own_lines(node: ast.stmt) -> tuple[int, int]:
    """First and last line of a statement, of a compound one only those of its head."""
    body: list[ast.stmt] = getattr(node, "body", [])
    last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
    return node.lineno, max(node.lineno, last)


def _is_text_or_types(node: ast.BinOp) -> bool:
    """Whether ``%`` or ``+`` is of text, or ``|`` joins types."""
    sides = (node.left, node.right)
    constants = [side.value for side in sides if isinstance(side, ast.Constant)]
    if isinstance(node.op, ast.BitOr):
        return None in constants or all(map(_is_type, sides))
    return any(isinstance(side, ast.JoinedStr) for side in sides) or any(isinstance(c, str) for c in constants)


def _is_type(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_type(node.left) and _is_type(node.right)
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return isinstance(node, ast.Subscript) or name in ("int", "str", "float", "bool") or name[:1].isupper()
