"""Read a short notation token by token: Shardy's, JAX's, and that of the paper."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding.errors import ShardingParseError, fault


def tokens_of(pattern: str) -> re.Pattern[str]:
    """Compile the token pattern of a notation; any other character is a separate token."""
    return re.compile(rf"\s*({pattern}|\S)", re.ASCII)


class Reader:
    """The tokens of a text, and the place of the next."""

    def __init__(self, text: str, tokens: re.Pattern[str]) -> None:
        self.text = text
        self.tokens = [(match[1], match.start(1)) for match in tokens.finditer(text)]
        self.at = 0

    @property
    def word(self) -> str:
        """Return the next token; "" at the end."""
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    @property
    def place(self) -> int:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else len(self.text)

    def next(self, *wanted: str) -> bool:
        """Take the next token if it is in ``wanted``; return whether the token matched."""
        matches = self.at < len(self.tokens) and self.word in wanted
        self.at += matches
        return matches

    def take(self, *wanted: str) -> None:
        if not self.next(*wanted):
            raise self.fault(" or ".join(map(repr, wanted)))

    def match(self, pattern: str, what: str) -> str:
        """Take the next token, all of which must match ``pattern``."""
        if not re.fullmatch(pattern, self.word):
            raise self.fault(what)
        self.at += 1
        return self.tokens[self.at - 1][0]

    def several(self, close: str, trailing: bool = False) -> Iterator[None]:
        """Yield before each item of a comma-separated list up to ``close``.

        ``trailing``: a comma may follow the last item.
        """
        if self.next(close):
            return
        while True:
            yield
            if self.next(close):
                return
            self.take(",", close)
            if trailing and self.next(close):
                return

    def end(self) -> None:
        if self.word:
            raise self.fault("the end")

    def fault(self, expected: str) -> ShardingParseError:
        actual = repr(self.word) if self.word else "the end of the text"
        is_open = not self.word and self.text.count("(") > self.text.count(")")
        hint = "close the parenthesis" if is_open else ""
        return fault(table.SYNTAX, self.text, self.place, expected=expected, found=actual, hint=hint)
