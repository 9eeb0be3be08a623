"""Writes the pages under docs/ that are generated from the program; those of ops: make_ops_docs.py.

python -m tools.docs.make_docs           write them
python -m tools.docs.make_docs --check   exit 1 if one of them is stale, and say which
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping

from shardpass.diagnostics.core import codes
from shardpass.diagnostics.pages import section
from shardpass.pipeline import registry
from shardpass.pipeline.named import NAMED
from tools.docs.fusions import fusions_page
from tools.docs.machines import machines_page
from tools.docs.pass_pages import PassPage, page_of
from tools.docs.reference import commands_page, python_page
from tools.processes import ROOT

DOCS = ROOT / "docs"
GENERATED = "<!-- Written by tools/docs/make_docs.py: do not edit. -->\n"

SUBJECTS = (
    ("SP0", "Shardings, meshes, notations"),
    ("SP1", "Files, pipelines, commands"),
    ("SP2", "Import, propagate, check"),
    ("SP3", "Partition"),
    ("SP4", "Redistribution"),
    ("SP5", "Compile, run, interpreter"),
    ("SP6", "JAX hooks"),
    ("SP7", "ONNX"),
    ("SP8", "Suggestions"),
    ("SP90", "Machines"),
    ("SP91", "Targets"),
    ("SP95", "Proofs"),
)


def diagnostics_page() -> str:
    lines = [
        "# Diagnostics",
        "",
        "Every error, warning and remark of shardpass has a code. In the messages, `{name}` stands for a value.",
        "",
    ]
    rows = codes()
    for prefix, subject in SUBJECTS:
        of_subject = [row for row in rows if row.id.startswith(prefix)]
        if of_subject:
            lines += [f"## {prefix}xx: {subject}", ""]
            for row in of_subject:
                lines += section(row)
    return "\n".join(lines)


def passes_page() -> str:
    lines = [
        "# Passes",
        "",
        "Each takes a valid module and leaves a valid module; what it knows stands in the module's text. They",
        "mix with MLIR's own passes in one pipeline: `shardpass-opt MODULE 'shardpass-import,cse'`.",
        "",
        "| named pipeline | passes |",
        "|---|---|",
        *(f"| `{name}` | `{text}` |" for name, text in NAMED.items()),
        "",
    ]
    for page in pass_pages():
        lines += _pass(page)
    return "\n".join(lines)


def pass_pages() -> list[PassPage]:
    """The pages of shardpass's own passes, in the order in which they run."""
    order = NAMED["partition"].split(",")
    own = [(name, registry.find(name)) for name in registry.own_names()]
    own.sort(key=lambda item: order.index(item[0]) if item[0] in order else len(order))
    return [page_of(cls) for _, cls in own if cls is not None]


def _pass(page: PassPage) -> list[str]:
    lines = [f"## {page.name}", "", f"*{page.summary}*", "", page.description, ""]
    if page.options:
        lines += ["| option | type | default | |", "|---|---|---|---|"]
        for option, text in page.options:
            default = str(option.default).lower() if option.type is bool else option.default
            lines.append(f"| `{option.spelling}` | {option.type.__name__} | `{default}` | {text} |")
        lines.append("")
    output = f"Output, with `{page.example}`" if page.example else "Output"
    for title, snippet in (("Input", page.input), (output, page.output)):
        lines += [f"{title}:", "", "```mlir", snippet, "```", ""]
    return lines


PAGES: Mapping[str, Callable[[], str]] = {
    "diagnostics.md": diagnostics_page,
    "passes.md": passes_page,
    "reference/commands.md": commands_page,
    "reference/fusions.md": fusions_page,
    "reference/machines.md": machines_page,
    "reference/python.md": python_page,
}


def render(name: str) -> str:
    """The text of the page ``name``."""
    title, _, rest = PAGES[name]().partition("\n")
    return re.sub(r"\n{3,}", "\n\n", f"{title}\n\n{GENERATED}{rest.rstrip()}\n")


def stale() -> list[str]:
    """The pages whose file is not what would be written now."""
    return [name for name in PAGES if not (DOCS / name).is_file() or (DOCS / name).read_text() != render(name)]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is stale")
    if parser.parse_args().check:
        old = stale()
        for name in old:
            print(f"docs/{name} is stale: run `make docs`", file=sys.stderr)
        return 1 if old else 0
    for name in PAGES:
        (DOCS / name).write_text(render(name))
        print(f"docs/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
