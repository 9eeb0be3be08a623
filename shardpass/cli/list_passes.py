"""The listing of ``shardpass-opt --list-passes``."""

from __future__ import annotations

from shardpass.diagnostics import ShardpassError
from shardpass.pipeline import registry
from shardpass.pipeline.named import NAMED


def list_passes() -> str:
    """List every pass with its summary and options, then the named pipelines."""
    lines = ["Passes:"]
    for name in registry.names():
        lines += _lines(name)
    lines += ["", "Named pipelines:"]
    lines += [f"  {name:<12} {text}" for name, text in NAMED.items()]
    lines += ["", "MLIR's passes that jaxlib registers (canonicalize, cse, symbol-dce, ...) mix freely with these."]
    return "\n".join(lines)


def _lines(name: str) -> list[str]:
    try:
        cls = registry.find(name)
    except ShardpassError as error:  # a plugin that is out of order must not hide the others
        return [f"  {name}", f"      not usable: {error.diagnostics[0].message}"]
    assert cls is not None  # the registry itself named it
    lines = [f"  {name:<24} {cls.summary}"]
    lines += [f"      {{{option}}}" for option in map(str, cls.options())]
    return lines
