"""Keep the collectives of compiled programs, by digest: in memory, and in a folder that several processes share.

Files are written whole, so that a reader never sees a part of one. A file that cannot be read counts as missing.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from shardpass.ir.whole_file import write_whole
from shardpass.report.collectives import Collectives


class Store:
    """Store collectives by key. ``folder`` None: only in memory. ``compiled``: the number of missing keys so far."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.compiled = 0
        self._known: dict[str, Collectives] = {}

    def get(self, key: str) -> Collectives | None:
        """Return the collectives of a program; None if the program is not in the store."""
        if key not in self._known and self.folder is not None:
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                self._known[key] = Collectives.from_dict(json.loads(self._file(self.folder, key).read_text("utf-8")))
        known = self._known.get(key)
        self.compiled += known is None
        return known

    def put(self, key: str, collectives: Collectives) -> None:
        """Keep the collectives of a program. A folder that cannot be written is ignored."""
        self._known[key] = collectives
        if self.folder is None:
            return
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(self._file(self.folder, key), collectives.json())

    @staticmethod
    def _file(folder: Path, key: str) -> Path:
        return folder / f"{key}.json"


STORE = Store()
