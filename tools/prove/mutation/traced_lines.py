"""A plugin for pytest: which lines of a package each test runs, how long each test takes, and which fails first."""

from __future__ import annotations

import sys
import threading
import time
from collections import defaultdict
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

Lines = dict[str, set[int]]  # by file


@dataclass
class Outcome:
    """What a run of tests shows; ``failed`` is the first test that fails, or file of tests that cannot be read."""

    failed: str = ""
    reason: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, Lines] = field(default_factory=dict)  # by test; "" for what runs while tests are collected


class Recorder:
    """The plugin; it traces lines of files below ``folder``, or nothing where that is None."""

    def __init__(self, folder: Path | None = None) -> None:
        self.outcome = Outcome()
        self._folder = None if folder is None else f"{folder.resolve()}/"
        self._current: Lines = defaultdict(set)
        self._wanted: dict[CodeType, set[int] | None] = {}

    def pytest_sessionstart(self) -> None:
        self._begin("")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._begin(item.nodeid)
        began = time.perf_counter()
        try:
            return (yield)
        finally:
            self.outcome.seconds[item.nodeid] = time.perf_counter() - began
            sys.settrace(None)
            threading.settrace(None)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._failed(report)

    def _failed(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed and not self.outcome.failed:
            self.outcome.failed = report.nodeid
            self.outcome.reason = report.longreprtext.strip().rpartition("\n")[2]

    def _begin(self, test: str) -> None:
        if self._folder is None:
            return
        self._current = self.outcome.lines.setdefault(test, defaultdict(set))
        self._wanted = {}
        sys.settrace(self._call)
        threading.settrace(self._call)

    def _call(self, frame: FrameType, event: str, _: Any) -> Any:
        assert self._folder is not None
        code = frame.f_code
        if code not in self._wanted:
            inside = code.co_filename.startswith(self._folder)
            self._wanted[code] = self._current[code.co_filename.removeprefix(self._folder)] if inside else None
        lines = self._wanted[code]
        if lines is None:
            return None
        lines.add(frame.f_lineno)

        def line(frame: FrameType, event: str, _: Any) -> Any:
            lines.add(frame.f_lineno)
            return line

        return line
