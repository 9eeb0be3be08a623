"""The grammar of XLA's sharding text (``mhlo.lark``), and its syntax errors in words.

An error names its place, the words expected there, the actual word, and a likely remedy.
"""

from __future__ import annotations

import difflib
import re
import threading
from importlib.resources import files

from lark import Lark, Token, UnexpectedInput
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedToken

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding.errors import ShardingParseError, fault
from shardpass.sharding.notations.trees import Node

_local = threading.local()


def _grammar() -> Lark:
    """Return the thread's parser: lark's contextual lexer keeps state."""
    grammar: Lark | None = getattr(_local, "grammar", None)
    if grammar is None:
        text = (files("shardpass.sharding.notations") / "mhlo.lark").read_text()
        starts = ["start", "mesh_only"]
        grammar = _local.grammar = Lark(
            text, parser="lalr", start=starts, maybe_placeholders=False, propagate_positions=False
        )
    return grammar


def parse_tree(text: str, start: str) -> Node:
    """Parse ``text`` by the rule ``start``: a sharding ("start") or a mesh alone ("mesh_only").

    Raises:
        ShardingParseError: ``text`` does not follow the grammar.
    """
    try:
        return _grammar().parse(text, start=start)
    except UnexpectedInput as error:
        raise _explained(text, error) from None


_WORDS = {
    "attribute": "an attribute such as replicated or devices=[..]",
    "KIND": "replicated, maximal, manual, unknown or unreduced", "DEVICES": "devices=",
    "DEVICE": "device=", "REPLICATE_LAST": "last_tile_dim_replicate", "LAST_DIMS": "last_tile_dims=",
    "GROUP": "shard_as or shard_like", "MESH": "mesh[..]", "MAXIMAL_MESH": "maximal_mesh[..]", "LBRACE": "'{'",
    "RBRACE": "'}'", "LSQB": "'['", "RSQB": "']'", "LPAR": "'('", "RPAR": "')'", "COMMA": "','", "COLON": "':'",
    "EQUAL": "'='", "INTS": "an integer", "INT": "an integer", "STRING": "a quoted name", "LIST": "a list [..]",
    "IOTA": "'<='", "TRANSPOSE": "T(..)", "STRAY_COMMAS": "','", "TYPE": "replicated, manual, unreduced or maximal",
    "NAMED_KIND": "replicated, manual or unreduced", "OPEN": "'?'", "KEY": "a metadata field",
    "AXES_ATTR": "replicated=, unreduced= or manual=", "DEVICE_IDS": "device_ids=", "METADATA": "metadata=",
    "REDUCTION": "sum, max or min", "$END": "the end", "AFTER": "last_tile_dim_replicate",
}  # fmt: skip


_ATTRIBUTES = frozenset({"KIND", "DEVICE", "DEVICES", "REPLICATE_LAST", "LAST_DIMS", "GROUP", "METADATA"})
_AT_START = frozenset({"MESH", "MAXIMAL_MESH", "LBRACE"})


def _explained(text: str, error: UnexpectedInput) -> ShardingParseError:
    """Convert lark's error to a ShardingParseError."""
    expected: set[str]
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        token: Token = error.token
        offset, actual = token.start_pos or 0, repr(str(token)[:40])
        expected = set(error.accepts or error.expected)
    elif isinstance(error, UnexpectedCharacters):
        offset = error.pos_in_stream or 0
        word = _WORD.match(text, offset)
        actual, expected = repr(word[0][:40] if word else text[offset : offset + 1]), set(error.allowed or ())
    else:
        offset, actual = len(text.rstrip()), "the end of the text"
        expected = set(error.expected) if isinstance(error, UnexpectedEOF | UnexpectedToken) else set()
    if expected >= _ATTRIBUTES:
        expected = expected - _ATTRIBUTES - _AT_START | {"attribute"}
    words = sorted({_WORDS.get(name, name.lower().rstrip("_")) for name in expected} - {"the end"})
    length = len(actual) - 2 if actual[0] in "'\"" else 1
    return fault(table.SYNTAX, text, offset, length, expected=_either(words), found=actual, hint=_hint(text, offset))


_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*=?", re.ASCII)
_KNOWN = (
    "replicated", "maximal", "manual", "unknown", "unreduced", "device=", "devices=", "last_tile_dim_replicate",
    "last_tile_dims=", "shard_as", "shard_like", "metadata=", "mesh", "maximal_mesh", "device_ids=", "device_id=",
)  # fmt: skip


def _either(words: list[str]) -> str:
    if not words:
        return "the end"
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]


def _hint(text: str, offset: int) -> str:
    rest = text[offset:].lstrip()
    word = _WORD.match(rest)
    if not text.lstrip().startswith("{"):
        return "write a sharding between braces: {devices=[2,1]0,1}"
    if word and word[0].rstrip("=") in [known.rstrip("=") for known in _KNOWN if known.endswith("=")]:
        if re.match(r"\s+=", rest[word.end() :]):
            return f"write no blank before '=': {word[0]}="
    elif word and (close := difflib.get_close_matches(word[0], _KNOWN, 1)):
        return f"did you mean {close[0]}?"
    elif word and text[:offset].rstrip().endswith(("[", "{", ",")) and "mesh" in text[:offset]:
        return f"quote the names of axes: '{word[0].rstrip('=')}'"
    if rest.startswith("[") and text[:offset].endswith("device="):
        return "did you mean devices=? device= names the one device of a maximal sharding"
    if rest.startswith(","):
        return "separate attributes by blanks, not commas"
    if not rest and text.count("{") > text.count("}"):
        return "close the brace"
    return ""
