"""In the child that runs one file of JAX's tests: the hook, and a line of JSON for each test.

A plugin of pytest. ``SHARDPASS_SUITES_RECORD`` names the file to write; with ``SHARDPASS_SUITES_HOOK=1`` the tests run
under ``shardpass.jax.install()``. A line is ``{"begun": test}`` or ``{"test": ..., "outcome": ..., "stats": ...}``. A
test that ended the process has the first line alone; a file run to its end has a last line ``{"ended": true}``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

import shardpass.jax

RECORD, HOOK = "SHARDPASS_SUITES_RECORD", "SHARDPASS_SUITES_HOOK"


def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get(HOOK) == "1":
        shardpass.jax.install()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves out the tests that an earlier child has begun: it ended, and this one goes on behind it."""
    with open(os.environ[RECORD], encoding="utf-8") as before:
        begun = {json.loads(line).get("begun") for line in before}
    items[:] = [item for item in items if name_of(item) not in begun]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    _write({"begun": name_of(item)})
    item.stash[_OUTCOMES] = []
    before = _flat(shardpass.jax.stats())
    found = yield
    after = _flat(shardpass.jax.stats())
    more = {name: count - before.get(name, 0) for name, count in after.items() if count != before.get(name, 0)}
    outcomes = item.stash[_OUTCOMES]
    outcome = next((each for each in ("failed", "skipped") if each in outcomes), "passed")
    _write({"test": name_of(item), "outcome": outcome, "stats": more})
    return found


def pytest_sessionfinish() -> None:
    _write({"ended": True})


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report: Any = yield
    item.stash[_OUTCOMES].append(report.outcome)
    return report  # type: ignore[no-any-return]


def name_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[2].replace("::", ".")


_OUTCOMES = pytest.StashKey[list[str]]()


def _flat(stats: dict[str, Any]) -> dict[str, int]:
    """The counts, and for each reason one under "code function"."""
    counts = {name: count for name, count in stats.items() if name != "reasons"}
    reasons = stats["reasons"].items()
    return counts | {f"{code} {name}": count for code, names in reasons for name, count in names.items()}


def _write(line: dict[str, Any]) -> None:
    with open(os.environ[RECORD], "a", encoding="utf-8") as record:
        record.write(json.dumps(line) + "\n")
