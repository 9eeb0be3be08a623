"""Runs functions of this process with the code of an edited file, for the time of a trace.

Problem: the types of a program are decided while JAX traces it, so an edit is verified by tracing. The function and its
arguments are objects of this process, and running its file again would have the effects of the file.

1. The file is compiled as it is and with the edits. Both give the same tree of code objects, one for each function.
2. Functions of this process whose code is one of the first tree have the code of the second while JAX traces. A
   function that is made while JAX traces comes from the code of the one around it.
3. JAX's caches of traces know functions by identity: a context that is part of their keys makes each trace a new one.

Where the edit leaves a free variable unused, a branch that is never run names it, as code with fewer of them does not
fit a function. Where the trees differ (the file changed since it was imported), nothing is traced.

State: the functions by file, and the compiled texts of files. The functions have their own code again after each trace.
One trace at a time.

Complexity: one walk over Python's objects for each ``Swap``, one compilation of a file for each text.
"""

from __future__ import annotations

import ast
import itertools
import linecache
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import CodeType, FunctionType
from typing import NamedTuple

import jax

from shardpass.advise.repair.functions import functions

LOCK = threading.RLock()
_EDITED = jax.make_user_context(default_value=0)
_numbers = itertools.count(1)


class CannotTrace(Exception):
    """Raised if the edits cannot be tried on the functions of this process."""


class Edited(NamedTuple):
    """A file of the user: its text as it runs, and its text with edits."""

    path: str
    before: str
    after: str


class Swap:
    """Replaces the code of this process's functions, by the file that they come from."""

    def __init__(self) -> None:
        self._functions: dict[str, list[FunctionType]] = {}
        self._codes: dict[tuple[str, str], CodeType] = {}

    @contextmanager
    def edited(self, files: Sequence[Edited], *, all_reached: bool = False) -> Iterator[None]:
        """Run the code of the edited texts in functions of ``files``, inside of the block; JAX traces anew.

        ``all_reached``: refuse edits of code that no function of this process runs. Raises CannotTrace.
        """
        with LOCK, ExitStack() as inside:
            inside.enter_context(_EDITED(next(_numbers)))
            for file in files:
                for function, code in self._counterparts(file, all_reached):
                    inside.callback(setattr, function, "__code__", function.__code__)
                    try:
                        function.__code__ = code
                    except ValueError as error:
                        raise CannotTrace(str(error)) from None
                    if "jax" in code.co_names and "jax" not in function.__globals__:
                        function.__globals__["jax"] = jax  # which the edit imports
                        inside.callback(function.__globals__.pop, "jax", None)
            yield

    def _counterparts(self, file: Edited, all_reached: bool) -> list[tuple[FunctionType, CodeType]]:
        """List each function of ``file`` whose code differs in the edited text, with its new code."""
        key = file.path, file.before
        if key not in self._codes:
            self._codes[key] = compiled(file.path, file.before)
        now = self._codes[key]
        changed = compiled(file.path, file.after, now)
        codes: dict[CodeType, CodeType] = {}
        for old, new in _pairs(now, changed):
            if old != new and codes.setdefault(old, new) != new:
                raise CannotTrace(f"two functions of {file.path} are alike")
        if file.path not in self._functions:
            self._functions[file.path] = [one for one in functions() if one.__code__.co_filename == file.path]
        here = self._functions[file.path]
        if all_reached and not _reached(now, changed, {one.__code__ for one in here}):
            raise CannotTrace(f"{file.path} changed since it was imported, or an edit is of code that ran already")
        return [(one, codes[one.__code__]) for one in here if one.__code__ in codes]


def running_text(path: str) -> str:
    """Return the text of a file as it runs, "" if it is not available."""
    return "".join(linecache.getlines(path))


def compiled(path: str, text: str, like: CodeType | None = None) -> CodeType:
    """Compile a file. ``like``: code of an earlier text, whose functions' free variables the new functions keep."""
    try:
        tree = ast.parse(text, path)
        code = compile(tree, path, "exec", dont_inherit=True)
        if like is not None and any(old.co_freevars != new.co_freevars for old, new in _pairs(like, code)):
            _Names([(old, new) for old, new in _pairs(like, code)]).visit(tree)
            code = compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise CannotTrace(str(error)) from None
    return code


def _pairs(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Yield the functions of two versions of a file, in the order of the text. Raises CannotTrace if they differ."""
    yield old, new
    inside = [_made_in(old), _made_in(new)]
    if [one.co_name for one in inside[0]] != [one.co_name for one in inside[1]]:
        raise CannotTrace("the edit adds or removes functions")
    for before, after in zip(*inside, strict=True):
        yield from _pairs(before, after)


def _reached(old: CodeType, new: CodeType, known: Collection[CodeType], inside: bool = False) -> bool:
    """Return whether each function that differs is one of ``known`` or is made by one of them. Module-level code does
    not count.
    """
    if old == new:
        return True
    inside = inside or old in known
    within = [pair for pair in zip(_made_in(old), _made_in(new), strict=True) if pair[0] != pair[1]]
    if not within:
        return inside or old.co_name == "<module>"
    return all(_reached(before, after, known, inside) for before, after in within)


def _made_in(code: CodeType) -> list[CodeType]:
    return [one for one in code.co_consts if isinstance(one, CodeType)]


class _Names(ast.NodeTransformer):
    """Adds to each function a reference to the free variables that its code had before the edit."""

    def __init__(self, pairs: Sequence[tuple[CodeType, CodeType]]) -> None:
        self.lost = {
            (new.co_name, new.co_firstlineno): sorted(set(old.co_freevars) - set(new.co_freevars)) for old, new in pairs
        }

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        line = min([node.lineno, *(one.lineno for one in node.decorator_list)])
        names = self.lost.get((node.name, line), ())
        uses: list[ast.stmt] = [ast.Expr(ast.Name(name, ast.Load())) for name in names]
        if uses:
            documented = isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant)
            node.body.insert(1 if documented else 0, ast.If(ast.Name("__debug__", ast.Load()), [ast.Pass()], uses))
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self.generic_visit(node)
        names = self.lost.get(("<lambda>", node.lineno), ())
        if names:
            uses = ast.Tuple([ast.Name(name, ast.Load()) for name in names], ast.Load())
            node.body = ast.IfExp(ast.Name("__debug__", ast.Load()), node.body, uses)
        return node
