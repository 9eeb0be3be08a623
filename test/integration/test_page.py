"""The page of ``shardpass-explain --html`` in a browser: its numbers, sorting, filtering, folding, pictures, colours.

Numbers are held to the report's JSON, pictures to tiles counted by hand. Chromium without a window shows the page; the
tests are skipped, and say why, where there is none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardpass
from shardpass.cli.explain import explain
from shardpass.diagnostics import Place
from shardpass.report.explanation import Explanation
from shardpass.report.findings import Figures, Finding, Findings, Surplus
from shardpass.report.profile import Measured
from shardpass.report.rows import ConstraintFact, HintFact, Row
from tools.docs import browser as chromium

EXAMPLES = Path(__file__).parents[2] / "examples"
EVIL = "</script><img src=x onerror='window.evil=1'>\u202e\"'`"

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
# A loop whose length the program is told when it runs: its body sums over a dimension that is split.
LOOP = b"""
module attributes {mhlo.num_partitions = 4 : i32, shardpass.mesh = "mesh['x'=4]"} {
  func.func @main(%n: tensor<i32>, %a: tensor<16x16xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"})
      -> tensor<16x16xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %r:2 = stablehlo.while(%i = %zero, %x = %a) : tensor<i32>, tensor<16x16xf32>
    cond {
      %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      %y = stablehlo.dot_general %x, %a, contracting_dims = [1] x [1]
          : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
      stablehlo.return %j, %y : tensor<i32>, tensor<16x16xf32>
    }
    return %r#1 : tensor<16x16xf32>
  }
}
"""

Opened = Callable[[Explanation], Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if why := chromium.missing():
        pytest.skip(f"the page is not tried in a browser: {why}")
    with chromium.started(1400, 900) as found:
        yield found


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Opened]:
    """Shows the page of a report; at the end no script may have complained."""

    def show(found: Explanation) -> Any:
        found.html(tmp_path / "page.html")
        browser.get((tmp_path / "page.html").as_uri())
        return browser

    chromium.size(browser, 1400, 900)
    chromium.scheme(browser, "light")
    browser.get_log("browser")
    yield show
    assert browser.get_log("browser") == []


@pytest.fixture(scope="module")
def step() -> Explanation:
    """A training step on 4 x 2 devices, quoted from examples/programs."""
    file = EXAMPLES / "mlp_train_step.mlir"
    return explain(file.read_bytes(), str(file), effort=0, folders=[EXAMPLES])


def many(count: int) -> Explanation:
    """Rows that none is like another, ten at a line."""
    rows = (Row("all_gather", "x", 4, k + 1, array=f"a{k}b", place=Place("m.py", k // 10 + 1, 1)) for k in range(count))
    return Explanation("many", 4, (("x", 4),), tuple(rows))


def texts(browser: Any, css: str) -> list[str]:
    found: list[str] = browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)", css
    )
    return found


def click(browser: Any, css: str, number: int = 0) -> None:
    browser.execute_script(
        "document.querySelectorAll(arguments[0])[arguments[1]].dispatchEvent(new MouseEvent('click', {bubbles: true}))",
        css,
        number,
    )


def choose(browser: Any, by: str) -> None:
    browser.execute_script(
        "const s = document.getElementById('group-by'); s.value = arguments[0]; s.dispatchEvent(new Event('change'))",
        by,
    )


def write(browser: Any, css: str, words: str) -> None:
    browser.execute_script(
        "const f = document.querySelector(arguments[0]); f.value = arguments[1]; f.dispatchEvent(new Event('input'))",
        css,
        words,
    )


def column(browser: Any, attribute: str) -> list[float]:
    """A number of each collective's row, from top to bottom."""
    found: list[float] = browser.execute_script(
        "return [...document.querySelectorAll(`tr.row [data-${arguments[0]}]`)].map(e => +e.dataset[arguments[0]])",
        attribute,
    )
    return found


