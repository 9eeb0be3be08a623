"""shardpass: partition StableHLO programs across devices, in Python that people can read.

The public surface is what this module names. Each name, and each module such as ``shardpass.jax``, is loaded when it is
first used, so that ``import shardpass`` is quick and needs no JAX.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shardpass import jax as jax
    from shardpass import ops as ops
    from shardpass import testing as testing
    from shardpass.advise.suggest.explain import explain as explain
    from shardpass.advise.suggest.suggest import suggest as suggest
    from shardpass.diagnostics import Diagnostic as Diagnostic
    from shardpass.diagnostics import ShardpassError as ShardpassError
    from shardpass.pipeline.run import run_pipeline as run_pipeline
    from shardpass.proving import prove as prove
    from shardpass.redistribute import Plan as Plan
    from shardpass.redistribute import TransferPlan as TransferPlan
    from shardpass.redistribute import plan_redistribution as plan_redistribution
    from shardpass.redistribute import plan_reshard_tree as plan_reshard_tree
    from shardpass.report.picture import draw as draw
    from shardpass.runtime import Executable as Executable
    from shardpass.runtime import compile as compile
    from shardpass.sharding import AxisRef as AxisRef
    from shardpass.sharding import Mesh as Mesh
    from shardpass.sharding import Sharding as Sharding
    from shardpass.sharding import ShardingError as ShardingError
    from shardpass.sharding import ShardingParseError as ShardingParseError
    from shardpass.sharding import TupleSharding as TupleSharding
    from shardpass.sharding import parse_sharding as parse_sharding

    __version__: str

# As JAX does, which may be imported later than jaxlib: else XLA's log lists the devices on stderr.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

_PUBLIC = {
    "AxisRef": "shardpass.sharding",
    "Diagnostic": "shardpass.diagnostics",
    "Executable": "shardpass.runtime",
    "Mesh": "shardpass.sharding",
    "Plan": "shardpass.redistribute",
    "Sharding": "shardpass.sharding",
    "ShardingError": "shardpass.sharding",
    "ShardingParseError": "shardpass.sharding",
    "ShardpassError": "shardpass.diagnostics",
    "TransferPlan": "shardpass.redistribute",
    "TupleSharding": "shardpass.sharding",
    "compile": "shardpass.runtime",
    "draw": "shardpass.report.picture",
    "explain": "shardpass.advise.suggest.explain",
    "parse_sharding": "shardpass.sharding",
    "prove": "shardpass.proving",
    "plan_redistribution": "shardpass.redistribute",
    "plan_reshard_tree": "shardpass.redistribute",
    "run_pipeline": "shardpass.pipeline.run",
    "suggest": "shardpass.advise.suggest.suggest",
}

_MODULES = ("jax", "onnx", "ops", "testing")

__all__ = ["__version__", *_MODULES, *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        value = getattr(importlib.import_module(_PUBLIC[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(f"shardpass.{name}")
    elif name == "__version__":
        value = importlib.import_module("shardpass.version").installed_version()
    else:
        raise AttributeError(f"module 'shardpass' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
