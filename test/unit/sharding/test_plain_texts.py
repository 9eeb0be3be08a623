"""Texts that are read without the grammar mean what the grammar says they mean, and load no parser."""

from __future__ import annotations

import gzip
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from shardpass.sharding import ShardingError
from shardpass.sharding.notations import by_grammar, mhlo, named_mesh

CORPUS = Path(__file__).parents[2] / "data" / "hlo_sharding_corpus.jsonl.gz"
TEXTS = [json.loads(line)["text"] for line in gzip.decompress(CORPUS.read_bytes()).decode().splitlines()]

WORDS = ("{replicated}", "{manual}", "{unknown}")
MESHES = ("mesh['x'=2]", "mesh['x'=4,'y'=2]", "mesh['a_1'=1,'B'=3,'c'=123456789]")
FOR_THE_GRAMMAR = (
    "mesh[]", "mesh['x'=0]", "mesh['x'=2,'x'=2]", "mesh['x'=2, 'y'=2]", "mesh['x'=-1]", 'mesh["x"=2]', "mesh['x y'=2]",
    "mesh['x'=2], device_ids=(1,0)", "mesh['x'=4,'y'=2], device_ids=([2,4]T(1,0))", "mesh['x'=2]\n",
)  # fmt: skip


def everything(sharding):
    """All that is said of a sharding; its notes are no part of its equality."""
    return sharding, str(sharding), sharding.kind, sharding.reduction, sharding.notes


@pytest.mark.parametrize("strict", [True, False])
def test_plain_texts_of_the_corpus_are_as_the_grammar_says(strict):
    plain = [(text, found) for text in (*TEXTS, *WORDS) if (found := mhlo._plain(text)) is not None]
    assert len(plain) > 100
    assert [text for text, found in plain if everything(found) != everything(by_grammar.parsed(text, strict))] == []


def test_words_are_plain():
    assert all(mhlo._plain(word) is not None for word in WORDS)


def test_every_small_iota_is_as_the_grammar_says():
    """One of 8 devices in each shape and order, tiled along two dimensions or one."""
    seen = 0
    for shape in ((8,), (2, 4), (4, 2), (2, 2, 2)):
        for order in itertools.permutations(range(len(shape))):
            turned = f"T({','.join(map(str, order))})" if len(shape) > 1 else ""
            for dims, last in itertools.product(("8", "2,4", "4,2", "2,1,4"), ("", " last_tile_dim_replicate")):
                text = f"{{devices=[{dims}]<=[{','.join(map(str, shape))}]{turned}{last}}}"
                found = mhlo._plain(text)
                assert found is not None
                assert everything(found) == everything(by_grammar.parsed(text, True)), text
                seen += 1
    assert seen == 88


def outcome(read, text):
    try:
        return read(text)
    except ShardingError as error:
        return str(error)


def test_plain_meshes_are_as_the_grammar_says():
    told = {found for text in TEXTS for found in re.findall(r"mesh\[[^\]]*\]", text)}
    plain = [(text, found) for text in (*told, *MESHES) if (found := named_mesh._plain(text)) is not None]
    assert len(plain) > 10
    assert set(MESHES) <= {text for text, _ in plain}
    for text, found in plain:
        said = named_mesh._parsed(text)
        assert (found, found.axes, str(found)) == (said, said.axes, str(said))


@pytest.mark.parametrize("text", FOR_THE_GRAMMAR)
def test_other_meshes_are_left_to_the_grammar(text):
    assert named_mesh._plain(text) is None
    assert outcome(named_mesh.parse_mesh, text) == outcome(named_mesh._parsed, text)


def test_plain_texts_load_no_parser():
    code = (
        "import sys; from shardpass.sharding import parse_mesh, parse_sharding;"
        f"[parse_sharding(text) for text in {(*WORDS, '{devices=[2,4]<=[8]}')}];"
        f"[parse_mesh(text) for text in {MESHES}];"
        "assert not {'lark', 'shardpass.sharding.notations.syntax'} & set(sys.modules);"
        "parse_sharding('{devices=[2]0,1}'); assert 'lark' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
