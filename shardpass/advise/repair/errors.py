"""JAX's errors about types of shardings: which exceptions they are, where they arose, and the types that they name.

JAX says the same thing in several ways. An op whose result has no certain sharding raises ``ShardingTypeError``; a
result that would name an axis twice, ``DuplicateSpecError``; a loop whose carry comes out with another type, and a
branch that returns another, ``TypeError``; a constraint that does not hold, ``AssertionError``; arguments of
``shard_map`` and of ``jit``, ``ValueError``. All of these are known here, by class and by words, and nowhere else.

The place is the innermost expression of the user's files on the way to the error: that of the traceback, or of an error
in a backward pass that of the forward op, which JAX names as the cause.

Works with jax 0.10.2 and 0.12.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from types import TracebackType

from shardpass.diagnostics import Place
from shardpass.ir.frames import Frame, is_library

_CLASSES = ("ShardingTypeError", "DuplicateSpecError")
_WORDS = (  # (class, words) of errors that are of shardings if the types in them differ in these alone
    ("TypeError", re.compile(r"must have (?:the same type structure|equal (?:output )?types)")),
    ("AssertionError", re.compile(r"`with_sharding_constraint` acts as an assert")),
    ("ValueError", re.compile(r"in_specs passed to shard_map|Incompatible types for broadcasting: .*@")),
    ("ValueError", re.compile(r"in_shardings.*does not match|out_sharding.*(?:mention|reshard)", re.DOTALL)),
    ("NotImplementedError", re.compile(r"sharding|unreduced", re.IGNORECASE)),
)
_PAIR = re.compile(
    r"(?P<name>[\w\[\]'.]*) has type (?P<one>\w+\[[^\]]*\]\S*)"
    r" but the corresponding[^.]*? has type (?P<other>\w+\[[^\]]*\])"
)
_STEP = re.compile(r"\[(?:(\d+)|'([^']*)')\]")
_SPLIT = re.compile(r"@(?:\([^)]*\)|\w+)")
_LONGEST = 400  # of a message

Step = int | str  # an index, or the key of a dict


@dataclass(frozen=True)
class Pair:
    """Two types that should be equal. ``path``: the component of a carry or result that has them, () for all of it."""

    path: tuple[Step, ...]
    one: str
    other: str


@dataclass(frozen=True)
class Clash:
    """An error about types. ``frames``: the user's expressions on the way to it, innermost first.

    ``pairs``: for carries and branches, the types that differ, as JAX writes them.
    """

    name: str
    text: str
    frames: tuple[Frame, ...]
    pairs: tuple[Pair, ...] = ()

    @property
    def place(self) -> Place:
        return self.frames[0].place

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"


def read(error: BaseException) -> Clash | None:
    """Convert an exception into a ``Clash``; None if it is not about types, or passed through no file of the user."""
    name, text = type(error).__name__, str(error)
    pairs = tuple(_pairs(text))
    known = name in _CLASSES or any(name == of and words.search(text) for of, words in _WORDS)
    if not known or (name == "TypeError" and not pairs):
        return None
    if any(_SPLIT.sub("", pair.one) != _SPLIT.sub("", pair.other) for pair in pairs):
        return None  # shapes or element types differ
    links = [link for trace in _traces(error) for link in links_of(trace) if _is_of_user(link)]
    frames = tuple(dict.fromkeys(map(frame_of, reversed(links))))
    return Clash(name, _short(text), frames, pairs) if frames else None


def spec_of(text: str) -> tuple[tuple[str, ...], ...]:
    """Parse the axes of each dimension out of a type that JAX writes as ``float32[8@data,16@(x,y)]``."""
    inside = text[text.index("[") + 1 : text.index("]")]
    dims = re.findall(r"\d+(?:@(?:\([^)]*\)|\w+))?", inside)
    return tuple(tuple(re.findall(r"[A-Za-z_]\w*", dim)) for dim in dims)


def _pairs(text: str) -> Iterator[Pair]:
    for match in _PAIR.finditer(text):
        path = tuple(int(number) if number else key for number, key in _STEP.findall(match["name"]))
        yield Pair(path, match["one"], match["other"])


def _short(text: str) -> str:
    """Return the message in one line, with sharding objects reduced to their specs."""
    text = re.sub(r"NamedSharding\(mesh=.*?spec=(P\([^)]*\)+)[^()]*\)", r"\1", " ".join(text.split()))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _traces(error: BaseException) -> Iterator[TracebackType]:
    """Yield the traceback of ``error`` and of its causes, which name the ops that JAX transformed."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        if one.__traceback__ is not None and (one is error or "BeforeTransformation" in type(one).__name__):
            yield one.__traceback__
        one = one.__cause__


def _is_of_user(link: TracebackType) -> bool:
    path = link.tb_frame.f_code.co_filename
    return not is_library(path) and not path.startswith("<")


def links_of(trace: TracebackType | None) -> Iterator[TracebackType]:
    """Yield ``trace`` and those inside of it."""
    while trace is not None:
        yield trace
        trace = trace.tb_next


def frame_of(trace: TracebackType) -> Frame:
    """Return the file, line and columns of the expression at which ``trace`` stands."""
    code = trace.tb_frame.f_code
    positions = next(islice(code.co_positions(), trace.tb_lasti // 2, None), (None,) * 4)
    line, end, column, last = positions
    if line is None or column is None or (line != trace.tb_lineno and end is None):
        return Frame(Place(code.co_filename, trace.tb_lineno or 0))
    return Frame(Place(code.co_filename, line, column), end or 0, last or 0)
