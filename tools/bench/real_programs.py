"""The real programs of test/integration/models, which tests and benchmarks share.

They are a package of the test suite, whose folder is no place for imports of tools. The package is loaded from its
path, under the name that tests give it, so that both see one table.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, Protocol, cast

from tools.processes import ROOT

PARENT = "integration"
PACKAGE = f"{PARENT}.models"
FOLDER = ROOT / "test" / PARENT


class Case(Protocol):
    """``arguments`` is the tuple of pytrees that the function takes."""

    @property
    def arguments(self) -> tuple[Any, ...]: ...


class LoweredProgram(Protocol):
    """A program as JAX lowers it: ``text`` is StableHLO, ``arguments`` the flat list of arrays."""

    @property
    def lowered(self) -> Any: ...
    @property
    def case(self) -> Case: ...
    @property
    def text(self) -> str: ...
    @property
    def arguments(self) -> Sequence[Any]: ...


class Measurable(Protocol):
    """What a benchmark needs of a program."""

    @property
    def name(self) -> str: ...
    @property
    def devices(self) -> int: ...
    @property
    def tolerance(self) -> float: ...
    def lower(self) -> LoweredProgram: ...


class RealProgram(Measurable, Protocol):
    """A JAX function with its mesh, shardings and arguments; ``needs`` names a library that may not be installed."""

    @property
    def family(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def mesh(self) -> tuple[int, ...]: ...
    @property
    def needs(self) -> str | None: ...
    @property
    def available(self) -> bool: ...
    def lower(self, platform: str = "cpu") -> LoweredProgram: ...


def real_programs() -> Mapping[str, RealProgram]:
    """The programs by name, in the order of their families."""
    return cast(Mapping[str, RealProgram], _package().PROGRAMS)


def differences(found: Sequence[Any], expected: Sequence[Any]) -> list[float]:
    """How far each result is from the expected one, as the tests measure it."""
    _package()
    measure = importlib.import_module(f"{PACKAGE}.difference")
    return cast(list[float], measure.differences(found, expected))


def _package() -> ModuleType:
    """The package, whose parent is made here: a namespace that holds the folder and nothing else."""
    if PARENT not in sys.modules:
        parent = ModuleType(PARENT)
        parent.__path__ = [str(FOLDER)]
        sys.modules[PARENT] = parent
    return importlib.import_module(PACKAGE)
