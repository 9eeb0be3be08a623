"""The table of collectives: sorting, filtering, folding, keys, many rows."""

from __future__ import annotations

import pytest
from support.report_page import Opened, choose, click, column, known, texts, write

from shardpass.diagnostics import Place
from shardpass.report.explanation import Explanation
from shardpass.report.rows import Row


def many(count: int) -> Explanation:
    """Rows that none is like another, ten at a line."""
    rows = (Row("all_gather", "x", 4, k + 1, array=f"a{k}b", place=Place("m.py", k // 10 + 1, 1)) for k in range(count))
    return Explanation("many", 4, (("x", 4),), tuple(rows))


def test_one_group_stands_open(opened: Opened, step: Explanation) -> None:
    page = opened(step)
    states = page.execute_script(
        "return [...document.querySelectorAll('tr.group .fold')].map(e => e.getAttribute('aria-expanded'))"
    )
    assert states == ["true", *["false"] * (len(step.by_line()) - 1)]


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
