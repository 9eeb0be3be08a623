"""The parsed text, and the values of its tokens by the rules of XLA's lexer (xla/hlo/parser/hlo_lexer.cc).

XLA reads an integer as 64 bits without a sign and keeps it with one: 18446744073709551615 is -1. Strict reading refuses
integers that do not fit in 64 bits with a sign. A string has the escapes of C.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from shardpass.diagnostics import Code
from shardpass.diagnostics import table_sharding as table
from shardpass.sharding.digits import Ints
from shardpass.sharding.errors import ShardingParseError, fault
from shardpass.sharding.notations.trees import Node
from shardpass.sharding.quoting import EscapeError, c_unquoted

_COMMENT = re.compile(r"/\*.*?\*/|//[^\r\n]*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a sharding during parsing. ``strict`` refuses text that XLA's parser drops or misreads."""

    text: str
    strict: bool

    def fault(self, code: Code, at: int, length: int = 1, **values: object) -> ShardingParseError:
        return fault(code, self.text, at, length, **values)

    def contradiction(self, at: int, message: str, hint: str = "", length: int = 1) -> ShardingParseError:
        return fault(table.CONTRADICTION, self.text, at, length, message=message, hint=hint)

    def ints(self, token: Node) -> Ints:
        """Read the integers of a token, ``1, 2,3`` or ``[1,2]``. int64.

        Raises:
            ShardingParseError: a comma or a number is missing, or a number is out of range.
        """
        raw = str(token)
        if "/" in raw:
            raw = _COMMENT.sub(lambda numbers: " " * len(numbers[0]), raw)
        body = raw.strip("[]")
        if len(body) < 18 and body.isdigit():
            return np.array([int(body)])
        if len(body) > 1024 and (numbers := _many(body)) is not None:
            return numbers
        parts = body.split(",")
        if len(max(parts, key=len)) < 18:
            try:
                return np.array(list(map(int, parts)), dtype=np.int64)
            except ValueError:
                pass  # the loop below finds the place
        at = token.start_pos + (raw[0] == "[")
        out = []
        for part in parts:
            out.append(self._int(part, at))
            at += len(part) + 1
        return np.array(out, dtype=np.int64)

    def _int(self, part: str, at: int) -> int:
        number = part.strip()
        at += len(part) - len(part.lstrip())
        if not number.removeprefix("-").isdigit():
            what = number or (self.text[at] if at < len(self.text) else "")
            expected = "',' between integers" if any(c.isdigit() for c in number) else "an integer"
            raise self.fault(table.SYNTAX, at, expected=expected, found=repr(what) if what else "the end", hint="")
        digits = number.removeprefix("-").lstrip("0") or "0"
        value = int(digits) if len(digits) < 21 else 1 << 64
        value = -value if number[0] == "-" else value
        top = 1 << 63 if self.strict else 1 << 64
        if not -(1 << 63) <= value < top:
            raise self.fault(table.INTEGER_RANGE, at, len(number), value=number)
        return value - (1 << 64) if value >= 1 << 63 else value

    def tuple(self, token: Node) -> tuple[int, ...]:
        return tuple(self.ints(token).tolist())

    def one(self, token: Node) -> int:
        numbers = self.ints(token)
        if len(numbers) != 1:
            at = token.start_pos + str(token).index(",")
            raise self.fault(table.SYNTAX, at, expected="one integer", found="','", hint="")
        return int(numbers[0])

    def string(self, token: Node) -> str:
        """Return the content of a quoted token with its C escapes resolved.

        Raises:
            ShardingParseError: an escape that C does not have.
        """
        try:
            return c_unquoted(str(token)[1:-1])
        except EscapeError as error:
            at = token.start_pos + 1 + error.offset
            raise self.fault(
                table.SYNTAX, at, len(error.escape), expected="an escape of C", found=repr(error.escape), hint=""
            ) from None


def _many(body: str) -> Ints | None:
    """Convert a long list with NumPy; None if the list is malformed or needs the slow path."""
    if ",," in body or not body.isascii() or not (body[0].isdigit() and body[-1].isdigit()):
        return None
    letters = np.frombuffer(body.encode("ascii"), dtype=np.uint8)
    if ((letters - 48 > 9) & (letters != 44)).any():  # neither a digit nor a comma
        return None
    numbers = np.fromstring(body, dtype=np.int64, sep=",")
    sound = len(numbers) == body.count(",") + 1 and int(numbers.max()) < 10**17  # a larger one was cut off
    return numbers if sound else None
