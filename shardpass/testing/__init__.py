"""Assert in tests which collectives a partitioned step contains: ``collectives`` and ``assert_collectives``.

    from shardpass.testing import assert_collectives

    def test_step_never_gathers_weights():
        assert_collectives(step, params, batch, never=[("all_gather", ("model",))], at_most="64MiB")

The step is compiled by its partitioner for as many virtual devices as its mesh has; nothing runs. Names are loaded when
they are first used, since pytest loads the plugin of this package in each session.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shardpass.report.collectives import Collective as Collective
    from shardpass.report.collectives import Collectives as Collectives
    from shardpass.testing.asking import assert_collectives as assert_collectives
    from shardpass.testing.asking import collectives as collectives
    from shardpass.testing.expectation import CollectivesError as CollectivesError

_PUBLIC = {
    "Collective": "shardpass.report.collectives",
    "Collectives": "shardpass.report.collectives",
    "CollectivesError": "shardpass.testing.expectation",
    "assert_collectives": "shardpass.testing.asking",
    "collectives": "shardpass.testing.asking",
}

__all__ = [*_PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'shardpass.testing' has no attribute {name!r}")
    value = getattr(importlib.import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
