"""Traces a function again as though the user's files had edits, in this process and without running a file again.

Problem: the types of a program are decided while JAX traces it, so an edit is verified by tracing. The function and its
arguments are objects of this process, and running its file again would have the effects of the file.

1. The file is compiled as it is and with the edits. Both give the same tree of code objects, one for each function.
2. Functions of this process whose code is one of the first tree have the code of the second while JAX traces. A
   function that is made while JAX traces comes from the code of the one around it.
3. A region of ``auto_axes`` on a function of a module is an object that was made when the file was imported. No code
   that runs while JAX traces makes it again, so the object itself is changed.
4. JAX's caches of traces know functions by identity: a context that is part of their keys makes each trace a new one.

Where the edit leaves a free variable unused, a branch that is never run names it, as code with fewer of them does not
fit a function. Where the trees differ (the file changed since it was imported), nothing is traced.

State: the functions by file, and the compiled texts of files. Invariant: the functions and regions are as they were
after each trace. One trace at a time.

Complexity: one walk over Python's objects for each file, one compilation of a file for each text.
"""

from __future__ import annotations

import ast
import gc
import itertools
import linecache
import sys
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from types import CodeType, FunctionType
from typing import Any, NamedTuple
from weakref import WeakSet

import jax
from jax.sharding import PartitionSpec

from shardpass.advise.find.source import Edits, Replacement, SourceFile
from shardpass.advise.place.specs import Spec
from shardpass.ir import jax_private
from shardpass.jax.lowering import lowered_trace

_LOCK = threading.RLock()
_EDITED = jax.make_user_context(default_value=0)
_numbers = itertools.count(1)


class CannotTrace(Exception):
    """Raised if the edits cannot be tried on the functions of this process."""


class Edited(NamedTuple):
    """A file of the user: its text as it runs, and its text with edits."""

    path: str
    before: str
    after: str


class Region(NamedTuple):
    """The ``auto_axes`` region of a function of a file. ``spec``: of its results; None to remove the region."""

    path: str
    function: ast.FunctionDef | ast.Lambda
    spec: Spec | None


class Swap:
    """Replace the code of functions in this process by the code of an edited file."""

    def __init__(self) -> None:
        self._functions: dict[str, list[FunctionType]] = {}
        self._codes: dict[tuple[str, str], CodeType] = {}

    @contextmanager
    def edited(
        self, files: Sequence[Edited], regions: Sequence[Region] = (), *, all_reached: bool = False
    ) -> Iterator[None]:
        """Run the code of the edited texts in functions of ``files``, and ``regions``, inside of the block; JAX traces
        anew.

        ``all_reached``: refuse edits of code that no function of this process runs. Raises CannotTrace.
        """
        with _LOCK, ExitStack() as inside:
            inside.enter_context(_EDITED(next(_numbers)))
            for region in regions:  # first, as regions are known by lines, which edits change
                for wrapper in self._wrappers(region):
                    if region.spec is None:
                        _set(inside, wrapper, "__code__", _PLAIN)
                    else:
                        cells = dict(zip(wrapper.__code__.co_freevars, wrapper.__closure__ or (), strict=True))
                        _set(inside, cells["out_sharding"], "cell_contents", PartitionSpec(*region.spec))
            for file in files:
                for function, code in self._counterparts(file, all_reached):
                    _set(inside, function, "__code__", code)
                    if "jax" in code.co_names and "jax" not in function.__globals__:
                        function.__globals__["jax"] = jax  # which the edit imports
                        inside.callback(function.__globals__.pop, "jax", None)
            yield

    def _counterparts(self, file: Edited, all_reached: bool) -> list[tuple[FunctionType, CodeType]]:
        """List each function of ``file`` whose code differs in the edited text, with its new code."""
        key = file.path, file.before
        if key not in self._codes:
            self._codes[key] = _compiled(file.path, file.before)
        now = self._codes[key]
        changed = _compiled(file.path, file.after, now)
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

    @cached_property
    def _regions(self) -> dict[tuple[str, str, int], list[FunctionType]]:
        """The results of ``auto_axes`` in this process, by file, name and line of their function."""
        code, result = jax_private.automatic_wrapper(), dict[tuple[str, str, int], list[FunctionType]]()
        for one in functions():
            known = getattr(getattr(one, "__wrapped__", None), "__code__", None) if one.__code__ == code else None
            if known is not None:
                result.setdefault((known.co_filename, known.co_name, known.co_firstlineno), []).append(one)
        return result

    def _wrappers(self, region: Region) -> list[FunctionType]:
        """List what ``auto_axes`` made of the region's function. Raises CannotTrace if the process has none."""
        function = region.function
        name = "<lambda>" if isinstance(function, ast.Lambda) else function.name
        line = min([function.lineno, *(one.lineno for one in getattr(function, "decorator_list", ()))])
        try:
            return self._regions[region.path, name, line]
        except KeyError:
            raise CannotTrace(f"no region of {name} is known") from None


