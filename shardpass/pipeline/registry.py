"""Find passes by name.

shardpass's own passes are named in a table and loaded when first asked for, so that a command that runs
one pass does not import the others. Packages add theirs through the entry-point group ``shardpass.passes``
(``my-pass = "my_package.my_module:MyPass"``), and programs through ``register``.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeVar

from shardpass.diagnostics import ShardpassError
from shardpass.diagnostics.table_driver import PASS_CANNOT_BE_LOADED
from shardpass.pipeline.base import ModulePass

ENTRY_POINTS = "shardpass.passes"

_OWN: Mapping[str, str] = {
    "shardpass-import": "shardpass.passes.import_:Import",
    "shardpass-propagate": "shardpass.passes.propagate:Propagate",
    "shardpass-whole-axes": "shardpass.passes.whole_axes:WholeAxes",
    "shardpass-check": "shardpass.passes.check:Check",
    "shardpass-check-replication": "shardpass.passes.check_replication:CheckReplication",
    "shardpass-partition": "shardpass.passes.partition:Partition",
    "shardpass-defer": "shardpass.passes.defer:Defer",
    "shardpass-hoist": "shardpass.passes.hoist:Hoist",
    "shardpass-redistribute": "shardpass.passes.redistribute:Redistribute",
    "shardpass-collective-matmul": "shardpass.passes.collective_matmul:CollectiveMatmul",
    "shardpass-combine": "shardpass.passes.combine:Combine",
    "shardpass-join": "shardpass.passes.join:Join",
    "shardpass-keep-nan": "shardpass.passes.keep_nan:KeepNan",
    "shardpass-prove": "shardpass.passes.prove:Prove",
}

_registered: dict[str, type[ModulePass]] = {}
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

P = TypeVar("P", bound=type[ModulePass])


def register(cls: P) -> P:
    """Register a pass class under its ``name``. A class decorator.

    Raises TypeError where the class is not a complete pass, ValueError where another class has its name.
    """
    name, summary = getattr(cls, "name", ""), getattr(cls, "summary", "")
    if not _NAME.fullmatch(name):
        raise TypeError(f"{cls.__name__}.name must be lower-case words joined by '-', but is {name!r}")
    if not summary:
        raise TypeError(f"{cls.__name__} needs a summary")
    cls.options()  # says what is wrong with a field now, not when somebody uses it
    known = _registered.get(name)
    if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ValueError(f"two passes are called {name}: {known.__qualname__} and {cls.__qualname__}")
    _registered[name] = cls
    return cls


def names() -> tuple[str, ...]:
    """List the names of all passes of shardpass and its plugins, sorted. Loads none of them."""
    return tuple(sorted({*_OWN, *_registered, *_plugins()}))


def own_names() -> tuple[str, ...]:
    """List the names of shardpass's own passes."""
    return tuple(_OWN)


def find(name: str) -> type[ModulePass] | None:
    """Return the pass called ``name``; None if there is no such pass.

    Raises ShardpassError (SP104) where the pass is known but its module cannot be imported.
    """
    if name in _registered:
        return _registered[name]
    target = _OWN.get(name) or _plugins().get(name)
    if target is None:
        return None
    module, _, attribute = target.partition(":")
    try:
        cls = getattr(importlib.import_module(module), attribute)
        if not (isinstance(cls, type) and issubclass(cls, ModulePass)):
            raise TypeError(f"{attribute} is not a ModulePass")
        register(cls)
    except ShardpassError:
        raise
    except Exception as error:  # the module is another's: whatever it raises is a failure to load
        raise PASS_CANNOT_BE_LOADED.error(
            name=name, target=target, reason=f"{type(error).__name__}: {error}"
        ) from error
    return _registered.get(name)


@lru_cache(maxsize=1)
def _plugins() -> Mapping[str, str]:
    """List the passes of installed packages. Cached, as it searches all of site-packages."""
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=ENTRY_POINTS)}
