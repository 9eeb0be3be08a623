"""The numbers of the page: those of the report's JSON."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.report_page import Opened, choose, click, column, known, texts

from shardpass.cli.explain import explain
from shardpass.report.explanation import Explanation
from shardpass.report.profile import Measured
from tools.docs import browser as chromium

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
