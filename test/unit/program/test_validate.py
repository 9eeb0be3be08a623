"""Whether a sharding fits its value: one finding each, with the numbers; and reading tuples for several results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from jaxlib.mlir import ir

from shardpass.diagnostics import Place, ShardpassError
from shardpass.ir.context import make_context
from shardpass.program.validate import check, read_for, uneven
from shardpass.sharding import Sharding, parse_sharding

HERE = Place("program.mlir", 3, 1)


@pytest.fixture(autouse=True)
def context() -> Iterator[Any]:
    with make_context() as made, ir.Location.unknown():
        yield made


def tensor(*shape: int) -> Any:
    return ir.RankedTensorType.get(list(shape), ir.F32Type.get())


def sharding(text: str) -> Sharding:
    found = parse_sharding(text)
    assert isinstance(found, Sharding)
    return found


def codes(text: str, kind: Any, devices: int) -> list[str]:
    found = list(check(sharding(text), kind, devices, HERE, where="argument 0", source="here"))
    assert all(d.place == HERE for d in found)
    return [d.code for d in found]


@pytest.mark.parametrize(
    "text",
    ["{replicated}", "{devices=[4,1]<=[4]}", "{devices=[2,1,2]<=[4] last_tile_dim_replicate}", "{maximal device=3}"],
)
def test_what_fits_has_no_findings(text: str) -> None:
    assert codes(text, tensor(8, 3), 4) == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{devices=[4]<=[4]}", "SP203"),  # one dimension for two
        ("{devices=[2,1]<=[2]}", "SP204"),  # two devices of four
        ("{maximal device=4}", "SP207"),  # the devices are 0 to 3
        ("{devices=[2,1,2]<=[4] last_tile_dims={unreduced}}", "SP208"),
        ("{devices=[2,1,2]<=[4] last_tile_dims={manual}}", "SP208"),
    ],
)
def test_what_does_not_fit_has_one(text: str, code: str) -> None:
    assert codes(text, tensor(8, 3), 4) == [code]


def test_uneven_dimensions_are_counted_one_by_one() -> None:
    """5 over 2: tiles of 3, 1 of 6 is padding; 3 over 2: tiles of 2, 1 of 4."""
    found = list(uneven(sharding("{devices=[2,2]<=[4]}"), tensor(5, 3), HERE))
    assert [d.code for d in found] == ["SP216", "SP216"]
    assert "tiles have size 3, and the last ones hold 1 elements" in found[0].message
    assert "tiles have size 2, and the last ones hold 1 elements" in found[1].message
    assert "17%" in found[0].remedy
    assert "25%" in found[1].remedy


def test_an_empty_tensor_wastes_nothing() -> None:
    assert list(uneven(sharding("{devices=[2,2]<=[4]}"), tensor(0, 3), HERE)) == []


def test_one_sharding_for_each_result() -> None:
    one, two = read_for("{{replicated}, {devices=[2]<=[2]}}", [tensor(4), tensor(4)], HERE)
    assert one.is_replicated
    assert two.tile_shape((4,)) == (2,)
    assert read_for("{devices=[2]<=[2]}", [tensor(4)], HERE) == [two]


def test_another_number_of_results() -> None:
    with pytest.raises(ShardpassError) as caught:
        read_for("{{replicated}, {replicated}}", [tensor(4)] * 3, HERE)
    (found,) = caught.value.diagnostics
    assert found.code == "SP210"
    assert "2 leaves" in found.message
    assert "3 results" in found.message


def test_text_that_cannot_be_read_keeps_the_parsers_words() -> None:
    with pytest.raises(ShardpassError) as caught:
        read_for("{devices=[2,2]0,1,2}", [tensor(4, 4)], HERE)
    (found,) = caught.value.diagnostics
    assert (found.code, found.place) == ("SP202", HERE)
    assert len(found.notes) == 1
    assert found.notes[0].code.startswith("SP0")


def test_the_last_device_is_one_less_than_there_are() -> None:
    assert codes("{maximal device=1}", tensor(4), 2) == []
    assert codes("{maximal device=2}", tensor(4), 2) == ["SP207"]
