"""Keep the collectives of compiled programs, by digest: in memory, and in a folder that several processes share.

A file is written under a name of its own and then renamed, so that a reader never sees a part of it. A file that cannot
be read counts as missing.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path

from shardpass.report.collectives import Collectives


class Store:
    """Collectives by key. ``folder`` None: in memory alone. ``compiled``: how often a key was missing."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.compiled = 0
        self._known: dict[str, Collectives] = {}

    def get(self, key: str) -> Collectives | None:
        """Return the collectives of a program; None if unknown."""
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
            handle, name = tempfile.mkstemp(dir=self.folder, suffix=".part")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(collectives.json())
                os.replace(name, self._file(self.folder, key))
            except OSError:
                os.unlink(name)
                raise

    @staticmethod
    def _file(folder: Path, key: str) -> Path:
        return folder / f"{key}.json"


STORE = Store()
