"""Pictures of a sharding: every device stands in the tile that it holds, and what is left out is said."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET
from pathlib import Path

import jax
import numpy as np
import pytest
from rich.console import Console

import shardpass
from shardpass.cli.plan import main
from shardpass.report.picture import Picture, picture, shape_of
from shardpass.report.picture_grid import MOST_CELLS
from shardpass.sharding import ShardingError, parse_sharding


def printed(*renderables: object, width: int = 120) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width)
    for one in renderables:
        console.print(one)
    return out.getvalue()


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("{devices=[4,2]<=[2,4]T(1,0)}", (8, 16)),
        ("{devices=[2,1,4]<=[8] last_tile_dim_replicate}", (5, 16)),
        ("{devices=[2,2,2]7,6,5,4,3,2,1,0}", (4, 4, 4)),
        ("{devices=[64]<=[64]}", (64,)),
        ("{devices=[3]2,0,1}", (7,)),
    ],
)
def test_each_device_stands_in_its_tile(text: str, shape: tuple[int, ...]) -> None:
    drawn = picture(text, shape)
    offsets = parse_sharding(text).tile_offsets(shape)  # type: ignore[union-attr]
    cells = [cell for page in drawn.pages for row in page for cell in row]
    seen = [device for cell in cells for device in cell.devices]
    assert sorted(seen) == list(range(len(offsets)))
    for cell in cells:
        for device in cell.devices:
            assert offsets[device].tolist() == [start for start, _ in cell.part]


def test_the_terminal_shows_ranges_and_devices() -> None:
    text = printed(picture("{devices=[2,1,4]<=[8] last_tile_dim_replicate}", (5, 16)))
    for part in ("tiles of 3x16", "dim 0 0:3", "dim 0 3:5", "0 1 2 3", "4 5 6 7", "dimension 1 not split"):
        assert part in text


def test_the_terminal_of_64_devices_fits_80_columns() -> None:
    for text, shape in (("{devices=[8,8]<=[64]}", (64, 64)), ("{devices=[64]<=[64]}", (64,))):
        lines = printed(picture(text, shape), width=110).splitlines()
        assert all(len(line) <= 110 for line in lines)
        words = " ".join(lines).replace("│", " ").split()
        assert all(str(device) in words for device in range(64))


def test_what_is_left_out_is_said() -> None:
    drawn = picture("{devices=[32,2]<=[64]}", (64, 64))
    assert len(drawn.pages[0]) == MOST_CELLS
    assert "16 more rows of dimension 0 are not drawn" in drawn.left_out
    deep = picture("{devices=[2,2,2,2]<=[16]}", (2, 2, 2, 2))
    assert "dimension 3 is split in 2: its first tile is drawn" in deep.left_out
    sums = picture("{devices=[2,4]<=[8] last_tile_dims={unreduced}}", (4,))
    assert any(note.startswith("partial sums over") for note in sums.left_out)


def test_many_copies_are_named_in_short() -> None:
    cell = picture("{devices=[4,16]<=[64] last_tile_dim_replicate}", (60,)).pages[0][0][1]
    assert cell.names == "16..31"
    scattered = picture("{devices=[2,16]<=[16,2]T(1,0) last_tile_dim_replicate}", (60,)).pages[0][0][0]
    assert scattered.names == "0 2 4 6 8 10 +10"


@pytest.mark.parametrize("text", ["{replicated}", "{maximal device=3}", "{manual}", "{unreduced}"])
def test_shardings_without_tiles(text: str) -> None:
    drawn = picture(text, (4, 4))
    (((cell,),),) = drawn.pages
    assert cell.names == ("3" if "3" in text else "all")


def test_unknown_cannot_be_drawn() -> None:
    with pytest.raises(ShardingError, match="placeholder"):
        picture("{unknown}", (4,))


def test_svg_is_well_formed_and_has_a_rectangle_a_tile() -> None:
    root = ET.fromstring(picture("{devices=[4,2]<=[8]}", (8, 16)).svg())
    spaces = {"s": "http://www.w3.org/2000/svg"}
    assert len(root.findall("s:rect", spaces)) == 8
    colours = {rect.attrib["fill"] for rect in root.findall("s:rect", spaces)}
    assert len(colours) == 8
    words = {text.text for text in root.findall("s:text", spaces)}
    assert {str(device) for device in range(8)} <= words


def test_notebooks_show_the_drawing() -> None:
    drawn = picture("{devices=[2,2]<=[4]}", (4, 4))
    assert drawn._repr_svg_() == drawn.svg()


def test_a_tuple_is_drawn_element_by_element(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["{{devices=[2]<=[2]}, {replicated}}", "f32[4]", "--show", "--svg", "p.svg"]) == 0
    assert capsys.readouterr().out.count("tiles of") == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p-0.svg", "p-1.svg"]


@pytest.mark.parametrize(
    ("text", "shape"),
    [("f32[8,16]", (8, 16)), ("tensor<8x16xf32>", (8, 16)), ("f32[]", ()), ("tensor<f32>", ()), ("bf16[ 4 ]", (4,))],
)
def test_types(text: str, shape: tuple[int, ...]) -> None:
    assert shape_of(text) == shape


@pytest.mark.parametrize("text", ["", "f32", "f32[a]", "f32[4", "8x16"])
def test_no_type(text: str) -> None:
    with pytest.raises(ShardingError, match="an array type"):
        shape_of(text)


def test_a_file_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["{replicated}", "f32[4]", "--show", "--svg", str(tmp_path / "no" / "p.svg")]) == 1
    assert "cannot write this file" in capsys.readouterr().err


def test_rank_is_checked() -> None:
    with pytest.raises(ShardingError, match="splits 2 dimensions, but the array has 1"):
        picture("{devices=[2,2]<=[4]}", (4,))


def test_picture_is_a_value() -> None:
    assert isinstance(picture("{devices=[2]<=[2]}", (4,)), Picture)
    assert picture("{devices=[2]<=[2]}", (4,)) == picture("{devices=[2]0,1}", (4,))


def test_what_draw_takes() -> None:
    """An array, a sharding of JAX, a spec with its mesh, and text: one picture, which prints itself."""
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    spec = jax.P("x", "y")
    sharding = jax.sharding.NamedSharding(mesh, spec)
    x = jax.device_put(np.zeros((8, 6), np.float32), sharding)
    drawn = shardpass.draw(x)
    assert drawn.pages == picture("{devices=[2,2]<=[4]}", (8, 6)).pages
    for other in (shardpass.draw(sharding, (8, 6)), shardpass.draw(spec, (8, 6), mesh=mesh)):
        assert other.pages == drawn.pages
    assert str(drawn).splitlines() == printed(drawn).rstrip().splitlines()
    with pytest.raises(TypeError, match="the shape of the array"):
        shardpass.draw(sharding)
