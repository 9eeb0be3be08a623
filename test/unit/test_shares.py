"""What a session says of its tests: those that take too much of it, and how long a worker was alone."""

from types import SimpleNamespace

import pytest
from support import shares


@pytest.fixture
def session(monkeypatch):
    """Reports of 2999 short tests and three others, by two workers."""
    clock = iter(range(10_000))
    monkeypatch.setattr(shares.time, "monotonic", lambda: next(clock))
    counted = shares.Shares()

    def report(test, seconds, worker, *marks):
        told = SimpleNamespace(nodeid=test, duration=seconds, worker_id=worker, keywords=marks)
        counted.pytest_runtest_logreport(told)

    for number in range(2999):
        report(f"short {number}", 0.1, "gw0")
    report("many parts", 5.0, "gw1")
    report("many parts", 5.0, "gw1")
    report("marked", 50.0, "gw1", "long")
    report("one part", 6.0, "gw1")
    return counted


def test_a_test_that_takes_more_than_its_share_is_named(session):
    """2% of 365.9 s are 7.3 s."""
    assert session.too_long() == ["many parts"]


def test_the_last_worker_is_alone_when_the_others_have_ended(session):
    assert session.alone() == 4
    assert shares.Shares().alone() == 0.0