def drawn(browser: Any, css: str) -> list[list[str]]:
    """The texts of each picture."""
    found: list[list[str]] = browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])]"
        ".map(s => [...s.querySelectorAll('text')].map(t => t.textContent))",
        css,
    )
    return found


def known(found: Explanation) -> Any:
    return json.loads(found.json())


# ---------------------------------------------------------------- numbers


def test_the_headline_says_what_json_says(opened: Opened, step: Explanation) -> None:
    page, facts = opened(step), known(step)
    assert texts(page, "#card-bytes .value") == [f"{facts['total_bytes_received'] / 1024:.1f} KiB"]
    assert texts(page, "#card-time .value") == [f"{facts['seconds'] * 1e6:.3g} \u00b5s"]
    assert texts(page, "#card-memory .value") == [f"{facts['memory']['total'] / 1024:.1f} KiB"]
    assert texts(page, "#card-runs .value") == [str(sum(one["times"] for one in facts["collectives"]))]
    assert all("is better" in note for note in texts(page, ".card .quiet:last-child, .axis-title"))


def test_rows_and_bars_have_the_bytes_of_json(opened: Opened, step: Explanation) -> None:
    page, facts = opened(step), known(step)
    choose(page, "none")
    assert sum(column(page, "bytes")) == facts["total_bytes_received"]
    assert sum(column(page, "seconds")) == pytest.approx(facts["seconds"])
    for by in ("line", "axis", "kind", "array"):
        choose(page, by)
        groups = page.execute_script(
            "return [...document.querySelectorAll('tr.group [data-bytes]')].map(e => +e.dataset.bytes)"
        )
        assert sum(groups) == facts["total_bytes_received"]
        assert groups == sorted(groups, reverse=True)
    back = sum(one["bytes_received"] for one in facts["collectives"] if one["direction"] == "backward")
    assert texts(page, ".chart:not(#balance) .bars .number")[1].startswith(f"{back / 1024:.1f} KiB, ")


def test_loops_of_unknown_length_are_told(opened: Opened) -> None:
    found = replace(explain(LOOP, "loop.mlir", effort=0), trips=10)
    page, facts = opened(found), known(found)
    assert facts["total_bytes_received_at_most"] > facts["total_bytes_received"] > 0
    low, high = facts["total_bytes_received"], facts["total_bytes_received_at_most"]
    sizes = [f"{n} B" if n < 1024 else f"{n / 1024:.1f} KiB" for n in (low, high)]
    assert texts(page, "#card-bytes .value") == [" to ".join(sizes)]
    assert "trips are not known" in texts(page, "main .bad")[0]
    assert "in a loop or branch" in texts(page, "#program")[0]


# ---------------------------------------------------------------- what costs most, and what mends it


def test_the_line_that_receives_most_is_the_headline(opened: Opened, step: Explanation) -> None:
    """Where no edit is known; and the page says who made it of what."""
    page, facts = opened(replace(step, command="shardpass explain step.mlir")), known(step)
    (sentence,) = texts(page, "#worst .sentence")
    first = facts["lines"][0]
    assert sentence.startswith(f"Most is received at mlp.py:{first['place'].rsplit(':', 1)[1]}: ")
    assert f"{first['bytes_received'] / 1024:.1f} KiB of {facts['total_bytes_received'] / 1024:.1f} KiB" in sentence
    assert "partitioned by shardpass" in texts(page, "#head")[0]
    (made,) = texts(page, "#made")
    assert made == f"shardpass {shardpass.__version__}, machine {facts['profile']}: shardpass explain step.mlir"
    assert texts(page, "#remedies") == []


