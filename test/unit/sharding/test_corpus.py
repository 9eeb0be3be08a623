"""The parser held to XLA's on the corpus: 1,408 texts with the verdict of jaxlib 0.10.2's HloSharding.from_string.

The texts are from XLA's and Shardy's own tests, written by hand, generated, and mutants of those. ``outcome`` is
ok, error, abort (the process died parsing), abort_after_parse (it died when asked for the devices) or
describe_error (the devices did not fit in memory). ``strict_problems`` says what XLA lets through and then drops,
misreads or dies on.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardpass.sharding import Sharding, ShardingError, ShardingParseError, TupleSharding, parse_sharding

PATH = Path(__file__).parents[2] / "data" / "hlo_sharding_corpus.jsonl.gz"
ROWS: list[dict[str, Any]] = list(map(json.loads, gzip.decompress(PATH.read_bytes()).decode().splitlines()))
ACCEPTED = [row for row in ROWS if row["outcome"] in ("ok", "abort_after_parse", "describe_error")]
REFUSED = [row for row in ROWS if row not in ACCEPTED]
SOUND = [row for row in ACCEPTED if row["outcome"] != "abort_after_parse" and not row["strict_problems"]]


def test_the_corpus_is_whole() -> None:
    assert (len(ROWS), len(ACCEPTED), len(REFUSED)) == (1408, 1123, 285)


def test_what_xla_takes_is_taken_and_printed_the_same() -> None:
    wrong = []
    for row in ACCEPTED:
        text = str(parse_sharding(row["text"], strict=False))
        if text != row["canonical"]:
            wrong.append((row["text"], row["canonical"], text))
    assert wrong == []


def test_what_xla_refuses_is_refused_with_a_place() -> None:
    for row in REFUSED:
        for strict in (True, False):
            with pytest.raises(ShardingParseError) as caught:
                parse_sharding(row["text"], strict=strict)
            assert 1 <= caught.value.column <= len(row["text"]) + 1
            assert "^" in caught.value.excerpt


def test_strict_takes_what_is_sound_and_nothing_else() -> None:
    for row in SOUND:
        assert str(parse_sharding(row["text"])) == row["canonical"]
    for row in ROWS:
        if row not in SOUND:
            with pytest.raises(ShardingParseError):
                parse_sharding(row["text"])


def test_tile_dimensions_and_device_order() -> None:
    checked = 0
    for row in ACCEPTED:
        if row.get("devices") is None or row.get("kind") in ("replicated", "maximal"):
            continue
        ours = parse_sharding(row["text"], strict=False)
        assert isinstance(ours, Sharding)
        if ours.is_maximal or not str(ours).startswith("{devices"):
            continue
        if ours.notes.problems and not ours.notes.tiles:
            continue  # an iota that is none has no devices to compare
        dims, devices = ours.tile_assignment()
        assert list(dims) == row["tile_dims"], row["text"]
        assert devices.tolist() == row["devices"], row["text"]
        checked += 1
    assert checked > 500


def test_the_named_form_means_what_xla_makes_of_it() -> None:
    named = [row for row in SOUND if row.get("v2")]
    for row in named:
        ours, plain = parse_sharding(row["text"]), parse_sharding(row["v2"])
        assert ours == plain, row["text"]
        assert hash(ours) == hash(plain)
    assert len(named) > 150


def test_subgroups() -> None:
    for row in SOUND:
        ours = parse_sharding(row["text"])
        types = row.get("subgroup_types")
        if not types or isinstance(ours, TupleSharding):
            continue
        assert bool(ours.manual) == ("MANUAL" in types), row["text"]
        assert bool(ours.unreduced) == ("UNREDUCED" in types), row["text"]


def test_tuples() -> None:
    rows = [row for row in SOUND if row.get("elements") is not None]
    for row in rows:
        ours = parse_sharding(row["text"])
        assert isinstance(ours, TupleSharding)
        assert len(ours) == len(row["elements"])
    assert len(rows) > 100


def test_every_text_of_ours_is_a_fixed_point() -> None:
    for row in SOUND:
        ours = parse_sharding(row["text"])
        again = parse_sharding(str(ours))
        assert again == ours
        assert str(again) == str(ours)
        if not isinstance(ours, Sharding) or not isinstance(again, Sharding) or ours.is_manual:
            continue
        n = ours.num_devices
        if n is not None and n < 1 << 20:
            shape = [3] * len(ours.dims)
            np.testing.assert_array_equal(again.tile_offsets(shape, n), ours.tile_offsets(shape, n))


def test_a_sharding_without_meaning_prints_but_says_so_when_asked() -> None:
    ours = parse_sharding("{devices=[2,2]0,1,1,3}", strict=False)
    assert isinstance(ours, Sharding)
    assert str(ours) == "{devices=[2,2]0,1,1,3}"
    with pytest.raises(ShardingError, match="device 1 is listed 2 times"):
        ours.tile_offsets((4, 4))