class Retracer:
    """Traces ``jitted`` again with the arguments of its call, under the meshes in use when this object is made.

    ``platform``: for which it is lowered, by default that of its devices.
    """

    def __init__(
        self, jitted: Any, arguments: tuple[Any, ...], keywords: Mapping[str, Any], platform: str | None = None
    ) -> None:
        self.platform = platform
        self.jitted, self.arguments, self.keywords = jitted, arguments, keywords
        self.mesh = jax.sharding.get_mesh()
        self.abstract = jax.sharding.get_abstract_mesh()
        self._swap = Swap()

    def traced(self) -> Any:
        """Return the function as it stands, as ``jax.jit(...).trace`` returns it; JAX's own result, if it has traced
        it.
        """
        with self._meshes():
            made = self.jitted.trace(*self.arguments, **self.keywords)
            return getattr(made, "traced", made)  # of flax.nnx, which has JAX's own inside

    def trace(self, edits: Edits, regions: Sequence[Region] = ()) -> Any:
        """Trace the function with ``edits`` of the text and of ``regions``. Raises CannotTrace, and what
        tracing raises.
        """
        files = [Edited(file.path, file.raw.decode(), file.traced(some).decode()) for file, some in edits.items()]
        with self._swap.edited(files, regions, all_reached=True):
            return self.traced()

    def again(self, edits: Edits) -> bytes | None:
        """Return the lowered program with ``edits``, as text; None if JAX or the function refuses them, and ``b""`` if
        they cannot be tried on the functions of this process.
        """
        try:
            if any(_is_of_module(file, replacements) for file, replacements in edits.items()):
                return b""  # that code ran already
            return self.lower(self.trace(edits)).encode()
        except CannotTrace:
            return b""
        except Exception:  # the user's function, or JAX, refuses the edits
            return None

    def lower(self, traced: Any) -> str:
        """Lower ``traced`` to a module's text; over an abstract mesh, which has no devices, for the CPU."""
        with self._meshes():
            text: str = lowered_trace(traced, self.platform).as_text(debug_info=True)
            return text

    def _meshes(self) -> Any:
        if not self.mesh.empty:
            return nullcontext() if jax.sharding.get_mesh() == self.mesh else jax.set_mesh(self.mesh)
        return nullcontext() if self.abstract.empty else jax.sharding.use_abstract_mesh(self.abstract)


def _set(inside: ExitStack, owner: Any, name: str, value: Any) -> None:
    """Set an attribute until ``inside`` ends. Raises CannotTrace for code that does not fit its function."""
    inside.callback(setattr, owner, name, getattr(owner, name))
    try:
        setattr(owner, name, value)
    except ValueError as error:
        raise CannotTrace(str(error)) from None


# ---------------------------------------------------------------- the functions of this process


@dataclass
class _Frozen:
    """The functions that ``gc.freeze`` put out of sight; ``count``: the frozen objects when they were looked for."""

    count: int = 0
    functions: WeakSet[FunctionType] = field(default_factory=WeakSet)


_FROZEN = _Frozen()


