"""The base class of passes: a small frozen dataclass with a name, typed options and a ``run``.

A pass is written like this::

    @register
    @dataclass(frozen=True)
    class Import(ModulePass):
        '''What it does, for people who have never seen it.

        Options:
            strict: an unknown annotation is an error, not a warning

        Input:

            func.func @main(%x: tensor<8xf32>) ...

        Output:

            func.func @main(%x: tensor<8xf32>) ...
        '''

        name = "shardpass-import"
        summary = "one annotation for every sharding"

        strict: bool = True

Contract: valid IR in, valid IR out, and the module's text has all facts that the next pass needs. The
fields are the pass's options; in a pipeline, ``some_option`` may be written ``some-option``. The docstring
is the pass's page in docs/passes.md; a test runs its Input and compares with its Output
(``tools/docs/pass_pages.py`` reads it).
"""

from __future__ import annotations

import abc
import dataclasses
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

OptionValue = bool | int | float | str


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a pass, as described by a dataclass field."""

    name: str  # of the field
    type: type[bool] | type[int] | type[float] | type[str]
    default: OptionValue

    @property
    def spelling(self) -> str:
        """The option's name as pipelines print it: ``memory-limit``."""
        return self.name.replace("_", "-")

    def __str__(self) -> str:
        return f"{self.spelling}: {self.type.__name__} = {show_value(self.default)}"

    def read(self, text: str) -> OptionValue:
        """Parse a value from ``text``. Raises ValueError if the text does not match the option's type.

        Booleans are read as LLVM's command line reads them: ``true``, ``TRUE``, ``True``, ``1``, and so on.
        """
        if self.type is bool:
            value = _BOOLEANS.get(text)
            if value is None:
                raise ValueError(text)
            return value
        return self.type(text)


_BOOLEANS: Mapping[str, bool] = {
    **dict.fromkeys(("true", "TRUE", "True", "1"), True),
    **dict.fromkeys(("false", "FALSE", "False", "0"), False),
}


def show_value(value: OptionValue) -> str:
    """Format ``value`` as in a pipeline; text with spaces, braces or commas is quoted."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    if text == "" or any(c in ' \t\n,{}()="' for c in text):
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return text


@dataclass(frozen=True)
class ModulePass(abc.ABC):
    """A pass over a whole module. Subclasses are ``@register @dataclass(frozen=True)``.

    ``name`` is its name in pipelines, ``summary`` its line in ``shardpass-opt --list-passes``.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    example: ClassVar[str] = ""  # the options with which the page's Input becomes its Output
    keeps_table: ClassVar[bool] = False  # the pass leaves every op as it is (``program.table``)
    shared: ClassVar[frozenset[str]] = frozenset()  # options that a named pipeline gives to every pass that has them

    @property
    def compares(self) -> bool:
        """Whether the pass reads the pipeline's input (``pipeline.given``)."""
        return False

    @abc.abstractmethod
    def run(self, module: Any) -> bool | None:
        """Change ``module`` (an ``ir.Module``) in place; returns False if it is unchanged.

        Diagnostics that do not stop the work go through ``shardpass.diagnostics.report``; a reported error lets
        the pass finish and then fails the pipeline. Raises ``ShardpassError`` where it cannot go on.
        """

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """List the pass's options, in the order of its fields.

        Raises TypeError where a field is not a bool, int, float or str with a default.
        """
        return _options_of(cls)

    def __str__(self) -> str:
        """Format the pass as in a pipeline, with the options that differ from their defaults."""
        options = [
            f"{option.spelling}={show_value(getattr(self, option.name))}"
            for option in self.options()
            if getattr(self, option.name) != option.default
        ]
        return self.name + ("{" + " ".join(options) + "}" if options else "")


@lru_cache(maxsize=256)
def _options_of(cls: type[ModulePass]) -> tuple[Option, ...]:
    """Compute the options of a pass class; cached, as evaluating annotations is slow."""
    hints = typing.get_type_hints(cls)
    options = []
    for field in dataclasses.fields(cls):
        kind = hints[field.name]
        if kind not in (bool, int, float, str) or field.default is dataclasses.MISSING:
            raise TypeError(f"{cls.__name__}.{field.name} must be a bool, int, float or str with a default")
        options.append(Option(field.name, kind, field.default))
    return tuple(options)
