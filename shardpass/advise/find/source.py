"""Edit a user's Python file as text: locate expressions, and compute the diff of an edited file.

Places of Python's parser count bytes of UTF-8, as JAX's do, so the file is kept as bytes.
"""

from __future__ import annotations

import ast
import difflib
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from typing import TypeGuard

from shardpass.ir.frames import Frame, is_library
from shardpass.report.naming import Sources

_CONSTRAINT = "with_sharding_constraint"
_MESHES = ("make_mesh", "create_device_mesh", "reshape")
_CONTEXT = 2  # lines of a diff around a change
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_SPECS, _NAMED = ("P", "PartitionSpec"), "NamedSharding"
_SPECS_IN = re.compile(r"PartitionSpec|\bP\(|partition")  # the text of a file that may name specs
_MOST_BESIDE = 200  # files that are looked at


@dataclass(frozen=True)
class Replacement:
    """A change of a file's text: ``text`` replaces the bytes from ``start`` to ``end``."""

    start: int
    end: int
    text: str


class SourceFile:
    """A Python file with its syntax tree. Raises SyntaxError or ValueError if ``text`` does not parse."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.raw = path, text.encode()
        self.tree = ast.parse(text)
        starts = [0]
        for line in self.raw.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        self._starts = starts

    # ---------------------------------------------------------------- where

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return the start and end of a node, in bytes of the file."""
        line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
        end, last = node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
        return self._starts[line - 1] + column, self._starts[end - 1] + last

    def text(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.raw[start:end].decode()

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def constraint_at(self, frame: Frame) -> ast.Call | None:
        """Return the call of ``with_sharding_constraint`` that ``frame`` spans, or the only one of its line,
        or None.
        """
        calls = [node for node in self._calls() if self._is_constraint(node)]
        here = [node for node in calls if node.lineno == frame.place.line]
        exact = [node for node in here if node.col_offset == frame.place.column]
        return exact[0] if exact else here[0] if len(here) == 1 else None

    def expression_at(self, frame: Frame) -> ast.expr | None:
        """Return the expression that ``frame`` spans, or None."""
        place = frame.place
        wanted = place.line, place.column, frame.end_line, frame.end_column
        for node in ast.walk(self.tree):
            if isinstance(node, ast.expr):
                span = node.lineno, node.col_offset, node.end_lineno, node.end_col_offset
                if span == wanted:
                    return node
        return None

    def in_spec(self, frame: Frame, place: int, count: int) -> ast.expr | None:
        """Return the entry of ``in_specs`` for array ``place`` of ``count`` that the call of a shard_map at ``frame``
        takes; None if that is not certain.
        """
        call = self.expression_at(frame)
        made = call.func if isinstance(call, ast.Call) else None
        if isinstance(made, ast.Name):
            functions = [one for one in ast.walk(self.tree) if isinstance(one, ast.FunctionDef) and one.name == made.id]
            decorators = functions[0].decorator_list if len(functions) == 1 else []
            made = next((one for one in decorators if isinstance(one, ast.Call)), None) or self.assigned(made.id, made)
        specs = keyword_of(made, "in_specs") if isinstance(made, ast.Call) else None
        specs = None if specs is None else self.resolved(specs)
        every = specs.elts if isinstance(specs, ast.Tuple | ast.List) else []
        return every[place % len(every)] if every and count % len(every) == 0 else None

    def statement_of(self, node: ast.AST) -> ast.stmt:
        """Return the statement that contains an expression."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def line_start(self, node: ast.AST) -> int:
        return self._starts[node.lineno - 1]  # type: ignore[attr-defined]

    def line_end(self, node: ast.AST) -> int:
        """Return the byte offset just past the node's last line, including its line break."""
        return self._starts[min(node.end_lineno, len(self._starts) - 1)]  # type: ignore[attr-defined]

    def line_at(self, start: int) -> int:
        """Return the number of the line of a byte."""
        return self.raw[:start].count(b"\n") + 1

    def indent(self, node: ast.AST) -> str:
        columns: int = node.col_offset  # type: ignore[attr-defined]
        return " " * columns

    def _calls(self) -> Iterator[ast.Call]:
        return (node for node in ast.walk(self.tree) if isinstance(node, ast.Call))

    # ---------------------------------------------------------------- shardings in the file

    def shardings(self, function: str, keyword: str) -> ast.expr | None:
        """Return the value of ``keyword`` (``in_shardings``) in the call that jits ``function``, if there is one."""
        result = [
            given.value
            for call in self._calls()
            if self._is_about(call, function)
            for given in call.keywords
            if given.arg == keyword
        ]
        return result[0] if len(result) == 1 else None

    def _is_about(self, call: ast.Call, function: str) -> bool:
        if any(isinstance(one, ast.Name) and one.id == function for one in call.args[:1]):
            return True
        parent = self.parents.get(call)
        return isinstance(parent, ast.FunctionDef) and parent.name == function and call in parent.decorator_list

    def mesh_sizes(self, sizes: Sequence[int]) -> Iterator[list[ast.expr]]:
        """Yield the numbers of each call that makes a mesh, or arranges its devices, with ``sizes``."""
        for call in self._calls():
            if getattr(call.func, "attr", getattr(call.func, "id", "")) in _MESHES:
                given = [call.args, *(one.elts for one in call.args if isinstance(one, ast.Tuple | ast.List))]
                yield from (some for some in given if [getattr(one, "value", None) for one in some] == list(sizes))

    def parameters(self, function: str) -> tuple[str, ...]:
        """Return the names of a function's positional parameters; () unless exactly one function has that name."""
        result = [node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef) and node.name == function]
        return tuple(one.arg for one in result[0].args.args) if len(result) == 1 else ()

    def assigned(self, name: str, near: ast.AST) -> ast.expr | None:
        """Return the value of the only assignment to ``name`` in the function around ``near``, or else in the file."""
        scope: ast.AST | None = near
        while scope is not None:
            scope = self.parents.get(scope)
            if isinstance(scope, ast.FunctionDef | ast.Module):
                result = [
                    node.value
                    for node in ast.walk(scope)
                    if isinstance(node, ast.Assign)
                    and len(node.targets) == 1
                    and isinstance(node.targets[0], ast.Name)
                    and node.targets[0].id == name
                ]
                if result:
                    return result[0] if len(result) == 1 else None
        return None

    def uses(self, name: str) -> int:
        """Count the reads of ``name`` in the file."""
        nodes = (node for node in ast.walk(self.tree) if isinstance(node, ast.Name))
        return sum(isinstance(node.ctx, ast.Load) and node.id == name for node in nodes)

    @cached_property
    def spec_name(self) -> str:
        """The name by which the file refers to ``PartitionSpec``."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom):
                for one in node.names:
                    if one.name in _SPECS:
                        return one.asname or one.name
        return next((called(call) for call in self._calls() if called(call).endswith("PartitionSpec")), "P")

    def _is_constraint(self, call: ast.Call) -> bool:
        """Return whether ``call`` constrains its first argument: with a sharding, or by a name that has one."""
        name = called(call)
        named = name.endswith(_CONSTRAINT) or name in self._aliases
        return bool(call.args) and (name in self._bound or (named and sharding_of(call) is not None))

    @cached_property
    def _aliases(self) -> dict[str, None]:
        """The names of ``with_sharding_constraint`` in the file, by import or by assignment at the top level."""
        imports = (one for node in ast.walk(self.tree) if isinstance(node, ast.ImportFrom) for one in node.names)
        result = {one.asname: None for one in imports if one.name == _CONSTRAINT and one.asname}
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.value).endswith(_CONSTRAINT):
                result |= {one.id: None for one in node.targets if isinstance(one, ast.Name)}
        return result

    @cached_property
    def _bound(self) -> frozenset[str]:
        """Names at the top of the file of ``partial(with_sharding_constraint, shardings=...)``."""
        names = set[str]()
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and isinstance(made := node.value, ast.Call) and len(made.args) == 1:
                of = ast.unparse(made.args[0])
                if called(made).endswith("partial") and (of.endswith(_CONSTRAINT) or of in self._aliases):
                    names |= {one.id for one in node.targets if isinstance(one, ast.Name)}
        return frozenset(names)

    @cached_property
    def constraint_name(self) -> str:
        """The name by which the file refers to ``jax.lax.with_sharding_constraint``."""
        if self._aliases:
            return next(iter(self._aliases))
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom):
                for one in node.names:
                    name = one.asname or one.name
                    if node.module == "jax.lax" and one.name == _CONSTRAINT:
                        return name
                    if node.module == "jax" and one.name == "lax":
                        return f"{name}.{_CONSTRAINT}"
        return f"jax.lax.{_CONSTRAINT}"

    def function_around(self, node: ast.AST) -> Function | None:
        """Return the innermost function whose body contains a node; a decorator belongs to the function outside."""
        inner, outer = node, self.parents.get(node)
        while outer is not None:
            if isinstance(outer, Function) and inner not in getattr(outer, "decorator_list", ()):
                return outer
            inner, outer = outer, self.parents.get(outer)
        return None

    def function_of(self, node: ast.AST) -> ast.FunctionDef | None:
        """Return the function definition around a node; None at module level and in a lambda."""
        function = self.function_around(node)
        return function if isinstance(function, ast.FunctionDef) else None

    def resolved(self, node: ast.expr) -> ast.expr:
        """Return the value that a name is assigned once; any other expression unchanged."""
        return (self.assigned(node.id, node) if isinstance(node, ast.Name) else None) or node

    @cached_property
    def _named(self) -> str:
        """The text before the spec in the file's shardings, as ``NamedSharding(mesh, ``; "" if no mesh has a name."""
        for call in self._calls():
            if called(call).endswith(_NAMED) and len(call.args) == 2 and isinstance(call.args[0], ast.Name):
                return f"{called(call)}({self.text(call.args[0])}, "
        return ""

    @cached_property
    def _helpers(self) -> frozenset[str]:
        """Names of the file's functions that turn a spec into a sharding: ``lambda *spec: NamedSharding(mesh,
        P(*spec))``.
        """
        result = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef) and isinstance(node.body[-1], ast.Return):
                name, arguments, value = node.name, node.args, node.body[-1].value
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
                target = node.targets[0]
                name = target.id if isinstance(target, ast.Name) else ""
                arguments, value = node.value.args, node.value.body
            else:
                continue
            if name and arguments.vararg is not None and not arguments.args and value is not None:
                inner = value.args[-1] if self._is_named(value) and len(value.args) == 2 else value
                if self.is_spec(inner) and [ast.unparse(one) for one in inner.args] == [f"*{arguments.vararg.arg}"]:
                    result.add(name)
        return frozenset(result)

    def sharding(self, spec: str, instead_of: ast.expr | None = None) -> str:
        """Write a sharding in the form of the expression that it replaces. ``spec``: as ``P(...)``."""
        spec = requoted(spec, self.quote(instead_of))
        written = self.spec_name + spec.removeprefix("P")
        helper = called(instead_of) if isinstance(instead_of, ast.Call) else next(iter(sorted(self._helpers)), "")
        if helper in self._helpers and (instead_of is None or not self.is_spec(instead_of)):
            return helper + spec.removeprefix("P")
        if instead_of is not None and self.is_spec(instead_of):
            return called(instead_of) + spec.removeprefix("P")
        if isinstance(instead_of, ast.Call) and called(instead_of).endswith(_NAMED) and len(instead_of.args) == 2:
            return f"{called(instead_of)}({self.text(instead_of.args[0])}, {written})"
        return f"{self._named}{written})" if self._named else written

    def handed_over(
        self, call: ast.Call, helper: Function, sharding: ast.expr | None, kept: ast.expr, spec: str
    ) -> Replacement | None:
        """Return the replacement of what ``call`` hands to ``helper`` as the spec of ``sharding``: the entries that
        follow its parameters, or one argument; None where it hands none over. ``kept``: what is constrained.
        """
        used = {node.id for node in ast.walk(sharding or ast.Constant(None)) if isinstance(node, ast.Name)}
        names, rest = [one.arg for one in helper.args.args], helper.args.vararg
        if rest is not None and rest.arg in used and not call.keywords:
            entries = requoted(spec, self.quote(call))[len("P(") : -1]
            texts = [*map(self.text, call.args[: len(names)]), *filter(None, [entries])]
            return Replacement(*self.span(call), f"{self.text(call.func)}({', '.join(texts)})")
        places = [place - (names[0] == "self") for place, name in enumerate(names) if name in used]
        given = [call.args[place] for place in places if place < len(call.args)]
        given += [one.value for one in call.keywords if one.arg in used]
        if len(given) == 1 and given[0] is not kept and self.is_sharding(given[0]):
            return Replacement(*self.span(given[0]), self.sharding(spec, given[0]))
        return None

    def quote(self, near: ast.AST | None = None) -> str:
        """Return the quotation mark of the strings in ``near``, or the most frequent of the file if it has no
        strings.
        """
        counts = Counter(() if near is None else self._marks(near)) or self._all_marks
        return max(counts, key=lambda mark: (counts[mark], mark), default="'")

    @cached_property
    def _all_marks(self) -> Counter[str]:
        return Counter(self._marks(self.tree))

    def _marks(self, node: ast.AST) -> Iterator[str]:
        """Yield the quotation mark of each plain string on one line, without prefix and not in triple quotes."""
        for one in ast.walk(node):
            if isinstance(one, ast.Constant) and isinstance(one.value, str) and one.lineno - 1 < len(self._starts):
                start, end = self.span(one)
                text = self.raw[start:end].decode(errors="replace")
                if text[:1] in ("'", '"') and text[-1] == text[0] and text[:3] not in ("'''", '"""'):
                    yield text[0]

    def is_sharding(self, node: ast.AST) -> bool:
        """Return whether a node makes a sharding or a spec."""
        helper = isinstance(node, ast.Call) and called(node) in self._helpers
        return helper or self.is_spec(node) or self._is_named(node)

    def is_spec(self, node: ast.AST) -> TypeGuard[ast.Call]:
        """Return whether a node makes a ``PartitionSpec``."""
        return isinstance(node, ast.Call) and called(node).rpartition(".")[2] in (*_SPECS, self.spec_name)

    def _is_named(self, node: ast.AST) -> TypeGuard[ast.Call]:
        return isinstance(node, ast.Call) and called(node).endswith(_NAMED)

    # ---------------------------------------------------------------- edits

    def without_assignment(self, call: ast.Call, kept: ast.expr) -> list[Replacement] | None:
        """Return the edit that removes the statement ``x = call(x, ...)``, where ``kept`` is ``x``; None for others.

        The whole line goes where nothing but a comment shares it and its block has other statements.
        """
        statement = self.parents[call]
        if not isinstance(statement, ast.Assign) or not isinstance(kept, ast.Name) or len(statement.targets) != 1:
            return None
        target = statement.targets[0]
        if not isinstance(target, ast.Name) or target.id != kept.id:
            return None
        start, end = self.span(statement)
        first, last = self.line_start(statement), self.line_end(statement)
        block = getattr(self.parents[statement], "body", ())
        after = self.raw[end:last].strip()
        alone = self.raw[first:start].isspace() and (not after or after.startswith(b"#"))
        if alone and isinstance(block, list) and statement in block and len(block) > 1:
            return [Replacement(first, last, "")]
        return [Replacement(start, end, "pass")]

    def unwrapped(self, call: ast.Call, kept: ast.expr) -> list[Replacement]:
        """Return the edit that leaves ``kept``, an argument, of a call."""
        return self.without_assignment(call, kept) or self.without_call(call, kept)

    def without_call(self, call: ast.expr, kept: ast.expr) -> list[Replacement]:
        """Return two edits that remove the text of ``call`` around ``kept``, so that ``kept`` may have edits of its
        own.
        """
        (start, end), (first, last) = self.span(call), self.span(kept)
        simple = isinstance(kept, ast.Name | ast.Call | ast.Attribute | ast.Subscript | ast.Tuple | ast.List)
        alone = simple or isinstance(self.parents[call], ast.Assign | ast.Return | ast.Expr)
        alone = (alone and kept.lineno == call.lineno and kept.end_lineno == kept.lineno) or isinstance(kept, ast.Name)
        before, after = ("", "") if alone else ("(", ")")
        return [Replacement(start, first, before), Replacement(last, end, after)]

    def changed(self, replacements: Sequence[Replacement]) -> bytes:
        """Return the file's bytes with ``replacements``."""
        raw = self.raw
        for one in sorted(set(replacements), key=lambda one: -one.start):
            raw = raw[: one.start] + one.text.encode() + raw[one.end :]
        return raw

    def traced(self, replacements: Sequence[Replacement]) -> bytes:
        """Return the file's bytes with ``replacements``, each with as many line breaks as it replaces at least.

        Lines of a traced program are then those of the file, but for lines that are added (``line_before``).
        """
        return self.changed([self._on_as_many_lines(one) for one in replacements])

    def _on_as_many_lines(self, one: Replacement) -> Replacement:
        before = self.raw[one.start : one.end]
        missing = before.count(b"\n") - one.text.count("\n")
        whole_lines = before.endswith(b"\n") and (not one.start or self.raw[: one.start].endswith(b"\n"))
        return Replacement(one.start, one.end, one.text + missing * ("\n" if whole_lines else "\\\n"))

    def line_before(self, line: int, replacements: Sequence[Replacement]) -> int:
        """Return the file's line at which ``line`` of the ``traced`` text stands; of an added line, the line above."""
        moved = 0
        for one in sorted(set(replacements), key=lambda one: one.start):
            added = one.text.count("\n") - self.raw[one.start : one.end].count(b"\n")
            first = self.line_at(one.start)
            if added <= 0 or line < first + moved:
                continue
            if line < first + moved + added:
                return max(1, first - 1)
            moved += added
        return line - moved

    def diff(self, replacements: Sequence[Replacement], made: Sequence[Replacement] = ()) -> str:
        """Return the unified diff of ``replacements`` against the file with those ``made`` before."""
        before, after = (text.decode() for text in (self.changed(made), self.changed([*made, *replacements])))
        return unified(self.path, before, after)


