"""Redistributions are planned here for a network whose collectives have a latency, as `ideal` has next to none."""

import pytest


@pytest.fixture(autouse=True)
def _network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDPASS_MACHINE", "default")
