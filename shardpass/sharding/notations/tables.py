"""Loads the parser of ``mhlo.lark`` from tables in a file beside it.

Building the tables takes lark four times as long as reading them, and delays each command that parses one sharding.
``mhlo.tables.json`` holds lark's own serialization of its parser, the version that wrote it, and a digest of the
grammar. Another version of lark, and an edited grammar, build the parser from the grammar: the
grammar is the truth, the tables only save time. ``python -m tools.docs.make_tables`` writes the file, and tests hold it
to the grammar.
"""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files
from typing import Any

import lark
from lark import Lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

PACKAGE = "shardpass.sharding.notations"
TABLES = "mhlo.tables.json"


def make_parser() -> Lark:
    """Make a new parser: lark's contextual lexer keeps state."""
    kept = json.loads((files(PACKAGE) / TABLES).read_text(), object_hook=_numbered)
    if (kept["lark"], kept["grammar"]) != (lark.__version__, grammar_digest()):
        return built_parser()
    return Lark.load({"data": kept["data"], "memo": kept["memo"]})  # a dict is no pickle


def built_parser() -> Lark:
    """Build the mhlo parser from its grammar instead of loading its stored tables."""
    return Lark(
        _grammar(), parser="lalr", start=["start", "mesh_only"], maybe_placeholders=False, propagate_positions=False
    )


def tables_text() -> str:
    """Return the content of the file; lark numbers its states differently from run to run."""
    data, memo = built_parser().memo_serialize([TerminalDef, Rule])
    kept = {"lark": lark.__version__, "grammar": grammar_digest(), "data": data, "memo": memo}
    return json.dumps(kept, separators=(",", ":")) + "\n"


def grammar_digest() -> str:
    """Return SHA-256 of the grammar's text."""
    return hashlib.sha256(_grammar().encode()).hexdigest()


def _grammar() -> str:
    return (files(PACKAGE) / "mhlo.lark").read_text()


def _numbered(row: dict[str, Any]) -> dict[Any, Any]:
    """Restore numbers as keys: JSON has text keys alone, lark's states and symbols are numbers."""
    return {int(key) if key.isdigit() else key: value for key, value in row.items()}
