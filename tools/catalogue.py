"""The commands of shardpass with their parsers, found in its sources."""

from __future__ import annotations

import argparse
import importlib
import re
from collections.abc import Mapping
from typing import Any, NoReturn
from unittest import mock

from shardpass.cli.shardpass import COMMANDS
from tools.processes import ROOT


class _Caught(BaseException):
    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser


def commands() -> Mapping[str, argparse.ArgumentParser]:
    """The parser of each command of the package, by its name; of those without a script as ``shardpass NAME``."""
    found = re.findall(r'^(shardpass[\w-]*) = "([\w.]+):main"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    scripts = {name for name, _ in found}
    found += [(f"shardpass {name}", f"shardpass.cli.{name}") for name in COMMANDS if f"shardpass-{name}" not in scripts]
    return {name: _parser_of(importlib.import_module(module)) for name, module in found}


def _parser_of(module: Any) -> argparse.ArgumentParser:
    """What ``main`` of a command reads its arguments with: whatever reads them ends in ``parse_known_args``."""

    def caught(parser: argparse.ArgumentParser, *_: object, **__: object) -> NoReturn:
        raise _Caught(parser)

    with mock.patch.object(argparse.ArgumentParser, "parse_known_args", caught):
        try:
            module.main([])
        except _Caught as found:
            return found.parser
    raise AssertionError(f"{module.__name__}.main reads no arguments")
