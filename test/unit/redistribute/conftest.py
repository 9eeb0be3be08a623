"""Makes ``execution``, the helper beside this file, importable from the tests here."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans here are for a network whose collectives have a latency; ``ideal`` has next to none."""
    monkeypatch.setenv("SHARDPASS_MACHINE", "default")
