"""A function traced again as though the user's files had edits, in this process and without running a file again.

Problem: the types of a program are decided while JAX traces it, so an edit is verified by tracing. The function and its
arguments are objects of this process, and running its file again would have the effects of the file.

1. The file is compiled as it is and with the edits. Both give the same tree of code objects, one for each function.
2. Functions of this process whose code is one of the first tree have the code of the second while JAX traces. A
   function that is made while JAX traces comes from the code of the one around it.
3. A region that exists already (``auto_axes`` of a module) is an object, which is changed (``regions``).
4. JAX's caches of traces know functions by identity: a context that is part of their keys makes each trace a new one.

Where the edit leaves a free variable unused, a branch that is never run names it, as code with fewer of them does not
fit a function. Where the trees differ (the file changed since it was imported), nothing is traced.

State: none is left; the functions have their own code again behind each trace. One trace at a time.
"""

from __future__ import annotations

import ast
import itertools
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from types import CodeType, FunctionType
from typing import Any

import jax

from shardpass.advise.source import Edits, Replacement, SourceFile
from shardpass.explicit.functions import functions
from shardpass.explicit.regions import Region

_LOCK = threading.RLock()
_EDITED = jax.make_user_context(default_value=0)
_numbers = itertools.count(1)


class CannotTrace(Exception):
    """Raised if the edits cannot be tried on the functions of this process."""


class Retracer:
    """Traces ``jitted`` again with the arguments of its call, under the meshes in use when this object is made."""

    def __init__(self, jitted: Any, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
        self.jitted, self.arguments, self.keywords = jitted, arguments, keywords
        self.mesh = jax.sharding.get_mesh()
        self.abstract = jax.sharding.get_abstract_mesh()

    def traced(self) -> Any:
        """The function as it stands, as ``jax.jit(...).trace`` returns it; JAX's own result, if it has traced it."""
        with self._meshes():
            made = self.jitted.trace(*self.arguments, **self.keywords)
            return getattr(made, "traced", made)  # of flax.nnx, which has JAX's own inside

    def trace(self, edits: Edits, regions: Sequence[Region] = ()) -> Any:
        """Traces the function with ``edits`` of the text and of ``regions``. Raises CannotTrace, and what
        tracing raises.
        """
        with _LOCK, ExitStack() as inside:
            inside.enter_context(self._meshes())
            for region in regions:  # first, as regions are known by lines, which edits change
                if not inside.enter_context(region.used()):
                    raise CannotTrace(f"no region of {region.name} is known")
            for file, replacements in edits.items():
                inside.enter_context(_swapped(file, replacements))
            inside.enter_context(_EDITED(next(_numbers)))
            return self.traced()

    def again(self, edits: Edits) -> bytes | None:
        """Returns the lowered program with ``edits``, as text; None if JAX or the function refuses them, and ``b""`` if
        they cannot be tried on the functions of this process.
        """
        try:
            if any(_is_of_module(file, replacements) for file, replacements in edits.items()):
                return b""  # that code ran already
            text: str = self.lower(self.trace(edits)).as_text(debug_info=True)
        except CannotTrace:
            return b""
        except Exception:  # the user's function, or JAX, refuses the edits
            return None
        return text.encode()

    def lower(self, traced: Any) -> Any:
        """Lowers ``traced``; over an abstract mesh, which has no devices, for the CPU."""
        with self._meshes():
            try:
                return traced.lower()
            except ValueError as error:
                if "lowering_platforms" not in str(error):
                    raise
                return traced.lower(lowering_platforms=("cpu",))

    def _meshes(self) -> Any:
        if not self.mesh.empty:
            return nullcontext() if jax.sharding.get_mesh() == self.mesh else jax.set_mesh(self.mesh)
        return nullcontext() if self.abstract.empty else jax.sharding.use_abstract_mesh(self.abstract)


@contextmanager
def _swapped(file: SourceFile, replacements: Sequence[Replacement]) -> Iterator[None]:
    """Inside of the block, functions of ``file`` run the code that it has with ``replacements``."""
    now = _compiled(file, file.raw)
    changed = _compiled(file, file.traced(replacements), now)
    codes: dict[CodeType, CodeType] = {}
    for old, new in _pairs(now, changed):
        if old != new and codes.setdefault(old, new) != new:
            raise CannotTrace(f"two functions of {file.path} are alike")
    undo: list[Callable[[], None]] = []
    here = [one for one in functions() if one.__code__.co_filename == file.path]
    if not _reached(now, changed, {one.__code__ for one in here}):
        raise CannotTrace(f"{file.path} changed since it was imported, or an edit is of code that ran already")
    try:
        for function in here:
            made = codes.get(function.__code__)
            if made is not None:
                undo.append(_restoring(function))
                function.__code__ = made
        yield
    except ValueError as error:
        if "free vars" in str(error):
            raise CannotTrace(str(error)) from None
        raise
    finally:
        for one in reversed(undo):
            one()


def _is_of_module(file: SourceFile, replacements: Sequence[Replacement]) -> bool:
    """Whether the edits change code outside of functions, such as the arguments of a call of ``jax.jit``."""
    codes = (_compiled(file, raw) for raw in (file.raw, file.changed(replacements)))
    old, new = ((one.co_code, [c for c in one.co_consts if not isinstance(c, CodeType)], one.co_names) for one in codes)
    return old != new


def _restoring(function: FunctionType) -> Callable[[], None]:
    code = function.__code__

    def restore() -> None:
        function.__code__ = code

    return restore


def _compiled(file: SourceFile, raw: bytes, like: CodeType | None = None) -> CodeType:
    """Compiles a file. ``like``: code of an earlier text, whose functions' free variables the new functions keep."""
    try:
        tree = ast.parse(raw, file.path)
        code = compile(tree, file.path, "exec", dont_inherit=True)
        if like is not None and any(old.co_freevars != new.co_freevars for old, new in _pairs(like, code)):
            _Names([(old, new) for old, new in _pairs(like, code)]).visit(tree)
            code = compile(ast.fix_missing_locations(tree), file.path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise CannotTrace(str(error)) from None
    return code


def _pairs(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Yields the functions of two versions of a file, in the order of the text. Raises CannotTrace if they differ."""
    yield old, new
    inside = [_made_in(old), _made_in(new)]
    if [one.co_name for one in inside[0]] != [one.co_name for one in inside[1]]:
        raise CannotTrace("the edit adds or removes functions")
    for before, after in zip(*inside, strict=True):
        yield from _pairs(before, after)


def _reached(old: CodeType, new: CodeType, known: Collection[CodeType], inside: bool = False) -> bool:
    """Whether each function that differs is one of ``known`` or is made by one of them. Module-level code does
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
