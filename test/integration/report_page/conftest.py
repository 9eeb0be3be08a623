"""The page of ``shardpass-explain --html`` in a browser: Chromium without a window.

The tests are skipped, and say why, where there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.report_page import Opened

from shardpass.cli.explain import explain
from shardpass.report.explanation import Explanation
from tools.docs import browser as chromium

EXAMPLES = Path(__file__).parents[3] / "examples"


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
