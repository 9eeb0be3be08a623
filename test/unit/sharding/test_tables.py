"""The kept parser tables: they are those of the grammar, give its trees and errors, and another lark does without."""

import gzip
import json
import sys
from importlib.resources import files
from pathlib import Path

import lark
import pytest
from lark.exceptions import UnexpectedInput

from shardpass.sharding.notations import tables

CORPUS = Path(__file__).parents[2] / "data" / "hlo_sharding_corpus.jsonl.gz"
TEXTS = (
    "{replicated}",
    "{devices=[2,1,4]<=[2,4]T(1,0) last_tile_dim_replicate}",
    "{{maximal device=3}, {manual}}",
    "{mesh['a'=2,'b'=4], [{'a'}, {?}, {'b':(1)2}], replicated={'b':(2)2}}",
    "{devices=[2,2]0,1,2,3 metadata={op_name='x'}}",
    "{devices=[2,2",
    "{what}",
    "",
)


def outcome(parser, text):
    try:
        return parser.parse(text, start="start")
    except UnexpectedInput as error:
        expected = getattr(error, "expected", None) or getattr(error, "allowed", None)
        return type(error), getattr(error, "pos_in_stream", None), set(expected or ())


def test_the_kept_tables_are_of_this_grammar():
    kept = json.loads((files(tables.PACKAGE) / tables.TABLES).read_text())
    assert kept["grammar"] == tables.grammar_digest(), "run python -m tools.docs.make_tables"


def test_the_corpus_has_the_trees_of_the_grammar():
    """Every text of XLA's that the corpus holds, by both parsers."""
    kept, built = tables.make_parser(), tables.built_parser()
    lines = gzip.decompress(CORPUS.read_bytes()).decode().splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    assert len(texts) > 1000
    assert [text for text in texts if outcome(kept, text) != outcome(built, text)] == []


@pytest.mark.parametrize("text", TEXTS)
def test_they_give_the_trees_and_the_errors_of_the_grammar(text):
    assert outcome(tables.make_parser(), text) == outcome(tables.built_parser(), text)


def test_the_mesh_alone_is_the_other_start():
    text = "mesh['a'=2,'b'=4]"
    trees = [parser.parse(text, start="mesh_only") for parser in (tables.make_parser(), tables.built_parser())]
    assert trees[0] == trees[1]


def test_another_version_of_lark_builds_its_own(monkeypatch):
    monkeypatch.setattr(lark, "__version__", "0.0")
    monkeypatch.setattr(lark.Lark, "load", lambda _: pytest.fail("tables of another version were read"))
    assert tables.make_parser().parse("{replicated}", start="start") is not None


def test_an_edit_of_the_grammar_takes_effect(monkeypatch, tmp_path):
    for name in ("mhlo.lark", tables.TABLES):
        (tmp_path / name).write_text((files(tables.PACKAGE) / name).read_text())
    edited = (tmp_path / "mhlo.lark").read_text().replace("replicated|manual|unknown", "copied|manual|unknown")
    (tmp_path / "mhlo.lark").write_text(edited)
    before = tables.make_parser()
    monkeypatch.setattr(tables, "files", lambda _: tmp_path)
    after = tables.make_parser()
    for parser, text in ((before, "{copied}"), (after, "{replicated}")):
        with pytest.raises(UnexpectedInput):
            parser.parse(text, start="start")
    assert before.parse("{replicated}", start="start") is not None
    assert after.parse("{copied}", start="start") is not None


def test_no_table_is_built_for_a_first_text():
    """A parser by the tables never analyses the grammar."""
    built = []

    def watch(frame, event, argument):
        if event == "call" and frame.f_code.co_name == "compute_lalr":
            built.append(frame)

    sys.setprofile(watch)
    try:
        tables.make_parser()
        found = len(built)
        tables.built_parser()
    finally:
        sys.setprofile(None)
    assert (found, len(built) > 0) == (0, True)
