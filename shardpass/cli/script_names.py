"""Determine from the source of a script, before running it, whether it can define a function of a given name.

A training script may run for minutes before its step is compiled, so a misspelled name is rejected at once. It is
rejected only if no code could define it: the name does not occur in the script or in the user's modules that it
imports, none of these executes generated code, no imported library that uses JAX defines a function of that name,
and JAX itself jits none.
"""

from __future__ import annotations

import ast
import os
import re
import sys
import tokenize
from collections.abc import Sequence
from functools import lru_cache
from importlib.machinery import PathFinder
from io import BytesIO
from pathlib import Path

from shardpass.ir.frames import is_library

_MAKES_NAMES = re.compile(  # that the source does not have
    rb"(?<![.\w])(?:exec|eval|__import__)\b|\b(?:import_module|run_path|run_module|FunctionType)\b|__name__[ \t]*=[^=]"
)
_JITTED = rb"^[ \t]*@[^\n]*\bjit\b(?:[^\n]*\n){1,6}?[ \t]*"  # the decorator of a function that follows
_IMPORT = re.compile(rb"^[ \t]*(?:import|from)[ \t]+([A-Za-z_]\w*)", re.MULTILINE)


def file_of_module(name: str, folders: Sequence[str]) -> str | None:
    """Return the file that ``python -m name`` runs, or None, without importing."""
    file = _find(name, folders)
    is_package = file is not None and (os.path.isdir(file) or os.path.basename(file) == "__init__.py")
    return _find(f"{name}.__main__", folders) if is_package else file


def check_name(file: str, function: str) -> None:
    """Raise ShardpassError (SP145) if nothing in the script ``file`` can create a function ``function``."""
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
    """Return the names of the functions jitted in ``file``, and of all functions defined there; empty if ``file`` does
    not parse.
    """
    source = _Source.read(file)
    return ([], []) if source is None else (source.jitted, source.functions)


def _defined_instead(file: str, name: str, folders: Sequence[str]) -> list[str] | None:
    """Return the functions of the user's files; None if a file or a library can create ``name`` dynamically."""
    word = rb"\b" + re.escape(name.encode()) + rb"\b"
    definition = rb"\b(?:def|class)[ \t]+" + word
    functions: list[str] = []
    seen = {"shardpass", *sys.stdlib_module_names}
    waiting = [("", file)]
    while waiting:
        package, path = waiting.pop()
        own = not is_library(path)
        if own:
            sources = [_Source.read(each) for each in _files(path)]
            parsed = [source for source in sources if source is not None]
            text = b"\n".join(_texts(os.path.abspath(path)))
            if len(parsed) < len(sources) or _mentions(word, text) or _MAKES_NAMES.search(text):
                return None
            functions += [function for source in parsed for function in source.functions]
            imported = {name for source in parsed for name in source.packages}
            if not os.path.isdir(path) and any(source.is_relative for source in parsed):
                waiting.append(("", _top(path)))
        else:
            texts = _texts(os.path.abspath(path))
            imported = {match.decode() for text in texts for match in _IMPORT.findall(text)}
            wanted = re.compile(_JITTED + definition if package == "jax" else definition, re.MULTILINE)
            if package != "jax" and "jax" not in imported:
                continue
            if any(map(wanted.search, texts)):
                return None
            imported = set() if package == "jax" else imported
        for package in sorted(imported - seen):
            seen.add(package)
            spec = PathFinder.find_spec(package, [*folders])
            if spec is not None:
                waiting.append((package, next(iter(spec.submodule_search_locations or ()), None) or spec.origin or ""))
            elif own:
                return None  # the script may know where it is
    return list(dict.fromkeys(functions))


def _mentions(word: bytes, text: bytes) -> bool:
    """Return whether ``word``, a regular expression, occurs in ``text`` outside of comments."""
    if not re.search(word, text):
        return False
    try:
        tokens = [token for token in tokenize.tokenize(BytesIO(text).readline) if token.type != tokenize.COMMENT]
    except (tokenize.TokenError, SyntaxError):
        return True
    return any(re.search(word, token.string.encode()) for token in tokens)


def _top(file: str) -> str:
    """Return the outermost package around ``file``, or its folder."""
    folder = os.path.dirname(os.path.abspath(file))
    while os.path.exists(os.path.join(os.path.dirname(folder), "__init__.py")):
        folder = os.path.dirname(folder)
    return folder


class _Source:
    """A parsed file."""

    def __init__(self, tree: ast.Module) -> None:
        self._nodes = list(ast.walk(tree))

    @classmethod
    def read(cls, file: str) -> _Source | None:
        """Read ``file``; None if ``file`` cannot be read or parsed, an error that the script itself reports."""
        try:
            return cls(ast.parse(Path(file).read_bytes()))
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

    @property
    def packages(self) -> set[str]:
        """The packages that are imported by their full names."""
        names = [alias.name for node in self._nodes if isinstance(node, ast.Import) for alias in node.names]
        names += [node.module or "" for node in self._nodes if isinstance(node, ast.ImportFrom) and not node.level]
        return {name.partition(".")[0] for name in names}

    @property
    def is_relative(self) -> bool:
        return any(isinstance(node, ast.ImportFrom) and node.level for node in self._nodes)


def _is_jit(node: ast.AST) -> bool:
    """Return whether ``node`` names a function ``jit``, ``pjit`` or ``filter_jit`` of any library."""
    return isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node).rpartition(".")[2].endswith("jit")


def _jits(decorator: ast.AST) -> bool:
    """Return whether ``decorator`` jits: ``jax.jit``, ``jax.jit(...)`` or ``partial(jax.jit, ...)``."""
    words = (decorator.func, *decorator.args) if isinstance(decorator, ast.Call) else (decorator,)
    return any(map(_is_jit, words))


def _files(path: str) -> list[str]:
    """Return the path of a module, or the paths of all modules in a package."""
    return [str(file) for file in sorted(Path(path).rglob("*.py"))] if os.path.isdir(path) else [path]


@lru_cache
def _texts(path: str) -> list[bytes]:
    return [Path(file).read_bytes() for file in _files(path) if file.endswith(".py") and os.access(file, os.R_OK)]


def _find(module: str, folders: Sequence[str]) -> str | None:
    """Return the file of ``module``, or the folder of a namespace package, or None, without importing."""
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