def test_the_first_edit_is_the_headline(opened: Opened, step: Explanation) -> None:
    """Two edits: the first stands on top as a diff, the second under the remedies, with all else that saves."""
    before, after = Figures(8192, 100, 10, 1e-3), Figures(4096, 90, 10, 1e-4)
    edits = tuple(
        Finding("drop", f"the constraint of {name} costs", (), (f"drop {name}",), before, after, diff, Place("m.py", 6))
        for name, diff in (("a", "--- m.py\n+++ m.py\n@@ -6 +6 @@\n-x\n+y\n"), ("b", ""))
    )
    found = replace(
        step,
        find_findings=lambda: Findings(edits, (Surplus(Place("m.py", 9), 2048, 1024),)),
        find_constraints=lambda: (ConstraintFact(Place("m.py", 7), "P()", "f32[8]", 3072, 2048),),
        hints=(),
        partitioner="xla",
    )
    page = opened(found)
    assert texts(page, "#worst .sentence") == ["m.py:6: the constraint of a costs"]
    assert [text.strip() for text in texts(page, "#worst .edit.gone, #worst .edit.come")] == ["-x", "+y"]
    assert texts(page, "#worst > p.quiet") == [
        "received 8.0 KiB \u2192 4.0 KiB, step 1 ms \u2192 100 \u00b5s, as compiled"
    ]
    assert texts(page, "#findings li > p:first-child")[1] == "m.py:6: the constraint of b costs"
    assert texts(page, "#findings pre") == ["drop b\n"]
    told = texts(page, "#remedies ul li")
    assert told == [
        "m.py:9: sends 2.0 KiB; shardpass would send 1.0 KiB",
        "m.py:7: 3.0 KiB to bring f32[8] to P() and on; saves 2.0 KiB if it did not hold",
    ]
    assert "No single annotation was found that saves." in texts(page, "#remedies p")
    assert "partitioned by XLA" in texts(page, "#head")[0]


def test_what_can_be_hidden_is_a_column_and_a_picture(opened: Opened, step: Explanation) -> None:
    page, facts = opened(step), known(step)
    plan = facts["schedule"]
    choose(page, "none")
    assert sum(column(page, "exposed")) == pytest.approx(sum(one["exposed_seconds"] for one in facts["collectives"]))
    assert texts(page, "#card-step .value") == [f"{plan['seconds'] * 1e6:.3g} \u00b5s"]
    tracks = page.execute_script("return [...document.querySelectorAll('#schedule svg text')].map(e => e.textContent)")
    used = dict.fromkeys(track for span in plan["spans"] for track in span["tracks"])
    assert tracks[: len(used)] == ["compute", *(track for track in used if track != "compute")]
    sent = sum(len(one["tracks"]) for one in plan["spans"] if one["collectives"] and one["end"] > one["start"])
    assert len(texts(page, "#schedule svg .bar")) == sent
    ends = page.execute_script(
        "const all = [...document.querySelectorAll('#schedule svg .work, #schedule svg .bar')].map(e => e.getBBox());"
        "const box = document.querySelector('#schedule svg .shade').getBBox();"
        "return [Math.max(...all.map(b => b.x + b.width)) - box.x, box.width, Math.min(...all.map(b => b.x)) - box.x]"
    )
    assert ends[0] == pytest.approx(ends[1], abs=2)
    assert ends[2] == pytest.approx(0, abs=1)
    click(page, "#schedule svg .bar")
    assert len(texts(page, "tr.detail")) == 1
    assert len(texts(page, "#balance .bars .track")) == 2


def test_measured_times_are_a_column(opened: Opened, step: Explanation) -> None:
    """Where a profile was joined: a second for the first row, two for the second, and so on; none for the last."""
    count = len(step.rows)
    times = (*(float(number + 1) for number in range(count - 1)), None)
    page = opened(replace(step, measured=Measured(times, "a.xplane.pb")))
    assert "measured" in texts(page, "th")
    choose(page, "none")
    assert sum(column(page, "measured")) == pytest.approx(sum(range(count)))
    assert "measured" not in texts(opened(step), "th")


def test_one_group_stands_open(opened: Opened, step: Explanation) -> None:
    page = opened(step)
    states = page.execute_script(
        "return [...document.querySelectorAll('tr.group .fold')].map(e => e.getAttribute('aria-expanded'))"
    )
    assert states == ["true", *["false"] * (len(step.by_line()) - 1)]


# ---------------------------------------------------------------- the table


