"""The pictures: redistributions and layouts, held to tiles counted by hand and to JAX's, and the plot of memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from support.report_page import Opened, click, drawn, known, texts, write

from shardpass.cli.explain import explain
from shardpass.report.explanation import Explanation
from shardpass.report.rows import Row

# Rows over both axes become rows over model and columns over data: two exchanges. Device 2 * d + m is at data d and
# model m.
TWO_STEPS = b"""
module attributes {mhlo.num_partitions = 8 : i32, shardpass.mesh = "mesh['data'=4,'model'=2]"} {
  func.func @main(%a: tensor<256x128xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"})
      -> (tensor<256x128xf32> {mhlo.sharding = "{devices=[2,4]<=[4,2]T(1,0)}"}) {
    %0 = stablehlo.add %a, %a : tensor<256x128xf32>
    return %0 : tensor<256x128xf32>
  }
}
"""


def test_a_row_shows_its_redistribution(opened: Opened) -> None:
    """Before, 32 rows each; then rows 0:32, 64:96, ... of columns 0:32; then rows 0:128 of these."""
    page = opened(explain(TWO_STEPS, "two.mlir", effort=0))
    click(page, "tr.row")
    pictures = drawn(page, "tr.detail svg")
    assert len(pictures) == 3
    before, between, after = ([text for text in some if "dimension" not in text] for some in pictures)
    assert before == [f"{32 * d}:{32 * d + 32}" for d in range(8)] + [str(d) for d in range(8)]
    columns = ["0:32", "32:64", "64:96", "96:128"]
    devices = [str(2 * data + model) for model in (0, 1) for data in range(4)]
    assert between == [*columns, "0:32 64:96 128:160 192:224", "32:64 96:128 160:192 224:256", *devices]
    # which rows of the array a device has at the end is for its coordinate along model: the second exchange
    assert after == [*columns, "0:128", "128:256", *devices]
    assert texts(page, "tr.detail .arrow strong") == ["all_to_all over data12.0 KiB"]  # this row's own step
    assert [text[:10] for text in texts(page, "tr.detail .arrow")] == ["all_to_all"] * 2


def test_a_value_shows_its_layout_on_the_mesh(opened: Opened) -> None:
    page = opened(explain(TWO_STEPS, "two.mlir", effort=0))
    click(page, "#program button.line", 1)
    click(page, ".values .value-row", 0)
    array, mesh = drawn(page, ".value-detail svg")
    assert array[1:] == [f"{32 * d}:{32 * d + 32}" for d in range(8)] + [str(d) for d in range(8)]
    assert mesh[2:] == [text for d in range(8) for text in (str(d), f"{32 * d}:{32 * d + 32}")]
    strips = page.execute_script(
        "return [...document.querySelectorAll('.value-detail svg title')].map(t => t.textContent)"
    )
    assert strips == [f"data = {k}" for k in range(4)] + [f"model = {k % 2}" for k in range(8)]
    assert "256/data/model" in texts(page, ".value-row")[0]


LAYOUTS = [
    ((8, 12), (("x",), ("y",))),
    ((12, 5), (("y", "x"), ())),
    ((24,), (("x", "z", "y"),)),
    ((4, 6, 8), ((), ("y",), ("x", "z"))),
    ((12, 6), ((), ("z", "y"))),
]


def test_layouts_are_those_of_jax(opened: Opened) -> None:
    """Of meshes of three axes, by JAX's map from devices to indices."""
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    sizes = (("x", 2), ("y", 3), ("z", 2))
    mesh = Mesh(np.array(jax.devices("cpu")[:12]).reshape(2, 3, 2), [name for name, _ in sizes])
    row = Row("all_gather", "x", 2, 10)
    page = opened(
        Explanation(
            "layouts",
            12,
            sizes,
            tuple(
                replace(
                    row, array=f"a{k}", type=f"f32[{','.join(map(str, shape))}]", source_dims=dims, target_dims=dims
                )
                for k, (shape, dims) in enumerate(LAYOUTS)
            ),
        )
    )
    for number, (shape, dims) in enumerate(LAYOUTS):
        click(page, "tr.row", number)
        picture = drawn(page, "tr.detail svg")[2 * number]
        sharding = NamedSharding(mesh, PartitionSpec(*(axes or None for axes in dims)))
        holders: dict[tuple[str, ...], list[int]] = {}
        for place, device in enumerate(mesh.devices.flat):
            index = sharding.devices_indices_map(shape)[device]
            tile = tuple(f"{part.start or 0}:{part.stop or size}" for part, size in zip(index, shape, strict=True))
            holders.setdefault(tile, []).append(place)
        split = [k for k, axes in enumerate(dims) if axes]
        parts = [sorted({tile[k] for tile in holders}, key=lambda part: int(part.split(":")[0])) for k in split]
        heads = parts[0] if len(parts) == 1 else [*parts[1], *parts[0]]
        order = sorted(holders, key=lambda tile: [int(part.split(":")[0]) for part in tile])
        assert picture[1:] == [*heads, *(runs(holders[tile]) for tile in order)]


def runs(numbers: list[int]) -> str:
    """``0-2 5``, runs of two with a blank between."""
    out: list[list[int]] = []
    for number in sorted(numbers):
        if out and out[-1][-1] == number - 1:
            out[-1].append(number)
        else:
            out.append([number])
    return " ".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else " ".join(map(str, run)) for run in out)


def test_what_no_axis_splits_is_said_in_words(opened: Opened, step: Explanation) -> None:
    page = opened(step)
    click(page, "#program button.line")
    values = texts(page, ".value-row")
    click(page, ".value-row", next(k for k, text in enumerate(values) if "P(None, 'model')" in text))
    assert "the same on all devices along data (4)" in texts(page, ".value-detail figcaption")[0]


def test_the_plot_has_its_titles_and_the_peak(opened: Opened, step: Explanation) -> None:
    from selenium.webdriver import ActionChains

    page, facts = opened(step), known(step)
    words = " ".join(texts(page, ".plot text"))
    peak = f"peak {facts['memory']['total'] / 1024:.1f} KiB at mlp.py:"
    for part in (
        "Bytes alive on a device",
        "Bytes received by a device",
        "lower is better",
        "op, in the program's order",
        peak,
    ):
        assert part in words
    ActionChains(page).move_to_element(page.find_element("css selector", ".plot svg")).perform()
    assert texts(page, ".told")[0].startswith("op ")
    write(page, "#filter", "no such words")
    click(page, "#fold-all")
    click(page, ".plot .bar")  # whatever is folded or filtered
    assert len(texts(page, "tr.detail")) == 1
