"""A script run again with another text of its files, to see the program that JAX then compiles.

Entry point of a child process. The files on disk stay as they are: Python's readers of source files return the new
texts, for the script itself and for the modules that it imports.
"""

from __future__ import annotations

import _io
import io
import json
import os
from collections.abc import Mapping
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

from shardpass.jax.script import run_script


def run(folder: str, ends: str, function: str, target: str, texts: str, *arguments: str) -> None:
    """Run a script as ``shardpass.jax.script.run``, with the JSON in the file ``texts`` for its files.

    What the script prints is dropped, as its first run has printed that.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    overlay(json.loads(Path(texts).read_text()))
    run_script(folder, ends, function, target, arguments)


def overlay(texts: Mapping[str, str]) -> None:
    """Make Python read ``texts`` (by absolute path) instead of the files, for the rest of this process."""
    read, stats = _io.open_code, SourceFileLoader.path_stats

    def open_code(path: str) -> Any:
        text = texts.get(os.path.abspath(path))
        return read(path) if text is None else io.BytesIO(text.encode())

    def path_stats(loader: SourceFileLoader, path: str) -> Mapping[str, Any]:
        if os.path.abspath(path) in texts:
            raise OSError  # a module's compiled code is of the old text
        return stats(loader, path)

    _io.open_code = io.open_code = open_code
    setattr(SourceFileLoader, "path_stats", path_stats)  # noqa: B010  the method of another module


def texts_of(changed: Mapping[str, bytes]) -> str:
    """Return the JSON that ``run`` takes. ``changed``: the new texts by path."""
    return json.dumps({str(Path(path).resolve()): text.decode() for path, text in changed.items()})
