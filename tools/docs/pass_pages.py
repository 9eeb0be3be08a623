"""Parse the docstring of a pass into its documentation page.

The docstring is prose, then three sections, each opened by its name on a line of its own: ``Options:`` (rows
``name: text``, continued by indented lines), ``Input:`` and ``Output:`` (MLIR, indented). The first line may
be the summary; what stands before the first section is the description.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from dataclasses import dataclass

from shardpass.pipeline.base import ModulePass, Option

_SECTION = re.compile(r"^(Options|Input|Output):[ \t]*$", re.MULTILINE)
_OPTION = re.compile(r"(\w[\w-]*): (.*)")


@dataclass(frozen=True, slots=True)
class PassPage:
    """The page of a pass. ``options`` pairs each option with its text; ``input`` and ``output`` are MLIR, with the
    options ``example``.
    """

    name: str
    summary: str
    description: str
    options: tuple[tuple[Option, str], ...]
    input: str
    output: str
    example: str = ""


def page_of(cls: type[ModulePass]) -> PassPage:
    """Read the page of the pass ``cls``.

    Raises ValueError where the docstring lacks a part: the description, a text for an option, Input, Output.
    """
    parts = _SECTION.split(inspect.cleandoc(cls.__doc__ or ""))
    description, sections = parts[0].strip(), dict(zip(parts[1::2], parts[2::2], strict=True))
    texts = _option_texts(sections.get("Options", ""))
    options = tuple((option, texts.pop(option.name, "")) for option in cls.options())
    lacking = [f"a text for the option {option.name}" for option, text in options if not text]
    lacking += [name for name in ("Input", "Output") if not sections.get(name, "").strip()]
    if not description:
        lacking.insert(0, "a description")
    if lacking or texts:
        unknown = f"; it describes options that do not exist: {', '.join(texts)}" if texts else ""
        raise ValueError(f"the docstring of {cls.__qualname__} lacks {', '.join(lacking) or 'nothing'}{unknown}")
    before, after = (textwrap.dedent(sections[name]).strip("\n") for name in ("Input", "Output"))
    return PassPage(cls.name, cls.summary, description, options, before, after, cls.example)


def _option_texts(section: str) -> dict[str, str]:
    """Return name -> text; deeper lines continue the line above."""
    texts: dict[str, str] = {}
    last = ""
    for line in textwrap.dedent(section).splitlines():
        match = _OPTION.match(line)
        if match:
            last = match[1].replace("-", "_")
            texts[last] = match[2].strip()
        elif last and line.strip():
            texts[last] += " " + line.strip()
    return texts