@pytest.mark.parametrize(("head", "attribute"), [(0, "bytes"), (1, "seconds"), (2, "exposed")])
def test_columns_sort_both_ways(opened: Opened, step: Explanation, head: int, attribute: str) -> None:
    page = opened(step)
    choose(page, "none")
    state = "return document.querySelectorAll('th')[arguments[0]].getAttribute('aria-sort')"
    if head:
        click(page, "th button", head)
    assert page.execute_script(state, head) == "descending"
    down = column(page, attribute)
    assert down == sorted(down, reverse=True)
    assert len(set(down)) > 1
    click(page, "th button", head)
    assert page.execute_script(state, head) == "ascending"
    assert column(page, attribute) == sorted(down)


def test_groups_stand_in_the_order_of_the_column(opened: Opened, step: Explanation) -> None:
    page = opened(step)
    click(page, "th button", 8)
    lines = [int(text.rsplit(":", 1)[1]) for text in texts(page, "tr.group .fold")]
    assert lines == sorted(lines)
    assert len(lines) == len(step.by_line())


def test_the_filter_hides_what_lacks_its_words(opened: Opened, step: Explanation) -> None:
    page, facts = opened(step), known(step)
    choose(page, "none")
    write(page, "#filter", "ALL_gather  backward")
    kept = [o for o in facts["collectives"] if (o["kind"], o["direction"]) == ("all_gather", "backward")]
    assert 0 < len(kept) < len(facts["collectives"])
    assert set(texts(page, "tr.row .fold")) == {"all_gather"}
    assert sum(column(page, "bytes")) == sum(one["bytes_received"] for one in kept)
    write(page, "#filter", "no such words")
    assert column(page, "bytes") == []
    write(page, "#filter", "")
    assert sum(column(page, "bytes")) == facts["total_bytes_received"]


def test_groups_fold(opened: Opened, step: Explanation) -> None:
    page = opened(step)
    first = len(step.by_line()[0].folded)
    before = len(column(page, "bytes"))
    click(page, "tr.group")
    assert len(column(page, "bytes")) == before - first
    click(page, "tr.group .fold")
    assert len(column(page, "bytes")) == before
    click(page, "#fold-all")
    assert len(column(page, "bytes")) == sum(len(group.folded) for group in step.by_line())
    click(page, "#fold-all")
    assert column(page, "bytes") == []


def test_a_line_that_a_library_holds_is_a_tree(opened: Opened) -> None:
    """Of 1,000 bytes 900 at fit's line: 600 in a.py:1, of these 400 in scope head; 200 in a.py:5, 100 in itself."""
    fit, own = Place("train.py", 3, 1), Place("train.py", 9, 1)
    a, b = Place("lib/a.py", 1), Place("lib/a.py", 5)
    sizes = [(400, fit, (a, "head")), (200, fit, (a, "tail")), (200, fit, (b,)), (100, fit, ()), (100, own, ())]
    rows = tuple(Row("all_gather", "x", 4, size, place=place, path=path) for size, place, path in sizes)
    page = opened(Explanation("train", 4, (("x", 4),), rows))
    shown = [("train.py:3", 900), ("a.py:1", 600), ("a.py:5", 200), ("train.py:3", 100), ("train.py:9", 100)]
    assert texts(page, "tr.group .fold") == [name for name, _ in shown[:2]] + ["head", "tail"] + [
        n for n, _ in shown[2:]
    ]
    assert column(page, "bytes") == [400]  # of each level the group with most stands open
    click(page, "tr.group", 1)  # a.py:1
    assert texts(page, "tr.group .fold") == [name for name, _ in shown]
    assert column(page, "bytes") == []
    click(page, "tr.group", 2)  # a.py:5
    assert column(page, "bytes") == [200]
    click(page, "tr.group", 0)
    assert column(page, "bytes") == []
    click(page, "#fold-all")
    assert column(page, "bytes") == [400, 200, 200, 100, 100]
    write(page, "#filter", "a.py:5")
    assert texts(page, "tr.group .fold") == ["train.py:3", "a.py:5"]
    assert column(page, "bytes") == [200]


