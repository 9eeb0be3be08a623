"""Whether anything in a script can make a function of a name, read from its source before it runs.

A training script may run for minutes before its step is compiled, so a name with a slip in it is refused at once. It is
refused only where no text could make it: the script and the modules of the user that it imports, which are parsed,
define, assign, import and quote no such name, and run no code that they make; no library that uses JAX and is imported
defines a function of that name; and JAX itself jits none.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from importlib.machinery import PathFinder
from pathlib import Path

from shardpass.ir.frames import is_library

_MAKERS = frozenset(("exec", "eval", "__import__"))  # of names that the source does not have
_METHODS_THAT_MAKE = frozenset(("import_module", "run_path", "run_module", "FunctionType"))
_JITTED = rb"^[ \t]*@[^\n]*\bjit\b(?:[^\n]*\n){1,6}?[ \t]*"  # the decorator of a function that follows
_IMPORT = re.compile(rb"^[ \t]*(?:import|from)[ \t]+([A-Za-z_]\w*)", re.MULTILINE)


def file_of_module(name: str, folders: Sequence[str]) -> str | None:
    """Return the file that ``python -m name`` runs, None if there is none. Nothing is imported."""
    file = _find(name, folders)
    is_package = file is not None and (os.path.isdir(file) or os.path.basename(file) == "__init__.py")
    return _find(f"{name}.__main__", folders) if is_package else file


def check_name(file: str, function: str) -> None:
    """Raise ShardpassError (SP145) where nothing in the script ``file`` can make a function ``function``."""
    name = function.rpartition(".")[2]
    if name.strip("_") == "lambda" or "unnamed" in name:  # names that JAX gives
        return
    folders = [os.path.dirname(os.path.abspath(file)), os.getcwd(), *sys.path]
    defined = _defined_instead(file, name, folders)
    if defined is None:
        return
    from difflib import get_close_matches

    from shardpass.diagnostics import Place
    from shardpass.diagnostics.table_driver import NOT_DEFINED

    near = get_close_matches(name, defined, 1)
    shown = ", ".join(defined[:10]) or "none"
    hint = f"did you mean {near[0]}? " if near else ""
    raise NOT_DEFINED.error(Place(file), function=function, hint=hint, defined=shown)


def functions_of(file: str) -> tuple[list[str], list[str]]:
    """Return the names of the functions that ``file`` jits, and of all that it defines; none if it does not parse."""
    source = _Source.read(file)
    return ([], []) if source is None else (source.jitted, source.functions)


def _defined_instead(file: str, name: str, folders: Sequence[str]) -> list[str] | None:
    """Return the functions of the user's files; None where one of them, or a library, can make ``name``."""
    functions: list[str] = []
    libraries: set[str] = set()
    seen, waiting = {os.path.realpath(file)}, [file]
    while waiting:
        source = _Source.read(waiting.pop())
        if source is None or source.can_make(name):
            return None
        functions += source.functions
        for module, surely in source.imports:
            package = module.partition(".")[0]
            target = None if package in sys.stdlib_module_names else _find(module, folders)
            if target is None:
                if surely and package not in sys.stdlib_module_names and package not in libraries:
                    return None  # the script may know where it is
            elif is_library(target):
                libraries.add(package)
            elif not os.path.isdir(target) and os.path.realpath(target) not in seen:
                seen.add(os.path.realpath(target))
                waiting.append(target)
    return None if _in_libraries(libraries, name, folders) else list(dict.fromkeys(functions))


