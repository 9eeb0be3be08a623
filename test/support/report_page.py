"""Steps in a browser that shows the page of a report: what its tests read, click, choose and write."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from shardpass.report.explanation import Explanation

Opened = Callable[[Explanation], Any]  # shows the page of a report


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
