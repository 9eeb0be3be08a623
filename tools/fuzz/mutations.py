"""Inputs one step away from good ones: bytes changed, tokens moved, two inputs crossed.

Every function takes a ``random.Random`` and makes the same of the same state. Text is edited in three ways, since what
fails in the first parser never reaches the second: in one place; everywhere alike (a size, an op, an element type: what
comes out often still parses); and in the texts of shardings, which have a parser of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

from tools.fuzz.sharding import generated
from tools.fuzz.sharding import mutated as mutated_sharding

NUMBERS = (
    "0", "-1", "1", "2", "3", "7", "2147483647", "2147483648", "4294967296", "9223372036854775807",
    "9223372036854775808", "-9223372036854775808", "18446744073709551615", "18446744073709551616", "1e400", "-0.0",
    "nan", "inf", "0x7FC00000", "1" * 400,
)  # fmt: skip
SMALL = ("0", "1", "2", "3", "5", "6", "7", "8", "12", "16", "1000003", "2147483648", "9223372036854775807")
NAMES = (
    "", " ", "\x1b[31m", "\\00", "é", "\u202e", "<script>alert(1)</script>", "../../../../etc/passwd", "a" * 3000,
    "%s%n", "{}", "'", "main", "//", "// -----", "\\", "\\22", "-", "@",
)  # fmt: skip
ELEMENTS = (
    "f32", "bf16", "f16", "f64", "i1", "i8", "ui8", "i32", "i64", "ui32", "complex<f32>", "f8E4M3FN", "i4", "ui2",
    "index", "tf32", "i17", "none", "!stablehlo.token",
    "!quant.uniform<i8:f32, 0.5>", "f4E2M1FN", "f8E8M0FNU", "tensor<2xf32>",
)  # fmt: skip
TOKEN = re.compile(
    r"\s+|[A-Za-z_$][\w$.]*|[%@#!^][\w$.]*|-?\d+(?:\.\d+)?(?:e[-+]?\d+)?|\"(?:[^\"\\\n]|\\.)*\"|.", re.DOTALL
)
NUMBER = re.compile(r"(?<![\w.%#@])-?\d+(?:\.\d+)?")
SIZE = re.compile(r"(?<=[<x])\d+(?=x)")
ELEMENT = re.compile(r"(?<=[<x])(?:bf16|f\d+|u?i\d+)(?=>)")
SHARDING = re.compile(r'(mhlo\.sharding = |sharding=)("?)(\{(?:[^"{}]|\{[^{}]*\})*\})')
OP = re.compile(r"\b(?:stablehlo|sdy|chlo|mhlo|func)\.\w+")
MOST = 1 << 20  # characters; a text that doubles again and again ends there


# ---------------------------------------------------------------- bytes


def changed_bytes(rng: Random, data: bytes, other: bytes) -> bytes:
    """``data`` after one to four edits; ``other``: what pieces come from."""
    made = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        rng.choice(_BYTES)(rng, made, other)
    return bytes(made[:MOST])


def _flip(rng: Random, made: bytearray, other: bytes) -> None:
    if made:
        made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)


def _set(rng: Random, made: bytearray, other: bytes) -> None:
    if made:
        made[rng.randrange(len(made))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def _drop(rng: Random, made: bytearray, other: bytes) -> None:
    start, stop = _range(rng, len(made))
    del made[start:stop]


def _end(rng: Random, made: bytearray, other: bytes) -> None:
    del made[rng.randint(0, len(made)) :]


def _repeat(rng: Random, made: bytearray, other: bytes) -> None:
    start, stop = _range(rng, len(made))
    made[start:start] = made[start:stop] * rng.choice((1, 1, 2, 8))


def _splice(rng: Random, made: bytearray, other: bytes) -> None:
    start, stop = _range(rng, len(made))
    first, last = _range(rng, len(other))
    made[start:stop] = other[first:last]


def _integer(rng: Random, made: bytearray, other: bytes) -> None:
    if made:
        at = rng.randrange(len(made))
        value = rng.choice(
            (b"\xff" * 4, b"\xff" * 9 + b"\x01", b"\0" * 8, b"\xff\xff\xff\x7f", b"\x80\x80\x80\x80\x08")
        )
        made[at : at + (len(value) if rng.random() < 0.5 else 1)] = value


_BYTES: Sequence[Callable[[Random, bytearray, bytes], None]] = (
    _flip, _flip, _set, _set, _drop, _end, _repeat, _splice, _integer,
)  # fmt: skip


def _range(rng: Random, size: int) -> tuple[int, int]:
    start = rng.randint(0, size)
    return start, min(size, start + rng.choice((1, 2, 4, 16, 64, 1024)))


# ---------------------------------------------------------------- text


def changed_text(rng: Random, text: str, other: str) -> str:
    """``text`` after one to three edits."""
    for _ in range(rng.randint(1, 3)):
        text = rng.choice(_TEXT)(rng, text, other)[:MOST]
    return text


def _token(rng: Random, text: str, other: str) -> str:
    """One token dropped, repeated, swapped with another, or replaced."""
    tokens = TOKEN.findall(text)
    solid = [i for i, token in enumerate(tokens) if not token.isspace()]
    if not solid:
        return other
    at, to = rng.choice(solid), rng.choice(solid)
    match rng.randrange(5):
        case 0:
            tokens[at] = ""
        case 1:
            tokens[at] *= rng.choice((2, 2, 3, 300))
        case 2:
            tokens[at], tokens[to] = tokens[to], tokens[at]
        case 3:
            tokens[at] = tokens[to]
        case _:
            tokens[at] = rng.choice([token for token in TOKEN.findall(other) if not token.isspace()] or ["x"])
    return "".join(tokens)


def _number(rng: Random, text: str, other: str) -> str:
    return _one_of(rng, NUMBER, text, lambda _: rng.choice(NUMBERS))


def _size_everywhere(rng: Random, text: str, other: str) -> str:
    return _everywhere(rng, SIZE, text, lambda _: rng.choice(SMALL))


def _number_everywhere(rng: Random, text: str, other: str) -> str:
    return _everywhere(rng, NUMBER, text, lambda _: rng.choice(SMALL))


def _element_everywhere(rng: Random, text: str, other: str) -> str:
    return _everywhere(rng, ELEMENT, text, lambda _: rng.choice(ELEMENTS))


def _op(rng: Random, text: str, other: str) -> str:
    """An op by the name of another one."""
    known = OP.findall(other) + OP.findall(text)
    return _one_of(rng, OP, text, lambda _: rng.choice(known))


def _name(rng: Random, text: str, other: str) -> str:
    """Another text between quotes."""
    return _one_of(rng, re.compile(r'(?<=")[^"\n]*(?=")'), text, lambda _: rng.choice(NAMES))


def _sharding(rng: Random, text: str, other: str) -> str:
    def replaced(found: re.Match[str]) -> str:
        said = generated(rng) if rng.random() < 0.6 else mutated_sharding(rng, found[3])
        return found[1] + found[2] + (said.replace("\\", "\\\\").replace('"', '\\"') if found[2] else said)

    return _one_of(rng, SHARDING, text, replaced)


def _line(rng: Random, text: str, other: str) -> str:
    """A line dropped, repeated, moved, or taken from the other text."""
    lines, others = text.split("\n"), other.split("\n")
    at = rng.randrange(len(lines))
    match rng.randrange(4):
        case 0:
            del lines[at]
        case 1:
            lines[at : at + 1] = [lines[at]] * rng.choice((2, 2, 50))
        case 2:
            lines.insert(rng.randrange(len(lines)), lines.pop(at))
        case _:
            lines.insert(at, rng.choice(others))
    return "\n".join(lines)


def _cross(rng: Random, text: str, other: str) -> str:
    lines, others = text.split("\n"), other.split("\n")
    return "\n".join(lines[: rng.randint(0, len(lines))] + others[rng.randint(0, len(others)) :])


def _nest(rng: Random, text: str, other: str) -> str:
    """An opening bracket many times, with as many that close it or none."""
    one = rng.choice(("()", "{}", "[]", "<>"))
    at, depth = text.find(one[0], rng.randint(0, len(text))), rng.choice((2, 50, 600, 3000))
    if at < 0:
        return text
    stop = text.find(one[1], at) if rng.random() < 0.6 else -1
    inside = text[at:stop] if stop > 0 else text[at : at + 1]
    return text[:at] + one[0] * depth + inside + (one[1] * depth if stop > 0 else "") + text[at + len(inside) :]


def _bytes(rng: Random, text: str, other: str) -> str:
    """A character that is none of MLIR's."""
    at = rng.randint(0, len(text))
    return text[:at] + rng.choice(("\0", "\x1b", "\u202e", "é", "\r", "\ufeff", '"', "\\", "//", "\x0b")) + text[at:]


_TEXT: Sequence[Callable[[Random, str, str], str]] = (
    _token, _number, _size_everywhere, _size_everywhere, _number_everywhere, _element_everywhere, _op, _op, _name,
    _sharding, _sharding, _line, _line, _cross, _nest, _bytes,
)  # fmt: skip


def _one_of(rng: Random, what: re.Pattern[str], text: str, new: Callable[[re.Match[str]], str]) -> str:
    found = list(what.finditer(text))
    if not found:
        return text
    chosen = rng.choice(found)
    return text[: chosen.start()] + new(chosen) + text[chosen.end() :]


def _everywhere(rng: Random, what: re.Pattern[str], text: str, new: Callable[[str], str]) -> str:
    """One of the words that ``what`` finds becomes another wherever it stands."""
    found = sorted({m[0] for m in what.finditer(text)})
    if not found:
        return text
    old = rng.choice(found)
    into = new(old)
    return what.sub(lambda m: into if m[0] == old else m[0], text)
