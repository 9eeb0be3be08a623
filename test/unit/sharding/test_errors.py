"""Errors that teach: the code, the place, what was expected, and the remedy where one is likely."""

from __future__ import annotations

import pytest

from shardpass.diagnostics import table_sharding
from shardpass.sharding import AxisRef, Mesh, Sharding, ShardingError, ShardingParseError, parse_sdy, parse_sharding

TEXTS = [
    # text, code, column, in the message, in the help
    (
        "{devices=[4,2]<=[8] last_tile_dim_replicae}",
        "SP001",
        21,
        "an attribute",
        "did you mean last_tile_dim_replicate?",
    ),
    ("{devices=[4,2]<=[8], last_tile_dim_replicate}", "SP001", 20, "found ','", "blanks, not commas"),
    ("{devices = [2]0,1}", "SP001", 2, "found 'devices'", "no blank before '='"),
    ("{replicated", "SP001", 12, "the end of the text", "close the brace"),
    ("replicated", "SP001", 1, "expected '{'", "a sharding between braces"),
    ("", "SP001", 1, "expected '{'", "a sharding between braces"),
    ("{mesh[a=2], [{a}]}", "SP001", 7, "a quoted name", "names of axes: 'a'"),
    ("{devices=[2]0,1,}", "SP001", 17, "expected an integer", ""),
    ("{devices=[2]0 1}", "SP001", 13, "',' between integers", ""),
    ("{devices=[4,2]<=[2,4]}", "SP001", 22, "T(..)", "T(0,1)"),
    ("{devices=[8]<=[8]T(0)}", "SP001", 18, "found 'T'", "remove the transpose"),
    ("{maximal device=18446744073709551616}", "SP002", 17, "64 bits", "9223372036854775807"),
    ("{devices=[4,2]<=[16]}", "SP003", 18, "8 tiles but the iota lists 16", "devices=[4,2,2] with <=[16]"),
    ("{devices=[2,2]0,1,2,3,4,5,6,7}", "SP004", 15, "4 tiles but 8 devices", "last_tile_dim_replicate"),
    ("{devices=[4,2]0,1,2,3}", "SP004", 15, "8 tiles but 4 devices", "divide the tile counts by 2"),
    ("{devices=[2,2]0,1,1,3}", "SP005", 19, "device 1 is listed 2 times", "once"),
    ("{devices=[2,2]0,1,9,3}", "SP006", 19, "device 2 is missing, device 9", "counted from 0"),
    ("{devices=[2,0]0,1}", "SP007", 11, "tile count 0 of dimension 1", "has the tile count 1"),
    ("{devices=[1]<=[0]}", "SP008", 16, "size 0", ""),
    ("{devices=[3,20]<=[3,0]T(0,1) last_tile_dim_replicate}", "SP008", 19, "size 0", ""),
    ("{devices=[4,2]<=[2,4]T(0,0)}", "SP009", 18, "not a permutation", ""),
    ("{devices=[4,2]<=[2,4]T(1,2)}", "SP009", 24, "T(1,2) is not a permutation of 0 to 1", ""),
    ("{devices=[4,1]<=[2,2,1]T(1,2,2) last_tile_dim_replicate}", "SP009", 18, "T(1,2,2) is not a permutation", ""),
    ("{devices=[4,2]<=[2,4]T(1,0,1)}", "SP010", 18, "2 dimensions but T(..) names 3", ""),
    ("{manual devices=[2]0,1}", "SP011", 2, "{manual} names no devices", "leave out"),
    ("{shard_as 3}", "SP011", 2, "no tile counts", "write replicated"),
    ("{maximal}", "SP011", 2, "maximal needs one device, and has 0", "{maximal device=N}"),
    ("{devices=[1]0}", "SP011", 2, "more than one device", "{maximal device=N}"),
    ('{replicated metadata={bogus="a"}}', "SP011", 23, "no metadata field bogus", "op_name"),
    ("{mesh['x'=2], [{'z'}]}", "SP021", 17, "no axis 'z'", ""),
    ("{mesh['data'=2], [{'dat'}]}", "SP021", 20, "no axis 'dat'", "did you mean 'data'?"),
    ("{mesh['x'=4], [{'x':(3)2}]}", "SP022", 17, "does not divide 4", ""),
    ("{mesh['x'=2], [{'x'}, {'x'}]}", "SP023", 17, "'x' is used twice: by dimension 0 and by dimension 1", ""),
    ("{mesh['a'=2,'b'=2], [{}], manual={'b','a'}}", "SP024", 23, "order of the mesh", "manual={'a', 'b'}"),
    ("{mesh['x'=4], [{'x':(1)2,'x':(2)2}]}", "SP025", 17, "neighbouring parts", "write 'x'"),
]


