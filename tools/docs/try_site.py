"""Tries the built site in Chromium: the search from a file and from a server, and the width of pages.

    make site
    python -m tools.docs.try_site

No page may be wider than the window, on a desktop (1280) and on a phone (390). Exits with 1 where one is, or where the
search does not find the page of a code. Without Chromium or Selenium it says so and tries nothing.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tools.docs.browser import missing, size, started
from tools.processes import ROOT

SITE = ROOT / "out" / "site"
WIDTHS = (1280, 390)
SOUGHT, WANTED = "SP139", "diagnostics/SP139.html"
PATIENCE = 20.0  # seconds until the search has answered


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that prints no requests."""

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server of ``folder``."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()


def search(browser: Any, address: str) -> list[str]:
    """Addresses of what the search of the home page at ``address`` lists for ``SOUGHT``; empty after ``PATIENCE``."""
    browser.get(address + "index.html")
    box = browser.find_element("css selector", "input.md-search__input")
    browser.execute_script("arguments[0].focus()", box)
    box.send_keys(SOUGHT)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        links = browser.execute_script(
            "return [...document.querySelectorAll('.md-search-result__link')].map(link => link.href)"
        )
        if links:
            return list(links)
        time.sleep(0.2)
    return []


def too_wide(browser: Any, folder: Path) -> Iterator[str]:
    """Pages that are wider than the window, at each of ``WIDTHS``; of the pages of codes, which are alike, one."""
    pages = [page for page in folder.rglob("*.html") if page.parent.name != "diagnostics" or page == folder / WANTED]
    for width in WIDTHS:
        size(browser, width, 900)
        for page in sorted(pages):
            browser.get(page.as_uri())
            taken = browser.execute_script("return document.documentElement.scrollWidth")
            if taken > width:
                yield f"{page.relative_to(folder)} is {taken} pixels wide in a window of {width}"


def faults(browser: Any, folder: Path) -> Iterator[str]:
    """What is wrong with the site in ``folder``, in sentences."""
    with served(folder) as address:
        for place in (address, folder.as_uri() + "/"):
            if not any(WANTED in link for link in search(browser, place)):
                yield f"the search at {place} does not find {WANTED}"
    yield from too_wide(browser, folder)


def main() -> int:
    if why := missing():
        print(f"the site is not tried in a browser: {why}")
        return 0
    with started(WIDTHS[0], 900) as browser:
        wrong = list(faults(browser, SITE))
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"search and widths ({WIDTHS[0]} and {WIDTHS[1]} pixels) tried: {len(wrong)} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
