"""A file of Python that is written and imported: one of the programs that tests and benchmarks edit."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType


def loaded(path: Path, text: str) -> ModuleType:
    """The module of ``path``, which gets ``text``; in no table of modules, so that each call makes another one."""
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