class _Source:
    """A parsed file."""

    def __init__(self, file: str, tree: ast.Module) -> None:
        self.file, self._nodes = file, list(ast.walk(tree))

    @classmethod
    def read(cls, file: str) -> _Source | None:
        """Read ``file``; None where it cannot be read or does not parse, as the script itself will say."""
        try:
            return cls(file, ast.parse(Path(file).read_bytes()))
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return None

    @property
    def functions(self) -> list[str]:
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        return [node.name for node in self._nodes if isinstance(node, kinds) and not node.name.startswith("__")]

    @property
    def jitted(self) -> list[str]:
        """The functions in ``@jax.jit``, ``@partial(nnx.jit, ...)``, ``jax.jit(f, ...)`` and the like, by line."""
        named = []
        for node in self._nodes:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(map(_jits, node.decorator_list)):
                named.append((node.lineno, node.name))
            elif isinstance(node, ast.Call) and _is_jit(node.func):
                named += [(node.lineno, wrapped.id) for wrapped in node.args[:1] if isinstance(wrapped, ast.Name)]
        return list(dict.fromkeys(name for _, name in sorted(named)))

    def can_make(self, name: str) -> bool:
        return name in self._names or not self._names.isdisjoint(("*made*", "__name__"))

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(name for node in self._nodes for name in _names_of(node))

    @property
    def imports(self) -> Iterator[tuple[str, bool]]:
        """Yield modules by full name, and whether each must exist; ``from a import b`` may name a module ``a.b``."""
        for node in self._nodes:
            if isinstance(node, ast.Import):
                yield from ((alias.name, True) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = node.module or ""
                if node.level:
                    base = ".".join(filter(None, (self._package(node.level), base)))
                if base:
                    yield base, True
                yield from ((f"{base}.{alias.name}".lstrip("."), False) for alias in node.names)

    def _package(self, level: int) -> str:
        """Return the package of a relative import: the folders above that are packages, less ``level - 1``."""
        folder = os.path.dirname(os.path.abspath(self.file))
        names: list[str] = []
        while os.path.exists(os.path.join(folder, "__init__.py")):
            names.insert(0, os.path.basename(folder))
            folder = os.path.dirname(folder)
        if not names:  # a namespace package beside the script
            return ""
        return ".".join(names[: len(names) - level + 1])


def _is_jit(node: ast.AST) -> bool:
    """Return whether ``node`` names a function ``jit``, ``pjit`` or ``filter_jit`` of any library."""
    return isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node).rpartition(".")[2].endswith("jit")


def _jits(decorator: ast.AST) -> bool:
    """Return whether ``decorator`` jits: ``jax.jit``, ``jax.jit(...)`` or ``partial(jax.jit, ...)``."""
    words = (decorator.func, *decorator.args) if isinstance(decorator, ast.Call) else (decorator,)
    return any(map(_is_jit, words))


def _names_of(node: ast.AST) -> Iterator[str]:
    """Yield the names that ``node`` makes; "*made*" of code that can make any name."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, (ast.Name, ast.Attribute)):
        used = node.id if isinstance(node, ast.Name) else node.attr
        if isinstance(node.ctx, ast.Store):
            yield used
        elif used in _METHODS_THAT_MAKE or (used in _MAKERS and isinstance(node, ast.Name)):
            yield "*made*"
    elif isinstance(node, ast.alias):
        yield node.name.rpartition(".")[2]
        yield node.asname or node.name
        if node.name in _METHODS_THAT_MAKE:
            yield "*made*"
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
        yield node.name


def _in_libraries(names: set[str], name: str, folders: Sequence[str]) -> bool:
    """Return whether one of the packages, or a package that they import, uses JAX and defines a function of that
    name.
    """
    definition = rb"(?:def|class)[ \t]+" + re.escape(name.encode()) + rb"\b"
    seen: set[str] = set()
    waiting = sorted(names)
    while waiting:
        package = waiting.pop()
        if package in seen or package in sys.stdlib_module_names or package == "shardpass":
            continue
        seen.add(package)
        texts = _texts(package, folders)
        imported = {match.decode() for text in texts for match in _IMPORT.findall(text)}
        if package == "jax" or "jax" in imported:
            wanted = re.compile(_JITTED + definition if package == "jax" else rb"\b" + definition, re.MULTILINE)
            if any(wanted.search(text) for text in texts):
                return True
            waiting += [] if package == "jax" else sorted(imported - seen)
    return False


def _texts(package: str, folders: Sequence[str]) -> list[bytes]:
    """Return the texts of all files of a package."""
    spec = PathFinder.find_spec(package, [*folders])
    if spec is None:
        return []
    folder = next(iter(spec.submodule_search_locations or ()), None)
    return _read_all(folder or spec.origin or "")


@lru_cache
def _read_all(path: str) -> list[bytes]:
    files = Path(path).rglob("*.py") if os.path.isdir(path) else [Path(path)]
    return [file.read_bytes() for file in files if file.suffix == ".py" and os.access(file, os.R_OK)]


def _find(module: str, folders: Sequence[str]) -> str | None:
    """Return the file of ``module``, or the folder of a package without one; None where there is none. Nothing is
    imported.
    """
    path: list[str] | None = [*folders]
    parts, file = module.split("."), None
    for count, name in enumerate(parts, start=1):
        try:
            spec = PathFinder.find_spec(name, path)  # by its last name: a package without a file asks for its parent
        except (ImportError, ValueError, OSError):
            return None
        if spec is None or (count < len(parts) and spec.submodule_search_locations is None):
            return None
        path = None if spec.submodule_search_locations is None else list(spec.submodule_search_locations)
        file = spec.origin or next(iter(path or ()), None)
    return file