def functions() -> list[FunctionType]:
    """List the functions of this process, also those that ``gc.freeze`` puts beyond the reach of ``gc.get_objects``.

    Servers and test runners freeze what they have imported. A walk from the modules and from all other objects reaches
    what is frozen, again only after more objects are. Complexity: O(objects of the process).
    """
    visible, count = gc.get_objects(), gc.get_freeze_count()
    if count > _FROZEN.count or not count:
        _FROZEN.functions = WeakSet(_walked(visible) if count else ())
    _FROZEN.count = count
    made = {id(one): one for one in (*visible, *_FROZEN.functions) if type(one) is FunctionType}
    return list(made.values())


def _walked(visible: list[Any]) -> list[FunctionType]:
    """Walk from the modules and from ``visible``; return the functions on the way."""
    seen, result = set(map(id, visible)), []
    level, kept = [*visible, *sys.modules.values()], []  # kept: so that no identity in ``seen`` becomes another's
    while level:
        kept.append(level)
        met = {id(one): one for one in gc.get_referents(*level) if gc.is_tracked(one)}
        level = [one for key, one in met.items() if key not in seen]
        seen.update(map(id, level))
        result += [one for one in level if type(one) is FunctionType]
    return result


def _without_region(axes_: Any, fun: Any, out_sharding: Any) -> Any:
    """Call the function and do nothing else; has the free variables of JAX's own wrapper, so that code can
    be swapped.
    """

    def plain(*args: Any, **kwargs: Any) -> Any:
        if not __debug__:
            return axes_, out_sharding
        kwargs.pop("out_sharding", None)
        return fun(*args, **kwargs)

    return plain


_PLAIN = _without_region(None, None, None).__code__


# ---------------------------------------------------------------- code of edited files


def running_text(path: str) -> str:
    """Return the text of a file as it runs, "" if it is not available."""
    return "".join(linecache.getlines(path))


def _compiled(path: str, text: str, like: CodeType | None = None) -> CodeType:
    """Compile the ``text`` of the file at ``path``. Raises CannotTrace if it does not parse.

    ``like``: the code compiled from an earlier version of the file. Functions of the new code keep the free variables
    of the functions that they replace.
    """
    try:
        tree = ast.parse(text, path)
        code = compile(tree, path, "exec", dont_inherit=True)
        pairs = [] if like is None else list(_pairs(like, code))
        if any(old.co_freevars != new.co_freevars for old, new in pairs):
            _Names(pairs).visit(tree)
            code = compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise CannotTrace(str(error)) from None
    return code


def _pairs(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Yield the functions of two versions of a file, in the order of the text. Raises CannotTrace if they differ."""
    yield old, new
    before, after = _made_in(old), _made_in(new)
    if [one.co_name for one in before] != [one.co_name for one in after]:
        raise CannotTrace("the edit adds or removes functions")
    for pair in zip(before, after, strict=True):
        yield from _pairs(*pair)


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


def _is_of_module(file: SourceFile, replacements: Sequence[Replacement]) -> bool:
    """Return whether the edits change code outside of functions, such as the arguments of a call of ``jax.jit``."""
    codes = (_compiled(file.path, raw.decode()) for raw in (file.raw, file.changed(replacements)))
    old, new = ((one.co_code, [c for c in one.co_consts if not isinstance(c, CodeType)], one.co_names) for one in codes)
    return old != new


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
        uses: list[ast.stmt] = [ast.Expr(one) for one in self._uses(node.name, line)]
        if uses:
            documented = isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant)
            node.body.insert(1 if documented else 0, ast.If(ast.Name("__debug__", ast.Load()), [ast.Pass()], uses))
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self.generic_visit(node)
        uses = self._uses("<lambda>", node.lineno)
        if uses:
            node.body = ast.IfExp(ast.Name("__debug__", ast.Load()), node.body, ast.Tuple(uses, ast.Load()))
        return node

    def _uses(self, name: str, line: int) -> list[ast.expr]:
        return [ast.Name(one, ast.Load()) for one in self.lost.get((name, line), ())]
