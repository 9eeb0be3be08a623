"""Print the slowest tests of a session with their share of its time, and name those that take too much of it.

Shares are ratios, since seconds depend on the machine. A session of few tests has none that is too long. A whole
session (``make night``) fails where a test takes too much; a drawn one names it alone, as a busy machine or a long draw
of the day is no fault of the code.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest

from support import daily

SHOWN = 20
MOST = 0.02  # of a session, for a test without the mark ``long``
ENOUGH = 3000  # tests


class Shares:
    """The seconds of each test, in the process that reports them."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.marked: set[str] = set()
        self.ends: dict[str, float] = {}  # of each worker, by its name

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Adds the setup, the call and the teardown of a test."""
        self.seconds[report.nodeid] += report.duration
        self.ends[getattr(report, "worker_id", "")] = time.monotonic()
        if "long" in report.keywords or "slow" in report.keywords:
            self.marked.add(report.nodeid)

    def too_long(self) -> list[str]:
        """Returns the tests that take more than their share."""
        whole = sum(self.seconds.values())
        if len(self.seconds) < ENOUGH:
            return []
        return [test for test, seconds in self.seconds.items() if seconds > MOST * whole and test not in self.marked]

    def alone(self) -> float:
        """Returns how long the last worker ran when the others had no test left."""
        ends = sorted(self.ends.values())
        return ends[-1] - ends[-2] if len(ends) > 1 else 0.0

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fails a whole session in which a test takes too long."""
        if daily.is_whole() and self.too_long() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Prints the slowest tests."""
        if len(self.seconds) <= SHOWN:
            return
        whole = sum(self.seconds.values())
        terminalreporter.section(f"slowest {SHOWN} of {len(self.seconds)} tests, {whole:.0f} s")
        for test, seconds in self.seconds.most_common(SHOWN):
            terminalreporter.line(f"{seconds / whole:6.1%} {seconds:7.2f} s  {test}")
        if len(self.ends) > 1:
            terminalreporter.line(f"the last worker was alone for {self.alone():.1f} s")
        for test in self.too_long():
            terminalreporter.line(f"takes more than {MOST:.0%}: {test}; make it shorter, or mark it long", red=True)


def pytest_configure(config: pytest.Config) -> None:
    """Counts in the process that reports, which is no worker."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Shares(), "shares")
