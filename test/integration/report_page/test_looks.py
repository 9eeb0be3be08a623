"""How the page looks: contrast of all text, narrow windows, hostile names, reports without rows or mesh."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.report_page import Opened, click, texts

from shardpass.diagnostics import Place
from shardpass.report.explanation import Explanation
from shardpass.report.rows import Row
from tools.docs import browser as chromium

EVIL = "</script><img src=x onerror='window.evil=1'>\u202e\"'`"


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