@pytest.mark.parametrize(("text", "code", "column", "message", "remedy"), TEXTS)
def test_texts(text: str, code: str, column: int, message: str, remedy: str) -> None:
    with pytest.raises(ShardingParseError) as caught:
        parse_sharding(text)
    first = caught.value.diagnostics[0]
    assert (first.code, message in first.message, remedy in first.remedy) == (code, True, True), str(caught.value)
    if code != "SP024":
        assert caught.value.column == column
    line, carets = caught.value.excerpt.split("\n")
    assert line == text
    assert carets.index("^") == caught.value.column - 1


def test_the_line_counts_too() -> None:
    with pytest.raises(ShardingParseError) as caught:
        parse_sharding("{devices=[2]0,1\n   bogus}")
    assert (caught.value.line, caught.value.column) == (2, 4)
    assert caught.value.excerpt == "   bogus}\n   ^^^^^"


def test_a_long_line_is_cut_around_the_caret() -> None:
    text = "{devices=[100]" + ",".join(map(str, [*range(50), 7, *range(51, 100)])) + "}"
    with pytest.raises(ShardingParseError) as caught:
        parse_sharding(text)
    line, carets = caught.value.excerpt.split("\n")
    assert len(line) < 90
    assert line[carets.index("^")] == "7"
    assert text[caught.value.column - 1] == "7"


MESH = Mesh((("x", 4), ("y", 2)))
CALLS = [
    (lambda: Mesh((("x", 2), ("x", 2))), "SP020", "two axes are called 'x'"),
    (lambda: Mesh((("x", 0),)), "SP020", "the size 0"),
    (lambda: Mesh((("x", 2),), (0, 0)), "SP020", "not a permutation"),
    (lambda: Mesh((("x", 2),), (0, 1, 2)), "SP020", "2 places but 3 devices"),
    (lambda: Sharding.tiled(MESH, [["z"]]), "SP021", "its axes are 'x', 'y'"),
    (lambda: Sharding.tiled(MESH, [[AxisRef("x", 3, 2)]]), "SP022", "does not divide 4"),
    (lambda: Sharding.tiled(MESH, [["x"], ["x"]]), "SP023", "used twice"),
    (lambda: Sharding.tiled(MESH, [[AxisRef("x", 1, 2)], ["x"]]), "SP023", "overlaps"),
    (lambda: Sharding.tiled(MESH, [["x"]]).tile_shape((4, 4)), "SP030", "splits 1 dimensions, but the array has 2"),
    (lambda: Sharding.unknown().tile_shape((4,)), "SP031", "placeholder"),
    (lambda: Sharding.manual_().tile_offsets((4,)), "SP031", "{manual} assigns no tiles"),
    (lambda: Sharding.maximal(3).tile_offsets((4,)), "SP031", "{maximal device=3}"),
    (lambda: Sharding.tiled(MESH, [["x"]]).tile_offsets((4,), 4), "SP032", "over 8 devices, not 4"),
    (lambda: parse_sdy('#sdy.sharding<@n, [{"x"}]>', {"m": MESH}), "SP020", "no mesh @n"),
    (lambda: parse_sdy('#sdy.sharding<@m, [{"z"}]>', {"m": MESH}), "SP021", "no axis 'z'"),
]


@pytest.mark.parametrize(("call", "code", "message"), CALLS)
def test_calls(call, code: str, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ShardingError) as caught:
        call()
    assert caught.value.code == code
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("", 1), ("<@m>", 4), ('<@m, [{"x"}', 12), ('<@m, [{x}]>', 8), ('<@m, [{?, "x"}]>', 11), ('<@m, [{"x"}]> x', 15),  # noqa: E501
        ('<@m, [{"x":2}]>', 12), ("<@m, [], other={}>", 10), ("<m, []>", 2),
    ],
)  # fmt: skip
def test_sdy_texts(text: str, column: int) -> None:
    with pytest.raises(ShardingParseError) as caught:
        parse_sdy(text, {"m": MESH})
    assert caught.value.column == column


def test_codes_of_texts_have_a_place_and_others_do_not() -> None:
    assert {table_sharding.SYNTAX.exception, table_sharding.TILE_SIZE.exception} == {ShardingParseError}
    assert {table_sharding.MESH.exception, table_sharding.RANK.exception} == {ShardingError}


@pytest.mark.parametrize(
    "text",
    [
        "{devices=[12,/*c*/2,/*/1]" + ",".join(f"/*c*/{k}" for k in range(60)) + "}",
        "{devices=[4," + "//x 1\n" * 60 + "x]0,1}",
        "{devices=[2]" + "1//1 \n," * 60 + "x}",
        "{mesh['a'=2]" + ",/*c*/" * 60 + "[{'a'}]}",
        "{mesh['" + "\\a" * 5000,
    ],
)
def test_refusing_takes_no_longer_for_many_comments(text: str) -> None:
    """With ambiguous comments these would take 2**60 steps: the test would not end."""
    with pytest.raises(ShardingParseError):
        parse_sharding(text)
