"""Regions of ``auto_axes`` that exist already, as they would be with another spec, or without the region.

``@auto_axes(out_sharding=P('data'))`` on a function of a module makes an object when the file is imported. No code
that runs while JAX traces makes it again, so the object itself is changed, and changed back.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from jax.sharding import PartitionSpec

from shardpass.advise.place.specs import Spec
from shardpass.advise.repair.functions import functions
from shardpass.ir import jax_private


@dataclass(frozen=True)
class Region:
    """The ``auto_axes`` region of the function at a line of a file. ``spec``: of its results; None to remove
    the region.
    """

    path: str
    name: str
    line: int
    spec: Spec | None

    @staticmethod
    def of(path: str, function: ast.FunctionDef | ast.Lambda, spec: Spec | None) -> Region:
        if isinstance(function, ast.Lambda):
            return Region(path, "<lambda>", function.lineno, spec)
        line = min([function.lineno, *(one.lineno for one in function.decorator_list)])
        return Region(path, function.name, line, spec)

    @contextmanager
    def used(self) -> Iterator[bool]:
        """Give the region ``spec``, inside of the block. Yield whether the process has such a region."""
        wrappers = list(self._wrappers())
        undo = [self._changed(one) for one in wrappers]
        try:
            yield bool(wrappers)
        finally:
            for one in undo:
                one()

    def _wrappers(self) -> Iterator[FunctionType]:
        code = jax_private.automatic_wrapper()
        for one in functions():
            if one.__code__ == code:
                known = getattr(getattr(one, "__wrapped__", None), "__code__", None)
                if known is None or (known.co_filename, known.co_name) != (self.path, self.name):
                    continue
                if known.co_firstlineno == self.line:
                    yield one

    def _changed(self, wrapper: FunctionType) -> Callable[[], None]:
        if self.spec is None:
            code = wrapper.__code__
            wrapper.__code__ = _PLAIN

            def restore() -> None:
                wrapper.__code__ = code

            return restore
        cells = dict(zip(wrapper.__code__.co_freevars, wrapper.__closure__ or (), strict=True))
        cell = cells["out_sharding"]
        before, cell.cell_contents = cell.cell_contents, PartitionSpec(*self.spec)

        def put_back() -> None:
            cell.cell_contents = before

        return put_back


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
