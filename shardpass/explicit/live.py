"""A running program with another text of the user's files, for the time of a trace.

Problem. An edit shall be traced before it is shown, and the functions, closures and objects of the user's program are
there already: neither is the script run again, nor a module loaded anew.

1. A file's text, and the text with the edit, are compiled. Edits are inside expressions, so that both have the same
   functions in the same order, and each code of the one has its counterpart in the other.
2. Inside of ``edited`` every function of this process that has a code of the file has that code's counterpart.
   Functions that a traced function makes are made by its new code.
3. JAX keeps what it traced by function. A value that it makes part of its keys (``jax.make_user_context``) is another
   one in each block, so that each block traces anew, and what the user's own calls left in the caches stays.

Invariant: behind ``edited`` all functions have their own codes again.

Complexity: one walk over Python's objects for each ``Live``, one compilation of a file for each text.
"""

from __future__ import annotations

import builtins
import itertools
import linecache
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from types import CodeType, FunctionType
from typing import Any

import jax

from shardpass.explicit.functions import functions

PROBE = "__shardpass_probe__"  # in edited texts: a function of (number, value) that returns the value
Texts = Mapping[str, str]

_trials = itertools.count(1)


class CannotEdit(Exception):
    """Raised for a text that cannot replace that of the running program."""


@cache
def _context() -> Any:
    return jax.make_user_context(0)


class Live:
    """Replaces the code of this process's functions, by the file that they come from."""

    def __init__(self) -> None:
        self._functions: dict[str, list[FunctionType]] = {}
        self._codes: dict[str, list[CodeType]] = {}

    def text(self, file: str) -> str:
        """Returns the text of a file as it runs, "" if it is not available."""
        return "".join(linecache.getlines(file))

    @contextmanager
    def edited(self, texts: Texts, probe: Any = None) -> Iterator[None]:
        """Inside of the block, functions of the files in ``texts`` run the code of these texts.

        ``probe``: the object that the name PROBE refers to there. Raises CannotEdit.
        """
        counterparts = [(function, code) for file, text in texts.items() for function, code in self._pairs(file, text)]
        with ExitStack() as stack:
            stack.enter_context(_context()(next(_trials)))
            if probe is not None:
                setattr(builtins, PROBE, probe)
                stack.callback(delattr, builtins, PROBE)
            for function, code in counterparts:
                stack.callback(setattr, function, "__code__", function.__code__)
                function.__code__ = code
                if "jax" in code.co_names and "jax" not in function.__globals__:
                    function.__globals__["jax"] = jax  # which the text imports
                    stack.callback(function.__globals__.pop, "jax", None)
            yield

    def _pairs(self, file: str, text: str) -> Iterator[tuple[FunctionType, CodeType]]:
        """Yields each function of ``file`` whose code differs in ``text``, with its new code."""
        if file not in self._codes:
            self._codes[file] = _codes(self.text(file), file)
        before, after = self._codes[file], _codes(text, file)
        if len(before) != len(after):
            raise CannotEdit(file)
        names = Counter(map(_name, before))
        known = {_key(one, names): other for one, other in zip(before, after, strict=True)}
        for function in self._of(file):
            code = known.get(_key(function.__code__, names))
            if code is None or code == function.__code__:
                continue
            if code.co_freevars != function.__code__.co_freevars:
                raise CannotEdit(file)
            yield function, code

    def _of(self, file: str) -> list[FunctionType]:
        if file not in self._functions:
            self._functions[file] = [one for one in functions() if one.__code__.co_filename == file]
        return self._functions[file]


def _codes(text: str, file: str) -> list[CodeType]:
    try:
        return list(_inside(compile(text, file, "exec", dont_inherit=True)))
    except (SyntaxError, ValueError) as error:
        raise CannotEdit(file) from error


def _inside(code: CodeType) -> Iterator[CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _inside(one)


def _name(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _key(code: CodeType, names: Counter[tuple[str, int]]) -> Any:
    """Returns a key that identifies a function by name and line, and lambdas of one line also by their columns."""
    name = _name(code)
    return name if names[name] < 2 else (name, tuple(code.co_positions()))
