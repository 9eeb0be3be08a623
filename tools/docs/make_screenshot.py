#!/usr/bin/env python
"""Writes docs/images/explain.png, the picture of the report's page in the README: of examples/transformer_block.mlir.

    python -m tools.docs.make_screenshot                       docs/images/explain.png
    python -m tools.docs.make_screenshot -o dark.png --dark    elsewhere, in dark colours
    python -m tools.docs.make_screenshot -o a.png --width 400 --height 3000

Needs Debian's chromium and chromium-driver, and Selenium.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from shardpass.cli.explain import explain
from shardpass.report.page import to_html
from tools.docs import browser as chromium
from tools.processes import ROOT

OPENED = 1  # the row, from the top, whose details are shown


def main(argv: list[str] | None = None) -> int:
    """Returns the exit status: 1 where no browser is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module", nargs="?", type=Path, default=ROOT / "examples" / "transformer_block.mlir")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs" / "images" / "explain.png")
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--width", type=int, default=1200)
    parser.add_argument("--height", type=int, default=1560)
    args = parser.parse_args(argv)
    if why := chromium.missing():
        print(f"no picture: {why}", file=sys.stderr)
        return 1
    found = explain(args.module.read_bytes(), args.module.name, folders=[ROOT])
    with tempfile.TemporaryDirectory() as folder, chromium.started(args.width, args.height) as browser:
        page = Path(folder) / "page.html"
        page.write_text(to_html(found), encoding="utf-8")
        chromium.size(browser, args.width, args.height)
        chromium.scheme(browser, "dark" if args.dark else "light")
        browser.get(page.as_uri())
        browser.execute_script("document.querySelectorAll('tr.row')[arguments[0] - 1]?.click()", OPENED)
        args.output.write_bytes(chromium.screenshot(browser))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