def unified(path: str, before: str, after: str) -> str:
    """Return the unified diff of a file between two texts, which ``git apply`` takes at the repository's root."""
    name = _in_repository(path)
    old, new = (text.splitlines(keepends=True) for text in (before, after))
    rows = difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", n=_CONTEXT)
    return "".join(row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows)


def _in_repository(path: str) -> str:
    """Return ``path`` relative to the root of its git repository, or to the working directory outside of one."""
    if path.startswith("<"):
        return path
    file = Path(path).resolve()
    root = next((folder for folder in file.parents if (folder / ".git").exists()), Path.cwd().resolve())
    return (file.relative_to(root) if file.is_relative_to(root) else Path(*file.parts[1:])).as_posix()


Edits = Mapping[SourceFile, Sequence[Replacement]]


class Files:
    """The user's files by path, each parsed once."""

    def __init__(self, sources: Sources) -> None:
        self._sources, self._known = sources, dict[str, SourceFile | None]()

    def at(self, path: str) -> SourceFile | None:
        """Return the file at ``path``; None for one of a library, that may not be read, or that does not parse."""
        if path not in self._known:
            is_python = path.endswith(".py") or path.startswith("<")
            text = self._sources.text(path) if is_python and not is_library(path) else ""
            try:
                self._known[path] = SourceFile(path, text) if text else None
            except (SyntaxError, ValueError, RecursionError):
                self._known[path] = None
        return self._known[path]

    def beside(self, paths: Sequence[str]) -> Iterator[SourceFile]:
        """Yield the files at ``paths``, and those in their folders, and one level below, that may name specs."""
        folders = dict.fromkeys(Path(path).parent for path in paths if self.at(path) is not None)
        others = (str(file) for folder in folders for way in ("*.py", "*/*.py") for file in sorted(folder.glob(way)))
        by_file: dict[str, str] = {}
        for path in (*paths, *others):
            by_file.setdefault(os.path.abspath(path), path)
        for path in islice(by_file.values(), _MOST_BESIDE):
            if path in self._known or (not is_library(path) and _SPECS_IN.search(self._sources.text(path))):
                file = self.at(path)
                if file is not None:
                    yield file


