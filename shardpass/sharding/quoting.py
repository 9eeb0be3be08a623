r"""Write and read names between quotes, in the escapes of each notation.

| language | where | name ``a'b`` and a newline |
|---|---|---|
| C | XLA's sharding and mesh text, ONNX's spec | ``'a\'b\n'`` |
| MLIR | Shardy's attributes, the paper's notation, locations | ``"a'b\0A"`` |
| Python | JAX's ``PartitionSpec`` (``ast`` reads it) | ``"a'b\n"`` |

A name is any text. The written form has printable letters alone, so that no name breaks a line or turns the direction
of a terminal. Numbers in escapes of C and MLIR are the bytes of UTF-8.
"""

from __future__ import annotations

import codecs
import re

STRING = r"""(?s:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""  # of all three: a quoted text

_C = re.compile(
    r"\\(?:(?P<octal>[0-7]{1,3})|x(?P<hex>[0-9a-fA-F]+)|u(?P<u>[0-9a-fA-F]{4})|U(?P<U>[0-9a-fA-F]{8})|(?P<one>.?))",
    re.DOTALL,
)
_C_ONE = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92, "?": 63, "'": 39, '"': 34}
_C_SHORT = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}
_MLIR = re.compile(r'\\(?:(?P<one>["\'\\nt])|(?P<bytes>[0-9A-Fa-f]{2}(?:\\[0-9A-Fa-f]{2})*))')
_MLIR_ONE = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "'": "'"}
_PART = r"(?::\(\d+\)\d+)*"  # of a sub-axis, and in the name of an axis of ours that is one
_PLAIN = re.compile(rf"[\w.\-/]+(?: [\w.\-/]+)*{_PART}")
_LISTED = re.compile(rf"('(?:[^'\\]|\\.)*'{_PART}|[^,']*)(?:,|$)")


class EscapeError(ValueError):
    """An escape that the language does not have, at ``offset`` in the text between the quotes.

    Attributes:
        escape: the escape.
    """

    def __init__(self, escape: str, offset: int) -> None:
        super().__init__(escape)
        self.escape, self.offset = escape, offset


# ------------------------------------------------------------------------------------- C


def c_quoted(name: str, quote: str = "'") -> str:
    """Quote ``name`` with the escapes of C, which XLA reads but does not print."""
    if name.isprintable() and quote not in name and "\\" not in name:
        return f"{quote}{name}{quote}"
    return quote + "".join(_c_letter(letter, quote) for letter in name) + quote


def _c_letter(letter: str, quote: str) -> str:
    if letter in (quote, "\\"):
        return "\\" + letter
    if letter.isprintable():
        return letter
    # octal: unlike a number after \x, it ends after three digits
    return _C_SHORT.get(letter) or "".join(f"\\{byte:03o}" for byte in letter.encode("utf-8", "surrogateescape"))


def c_unquoted(body: str) -> str:
    """Unquote ``body``, the text between quotes.

    Raises:
        EscapeError: an escape that C does not have.
    """
    if "\\" not in body:
        return body
    out, done = bytearray(), 0
    for match in _C.finditer(body):
        out += body[done : match.start()].encode("utf-8", "surrogatepass")
        code = _c_code(match)
        if code is None:
            raise EscapeError(match[0], match.start())
        out += code
        done = match.end()
    out += body[done:].encode("utf-8", "surrogatepass")
    return out.decode("utf-8", "surrogateescape")


def _c_code(match: re.Match[str]) -> bytes | None:
    """Return the bytes of an escape; None if C has no such escape."""
    if (octal := match["octal"]) is not None:
        return bytes([int(octal, 8)]) if int(octal, 8) < 256 else None
    if (digits := match["hex"]) is not None:
        return bytes([int(digits, 16)]) if int(digits, 16) < 256 else None
    if (point := match["u"] or match["U"]) is not None:
        value = int(point, 16)
        return None if value > 0x10FFFF or 0xD800 <= value < 0xE000 else chr(value).encode()
    one = _C_ONE.get(match["one"])
    return None if one is None else bytes([one])


# ------------------------------------------------------------------------------------- MLIR


def mlir_quoted(name: str) -> str:
    """Quote ``name`` as a string of MLIR's text."""
    return '"' + "".join(map(_mlir_letter, name)) + '"'


def _mlir_letter(letter: str) -> str:
    if letter == "\\":
        return r"\\"
    if letter != '"' and letter.isprintable():
        return letter
    return "".join(f"\\{byte:02X}" for byte in letter.encode("utf-8", "surrogateescape"))


def mlir_unquoted(body: str) -> str:
    r"""Unquote ``body``, the text between the quotes of an MLIR string; bytes that are no UTF-8 stay ``\FF``."""
    return _MLIR.sub(_mlir_value, body) if "\\" in body else body


def _mlir_value(match: re.Match[str]) -> str:
    if match["one"]:
        return _MLIR_ONE[match["one"]]
    return bytes.fromhex(match["bytes"].replace("\\", "")).decode("utf-8", "shardpass.escaped")


def _escaped(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "".join(f"\\{byte:02X}" for byte in error.object[error.start : error.end]), error.end


codecs.register_error("shardpass.escaped", _escaped)


# ------------------------------------------------------------------------------------- for people


def shown(name: str) -> str:
    """Format ``name`` on one line, with unprintable characters as C escapes."""
    return name if name.isprintable() else "".join(x if x.isprintable() else _c_letter(x, "") for x in name)


def bare(name: str) -> str:
    """Format ``name`` without quotes where a list of names stays clear (``x,y``); else as ``c_quoted``."""
    return name if _PLAIN.fullmatch(name) else c_quoted(name)


def listed(text: str) -> list[str]:
    """List the items of a list of ``bare`` names, each as written: ``x``, ``x:(1)2``, ``'a,b'``."""
    if not text:
        return []
    if "'" not in text:
        return text.split(",")
    return [match[1] for match in _LISTED.finditer(text) if match[1]]