def test_keys_are_enough(opened: Opened, step: Explanation) -> None:
    from selenium.webdriver.common.keys import Keys

    page = opened(step)
    head = page.find_elements("css selector", "th button")[1]
    head.send_keys(Keys.ENTER)
    assert page.execute_script("return document.activeElement.textContent") == "time"  # kept where all is drawn anew
    assert page.find_element("css selector", "th:nth-child(2)").get_attribute("aria-sort") == "descending"
    page.find_element("css selector", "tr.row .fold").send_keys(Keys.SPACE)
    assert page.find_element("css selector", "tr.row .fold").get_attribute("aria-expanded") == "true"
    assert len(texts(page, "tr.detail")) == 1


def test_many_rows_are_no_elements_until_they_are_asked_for(opened: Opened) -> None:
    page = opened(many(5000))
    assert len(texts(page, "tbody tr")) <= 300
    choose(page, "none")
    assert len(texts(page, "tbody tr")) == 300
    click(page, "#more")
    assert len(texts(page, "tbody tr")) == 1200
    write(page, "#filter", "a4999b")
    assert column(page, "bytes") == [5000]


# ---------------------------------------------------------------- pictures


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


def test_hints_and_a_limit_are_shown(opened: Opened, step: Explanation) -> None:
    hint = HintFact("line", "h", "P('data')", "P()", Place("m.py", 3, 1), 4096, 1024, 0)
    assert step.memory is not None
    page = opened(replace(step, hints=(hint,), memory_limit=step.memory.total - 1024))
    assert "m.py:3: h is P(); with_sharding_constraint(h, P('data')) saves 3.0 KiB of 4.0 KiB" in texts(page, "li")
    assert "1.0 KiB too much" in texts(page, "main .bad")[0]
    assert any(text.startswith("limit ") for text in texts(page, ".plot text"))


IN_TURN = b"""
module attributes {mhlo.num_partitions = 4 : i32, shardpass.mesh = "mesh['x'=4]"} {
  func.func @main(%x: tensor<256x1024xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"},
                  %w: tensor<1024x1024xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<256x1024xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<256x1024xf32>, tensor<1024x1024xf32>) -> tensor<256x1024xf32>
    return %0 : tensor<256x1024xf32>
  }
}
"""


def test_products_in_turn_are_listed(opened: Opened, step: Explanation) -> None:
    """Sums of f32[256,1024] over 4 devices, scattered: a quarter of 1 MiB goes round in 3 steps."""
    page = opened(explain(IN_TURN, "layer.mlir", matmul_loops="all"))
    facts = known(explain(IN_TURN, "layer.mlir", matmul_loops="all"))
    (loop,) = facts["products_in_turn"]
    cells = texts(page, "#loops tbody td")
    assert cells[:5] == ["dot_general at layer.mlir:6", "reduce_scatter", "x", "3", "256.0 KiB"]
    assert cells[5] == "512.0 KiB for 1.0 MiB"
    assert cells[6:] == [f"{loop[time] * 1e6:.3g} \u00b5s" for time in ("in_turn", "apart")]
    assert len(texts(page, "#loops th")) == len(cells)
    assert texts(page, "#card-time .value") == [f"{facts['seconds'] * 1e6:.3g} \u00b5s"]
    chromium.size(page, 400, 900)
    assert page.execute_script("return document.documentElement.scrollWidth") <= 400
    assert not texts(opened(step), "#loops")


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


# ---------------------------------------------------------------- how it looks