def overlap(replacements: Sequence[Replacement]) -> bool:
    """Return whether two of the replacements share bytes."""
    ordered = sorted(set(replacements), key=lambda one: (one.start, one.end))
    return any(after.start < one.end for one, after in pairwise(ordered))


def requoted(text: str, mark: str) -> str:
    """Return an expression on one line with ``mark`` around its plain strings that have no mark or escape inside."""
    raw = text.encode()
    for one in sorted(ast.walk(ast.parse(text, mode="eval")), key=lambda node: -getattr(node, "col_offset", 0)):
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            assert one.end_col_offset is not None
            inner = raw[one.col_offset + 1 : one.end_col_offset - 1]
            if inner.decode() == one.value and mark not in one.value:
                raw = raw[: one.col_offset] + f"{mark}{one.value}{mark}".encode() + raw[one.end_col_offset :]
    return raw.decode()


def keyword_of(call: ast.Call, name: str) -> ast.expr | None:
    """Return the value of a call's keyword argument, or None."""
    return next((one.value for one in call.keywords if one.arg == name), None)


def sharding_of(constraint: ast.Call) -> ast.expr | None:
    """Return the sharding in a call of ``with_sharding_constraint``; None where the call names none."""
    return constraint.args[1] if len(constraint.args) > 1 else keyword_of(constraint, "shardings")


def called(call: ast.Call) -> str:
    """Return the dotted name of a call's function, as ``jax.lax.with_sharding_constraint``; "" if it has none."""
    try:
        text = ast.unparse(call.func)
    except (ValueError, RecursionError):
        return ""
    return text if all(part.isidentifier() for part in text.split(".")) else ""


def shown_path(path: str) -> str:
    """Return ``path`` relative to the working directory, where the file is below it."""
    relative = os.path.relpath(path) if os.path.isabs(path) else path
    return path if relative.startswith("..") else relative
