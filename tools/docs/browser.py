"""Chromium without a window, for pictures of the report's page and for its tests: Debian's, with Selenium.

    with started(1400, 900) as browser:
        browser.get(path.as_uri())

Nothing is looked up or fetched: both programs are named, and the browser keeps to itself.
"""

from __future__ import annotations

import base64
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

BROWSERS, DRIVERS = ("chromium", "chromium-browser", "google-chrome"), ("chromedriver",)
ALONE = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--hide-scrollbars",
)  # fmt: skip


def missing() -> str:
    """What is not there, in words; "" where a browser can be started."""
    if find_spec("selenium") is None:
        return "Selenium is not installed (pip install selenium)"
    if not _found(BROWSERS):
        return "no chromium is installed (apt-get install chromium)"
    return "" if _found(DRIVERS) else "no chromedriver is installed (apt-get install chromium-driver)"


def _found(names: tuple[str, ...]) -> str:
    return next((path for name in names if (path := shutil.which(name))), "")


@contextmanager
def started(width: int, height: int) -> Iterator[Any]:
    """A browser whose window has that size; closed at the end."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = _found(BROWSERS)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for flag in (*ALONE, f"--user-data-dir={folder}", f"--window-size={width},{height}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        browser = webdriver.Chrome(options=options, service=Service(_found(DRIVERS)))
        try:
            yield browser
        finally:
            browser.quit()


def size(browser: Any, width: int, height: int) -> None:
    """Sets the size of the page, which a window has a least of."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def scheme(browser: Any, colours: str) -> None:
    """Sets what the page is told of the user's taste: "light" or "dark"."""
    features = [{"name": "prefers-color-scheme", "value": colours}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def screenshot(browser: Any) -> bytes:
    """What is seen of the page, as PNG."""
    return base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"])