# the WCAG contrast of each text with what is behind it: the colours of elements, and of cells of a picture, laid over
# one another; colours are read back from a canvas, which knows every way of writing them
CONTRAST = """
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
const seen = new Map();
const rgba = text => {
  if (!seen.has(text)) {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
    seen.set(text, [...canvas.getImageData(0, 0, 1, 1).data].map((v, k) => k < 3 ? v : v / 255));
  }
  return seen.get(text);
};
const over = (top, low, share) => low.map((v, k) => k < 3 ? top[k] * top[3] * share + v * (1 - top[3] * share) : 1);
const light = rgb => rgb.slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
  .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
const behind = element => {
  const chain = [];
  for (let e = element; e; e = e.parentElement) chain.push(rgba(getComputedStyle(e).backgroundColor));
  return chain.reverse().reduce((low, top) => over(top, low, 1), [255, 255, 255, 1]);
};
const cells = (text, low) => {
  const at = text.getBoundingClientRect(), x = (at.left + at.right) / 2, y = (at.top + at.bottom) / 2;
  for (const shape of text.ownerSVGElement.querySelectorAll('rect')) {
    const box = shape.getBoundingClientRect(), style = getComputedStyle(shape);
    if (box.left < x && x < box.right && box.top < y && y < box.bottom)
      low = over(rgba(style.fill), low, +style.fillOpacity);
  }
  return low;
};
const found = [];
for (const e of document.querySelectorAll('body *')) {
  const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
  if (!own || !e.checkVisibility() || e.closest('script, option, title, tspan')) continue;
  const style = getComputedStyle(e), svg = e.ownerSVGElement;
  const low = svg ? cells(e, behind(svg)) : behind(e), top = over(rgba(svg ? style.fill : style.color), low, 1);
  const [a, b] = [light(top), light(low)].sort((p, q) => q - p);
  found.push([(a + 0.05) / (b + 0.05), e.textContent.slice(0, 40), style.color]);
}
return found.sort((p, q) => p[0] - q[0]);
"""


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_all_text_can_be_read(opened: Opened, step: Explanation, colours: str) -> None:
    page = opened(step)
    chromium.scheme(page, colours)
    click(page, "#fold-all")
    for number in (0, 2, 4):
        click(page, "tr.row", number)
    click(page, "#program button.line")
    for number in range(0, 8, 3):
        click(page, ".value-row", number)
    ground = page.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (colours == "light")
    found = page.execute_script(CONTRAST)
    assert len(found) > 200
    assert [one for one in found if one[0] < 4.5] == []


@pytest.mark.parametrize("width", [400, 1400])
def test_nothing_stands_beyond_the_edge(opened: Opened, step: Explanation, width: int) -> None:
    page = opened(step)
    chromium.size(page, width, 900)
    click(page, "tr.row")
    click(page, "#program button.line")
    click(page, ".value-row")
    assert page.execute_script("return document.documentElement.scrollWidth") <= width


# ---------------------------------------------------------------- odd reports


def test_names_of_strangers_are_text(opened: Opened) -> None:
    row = Row(
        "all_gather", EVIL, 2, 10, array=EVIL, type=f"f32[{EVIL}]", reason=EVIL, names=EVIL, place=Place(EVIL, 1, 1)
    )
    page = opened(Explanation(EVIL, 2, ((EVIL, 2),), (row, replace(row, kind=EVIL))))
    click(page, "tr.row")
    click(page, "tr.row", 1)
    assert page.execute_script("return [document.images.length, document.scripts.length, window.evil ?? null]") == [
        0,
        2,
        None,
    ]
    assert texts(page, "h1") == [EVIL.replace("\u202e", "\\u202e")]  # written out
    assert len(texts(page, "tr.detail")) == 2


WIDE = Row("all_gather", "x", 512, 10, type="f32[1024]")


@pytest.mark.parametrize(
    "found",
    [
        Explanation("nothing", 1, (), ()),
        Explanation("no mesh", 4, (), (Row("all_gather", "", 4, 10),)),
        Explanation("wide", 512, (("x", 512),), (replace(WIDE, source_dims=(("x",),), target_dims=((),)),)),
    ],
    ids=lambda found: found.file,
)
def test_every_report_has_a_page(opened: Opened, found: Explanation) -> None:
    page = opened(found)
    for number in range(len(texts(page, "tr.row"))):
        click(page, "tr.row", number)
    assert texts(page, "h1") == [found.file]
    assert len(texts(page, "tr.detail")) == len(found.rows)
