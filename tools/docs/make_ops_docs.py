"""Writes docs/ops.md: every op of StableHLO and CHLO that this jaxlib has, and how shardpass splits it.

python -m tools.docs.make_ops_docs           write it
python -m tools.docs.make_ops_docs --check   exit 1 if it is stale

The page comes from the registry alone: the words about an op are the ``note`` and the ``sends`` of its definition; an
op that is not split has its reason in shardpass/ops/families/replicated.py.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from jaxlib.mlir.dialects import _chlo_ops_gen, _stablehlo_ops_gen

from shardpass.ops import registry
from shardpass.ops.owners import FAMILY_OF_OP
from shardpass.ops.registry import OpDef
from tools.processes import ROOT

PAGE = ROOT / "docs" / "ops.md"
GENERATED = "<!-- Written by tools/docs/make_ops_docs.py: do not edit. -->\n"
DIALECTS = (_stablehlo_ops_gen, _chlo_ops_gen)

HEAD = """\
This page says how each op may be split over devices.

- *split* lists the dimensions along which each device can compute its own part. An operand that is split along another
  dimension is gathered along it first. *Partial results* means that each device reduces its part, and a collective
  combines the results of the devices.
- *sends* says what the op itself communicates. In addition, for every op, operands with another split are redistributed
  before it, and partial results are combined after it.

The ops in the last table are not split. Either they are computed in full on every device, which the remark SP301
reports, or they do not compute arrays. Each family is a file under `shardpass/ops/families/`.
"""


def dialect_ops() -> set[str]:
    """The names of all ops of the installed StableHLO and CHLO dialects."""
    classes = (c for module in DIALECTS for c in vars(module).values() if isinstance(c, type))
    return {c.OPERATION_NAME for c in classes if hasattr(c, "OPERATION_NAME")}


def words(entry: OpDef) -> str:
    """How ``entry`` is split, for people."""
    return entry.note.rstrip(".").replace("``", "`").replace("|", "\\|")


def ops_page() -> str:
    """The page without its note of where it comes from."""
    defined = registry.table()
    lines = ["# Ops", "", HEAD]
    split = [d for d in defined.values() if not d.whole]
    order = {family: at for at, family in enumerate(dict.fromkeys(FAMILY_OF_OP.values()))}
    for family in sorted({d.family for d in split}, key=lambda f: (order.get(f, len(order)), f)):
        lines += [f"## {family}", "", *_table(d for d in split if d.family == family), ""]
    lines += ["## Not split", "", "| op | why |", "|---|---|"]
    lines += [f"| `{d.name}` | {words(d)} |" for d in _sorted(defined.values()) if d.whole]
    return "\n".join(lines)


def _sorted(entries: object) -> list[OpDef]:
    return sorted(entries, key=lambda d: d.name)  # type: ignore[call-overload, no-any-return]


def _table(entries: Iterator[OpDef]) -> Iterator[str]:
    """One row for the ops that are split alike."""
    rows: dict[tuple[str, str], list[str]] = {}
    for entry in _sorted(entries):
        rows.setdefault((words(entry), entry.sends), []).append(f"`{entry.name}`")
    yield from ("| ops | split | sends |", "|---|---|---|")
    yield from (f"| {', '.join(names)} | {said} | {sends} |" for (said, sends), names in rows.items())


def render() -> str:
    """The text of docs/ops.md."""
    title, _, rest = ops_page().partition("\n")
    return f"{title}\n\n{GENERATED}{rest.rstrip()}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the page is stale")
    if not parser.parse_args().check:
        PAGE.write_text(render())
        print(PAGE.relative_to(PAGE.parent.parent))
    elif PAGE.read_text() != render():
        print("docs/ops.md is stale: run `make docs`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
