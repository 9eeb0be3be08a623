"""Find the calls in the user's files that write sharding types, in programs with explicit axes.

A call is one of four forms:

1. ``RESHARD``: ``reshard(x, P('data'))``. Without the reshard the expression is ``x``.
2. ``KEYWORD``: any call with ``out_sharding=``. Without the keyword JAX infers the type, or raises an error.
3. ``REGION``: a call of what ``auto_axes`` made, in the call itself (``auto_axes(f, out_sharding=s)(x)``), at its one
   assignment, or as a decorator. Without the region the function is called as it is, on explicit axes.
4. ``HELPER``: a call of a function whose whole body is ``return reshard(argument, ...)``. Without the call the
   expression is the argument.

Each is reached from the equations of the jaxpr: the innermost frame of an equation whose span is such a call. Several
equations may come from one call (layers in a loop, arrays of a tree, a gradient): an edit is about all of them.
Libraries are not edited.

Complexity: O(frames of all equations); spans are looked up.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from shardpass.advise.find.source import Files, Replacement, SourceFile, called, keyword_of
from shardpass.diagnostics import Place
from shardpass.ir import jax_private
from shardpass.report.naming import Sources

RESHARD, KEYWORD, REGION, HELPER = "reshard", "out_sharding", "auto_axes", "helper"


@dataclass(eq=False)
class Written:
    """One call. ``kept``: what remains without the type. ``made``: the expression that makes the region, if it is not
    in ``call``.

    ``equations``: those of the jaxpr that come from the call, in program order.
    """

    file: SourceFile
    form: str
    call: ast.Call
    kept: ast.expr | None = None
    spec: ast.expr | None = None
    made: ast.Call | None = None
    equations: list[Any] = field(default_factory=list)

    @property
    def place(self) -> Place:
        return Place(self.file.path, self.call.lineno, self.call.col_offset)

    @property
    def name(self) -> str:
        """The text of what has the type: the operand, or the function that is called."""
        if self.form == KEYWORD or self.kept is None:
            return called(self.call) or ast.unparse(self.call.func)
        return ast.unparse(self.kept)

    @property
    def repeats(self) -> bool:
        """Whether each reshard is to the type that its operand has already."""
        reshards = [one for one in self.equations if one.primitive.name == "reshard"]
        same = (one.invars[0].aval.sharding == one.outvars[0].aval.sharding for one in reshards)
        return bool(reshards) and all(same)

    @property
    def target(self) -> Any:
        """The type that all results of the call have; None if they differ."""
        forward = [one for one in self.equations if "transpose(" not in str(one.source_info.name_stack)]
        if self.form in (RESHARD, HELPER):
            results = [one.outvars[0].aval for one in forward if one.primitive.name == "reshard"]
        else:
            says = ("dst_sharding", "out_sharding", "sharding")
            typed = [one for one in forward if any(one.params.get(name) is not None for name in says)]
            results = [one.outvars[0].aval for one in typed[-1:] or forward[-1:]]
        kinds = {(one.shape, str(one.sharding.spec)) for one in results}
        return results[0] if len(kinds) == 1 else None

    @property
    def outside(self) -> ast.FunctionDef | ast.Lambda | None:
        """The function of a region that was made before the program was traced; None for all other calls.

        Such a region is an object: no code that JAX runs while it traces makes it.
        """
        if self.made is None or self._made_inside:
            return None
        parent = self.file.parents[self.made]
        if isinstance(parent, ast.FunctionDef):
            return parent
        if isinstance(self.kept, ast.Lambda):
            return self.kept
        name = self.kept.id if isinstance(self.kept, ast.Name) else ""
        functions = [one for one in ast.walk(self.file.tree) if isinstance(one, ast.FunctionDef) and one.name == name]
        return functions[0] if len(functions) == 1 else None

    @property
    def fixed(self) -> bool:
        """Whether no edit can be tried: the region was made before tracing, of an unknown function."""
        return self.made is not None and self.outside is None and not self._made_inside

    @property
    def _made_inside(self) -> bool:
        """Whether an equation was traced inside of a call of the function that makes the region."""
        assert self.made is not None
        around = self.file.function_around(self.made)
        if around is None:
            return False
        lines = range(around.lineno, (around.end_lineno or around.lineno) + 1)
        name = "<lambda>" if isinstance(around, ast.Lambda) else around.name
        frames = (frame for one in self.equations for frame in jax_private.frames_of(one))
        return any(path == self.file.path and known == name and span[0] in lines for path, known, span in frames)

    def without(self) -> list[Replacement] | None:
        """Return the edit that removes the type; None if the text does not show how."""
        file, call = self.file, self.call
        if self.form == KEYWORD:
            return _without_keyword(file, call)
        assert self.kept is not None
        if self.form == REGION:
            made = self.made or call.func
            if isinstance(file.parents[made], ast.FunctionDef):  # a decorator
                return [Replacement(file.line_start(made), file.line_end(made), "")]
            return file.without_call(made, self.kept)
        return file.unwrapped(call, self.kept)

    def with_spec(self, spec: str) -> list[Replacement] | None:
        """Return the edit that replaces the type by ``spec``, a text such as ``P(...)``; None if that is not
        possible.
        """
        if self.spec is None or isinstance(self.spec, ast.Tuple | ast.List | ast.Dict):
            return None
        start, end = self.file.span(self.spec)
        return [Replacement(start, end, self.file.sharding(spec, self.spec))]


class Calls:
    """The calls of a program that write sharding types, with their files."""

    def __init__(self, sources: Sources) -> None:
        self.files = Files(sources)
        self._by_end: dict[str, dict[tuple[int, int], ast.Call]] = {}
        self._met: dict[tuple[str, int], Written] = {}

    def of(self, jaxpr: Any) -> list[Written]:
        """Return the calls of ``jaxpr`` in program order, each with its equations."""
        self._met.clear()
        for equation in jax_private.equations(jaxpr):
            written = self._innermost(equation)
            if written is not None:
                written.equations.append(equation)
        return list(self._met.values())

    def _innermost(self, equation: Any) -> Written | None:
        inner: Written | None = None
        for path, _, span in jax_private.frames_of(equation):
            file = self.files.at(path)
            if file is None:
                continue
            call = self.call_at(file, span)
            if inner is not None:  # the frame that called a helper
                helped = None if call is None else _helped(inner, call, file)
                return self._known(inner if helped is None else helped)
            written = None if call is None else _written(file, call)
            if written is not None and _helper_of(written) is None:
                return self._known(written)
            inner = written
        return None if inner is None else self._known(inner)

    def _known(self, written: Written) -> Written:
        return self._met.setdefault((written.file.path, written.file.span(written.call)[1]), written)

    def call_at(self, file: SourceFile, span: jax_private.Span) -> ast.Call | None:
        """Return the call that ends where ``span`` ends; versions of Python differ on where methods start."""
        known = self._by_end.get(file.path)
        if known is None:
            nodes = [node for node in ast.walk(file.tree) if isinstance(node, ast.Call)]
            known = {(node.end_lineno or 0, node.end_col_offset or 0): node for node in nodes}
            self._by_end[file.path] = known
        return known.get((span[1], span[3]))


# ---------------------------------------------------------------- which form a call has


def _written(file: SourceFile, call: ast.Call) -> Written | None:
    name = called(call).rpartition(".")[2]
    if name == "reshard" and call.args and not isinstance(call.args[0], ast.Starred):
        spec = call.args[1] if len(call.args) > 1 else keyword_of(call, "out_shardings")
        return Written(file, RESHARD, call, call.args[0], spec)
    making = call.func if isinstance(call.func, ast.Call) else None
    if making is not None and _makes_region(making) and making.args:
        spec = keyword_of(making, "out_sharding") or keyword_of(call, "out_sharding")
        return Written(file, REGION, call, making.args[0], spec)
    made = _region_of(file, call)
    if made is not None:
        return Written(file, REGION, call, made[1], keyword_of(made[0], "out_sharding"), made[0])
    spec = keyword_of(call, "out_sharding")
    return None if spec is None or _makes_region(call) else Written(file, KEYWORD, call, None, spec)


def _makes_region(call: ast.Call) -> bool:
    return called(call).rpartition(".")[2] == "auto_axes"


def _region_of(file: SourceFile, call: ast.Call) -> tuple[ast.Call, ast.expr] | None:
    """Return the call of ``auto_axes`` and the function, for a call of a region by its name."""
    if not isinstance(call.func, ast.Name):
        return None
    name = call.func.id
    value = file.assigned(name, call)
    if isinstance(value, ast.Call) and _makes_region(value) and value.args:
        return value, value.args[0]
    functions = [one for one in ast.walk(file.tree) if isinstance(one, ast.FunctionDef) and one.name == name]
    decorators = [one for function in functions for one in function.decorator_list]
    if len(functions) != 1 or len(decorators) != 1 or not isinstance(decorators[0], ast.Call):
        return None
    made = decorators[0]
    is_partial = called(made).rpartition(".")[2] == "partial" and made.args
    through_partial = is_partial and ast.unparse(made.args[0]).endswith("auto_axes")
    return (made, call.func) if _makes_region(made) or through_partial else None


def _helper_of(written: Written) -> ast.FunctionDef | ast.Lambda | None:
    """Return the function of the file that only reshards one of its arguments, if ``written`` is in one."""
    if written.form != RESHARD or not isinstance(written.kept, ast.Name):
        return None
    parents = written.file.parents
    above = parents[written.call]
    function = parents[above] if isinstance(above, ast.Return) else above
    if isinstance(function, ast.Lambda):
        return function if _place_of(function, written.kept.id) is not None else None
    if not isinstance(above, ast.Return) or not isinstance(function, ast.FunctionDef) or function.decorator_list:
        return None
    body = [one for one in function.body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
    return function if len(body) == 1 and _place_of(function, written.kept.id) is not None else None


def _place_of(function: ast.FunctionDef | ast.Lambda, name: str) -> int | None:
    names = [one.arg for one in function.args.args]
    return names.index(name) if name in names else None


def _helped(inner: Written, call: ast.Call, file: SourceFile) -> Written | None:
    """Return the call of a helper with the argument that it reshards; None if the call does not show it."""
    function = _helper_of(inner)
    assert function is not None
    assert isinstance(inner.kept, ast.Name)
    place = _place_of(function, inner.kept.id)
    name = called(call).rpartition(".")[2]
    if place is None or (isinstance(function, ast.FunctionDef) and function.name != name):
        return None
    if isinstance(inner.file.parents[function], ast.ClassDef) and isinstance(call.func, ast.Attribute):
        place -= 1
    by_name = keyword_of(call, inner.kept.id)
    if by_name is not None:
        return Written(file, HELPER, call, by_name)
    if not 0 <= place < len(call.args) or any(isinstance(one, ast.Starred) for one in call.args[: place + 1]):
        return None
    return Written(file, HELPER, call, call.args[place])


# ---------------------------------------------------------------- edits


def _without_keyword(file: SourceFile, call: ast.Call) -> list[Replacement]:
    parts: list[ast.expr | ast.keyword] = sorted([*call.args, *call.keywords], key=lambda one: file.span(one))
    place = next(number for number, one in enumerate(parts) if isinstance(one, ast.keyword) and one.arg == KEYWORD)
    start, end = file.span(parts[place])
    if place:
        start = file.span(parts[place - 1])[1]
    elif len(parts) > 1:
        end = file.span(parts[1])[0]
    return [Replacement(start, end, "")]
