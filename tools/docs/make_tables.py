#!/usr/bin/env python
"""Writes the parser's tables that the package keeps beside its grammar (``shardpass.sharding.notations.tables``).

python -m tools.docs.make_tables
"""

from __future__ import annotations

from pathlib import Path

from shardpass.sharding.notations import tables


def main() -> int:
    file = Path(tables.__file__).parent / tables.TABLES
    file.write_text(tables.tables_text())
    print(file.name)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
