"""Format a measured machine as a TOML file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from shardpass.cost.links import Switch
from shardpass.cost.machine import Machine

LINK = ("latency", "bandwidth", "all_reduce")


def machine_toml(machine: Machine, note: str) -> str:
    """Format ``machine``, whose links are switches, as a TOML file, with ``note`` as a comment at its start."""
    lines = [f"# {line}" for line in note.splitlines()]
    lines += [f"name = {_value(machine.name)}", f"about = {_value(machine.about)}"]
    lines += [f"memory = {_value(machine.memory)} # bytes of a device"]
    lines += [f"memory_bandwidth = {_value(machine.memory_bandwidth)} # bytes a second", ""]
    lines += ["[flops] # additions and multiplications a second, of dense matrices", *_table(machine.flops)]
    for link in machine.links:
        assert isinstance(link, Switch)
        lines += ["", "[[links]]", 'kind = "switch"']
        lines += [] if link.devices is None else [f"devices = {link.devices}"]
        lines += _table({name: value for name in LINK if (value := getattr(link, name)) is not None})
    if machine.local:
        lines += ["", "[local] # what a device does between collectives", *_table(machine.local)]
    for source in machine.sources:
        lines += ["", "[[sources]]", f"of = {_value(source.of)}", f"where = {_value(source.where)}"]
        lines += [f"date = {source.date.isoformat()}"]
    return "\n".join(lines) + "\n"


def _table(values: Mapping[str, object]) -> list[str]:
    return [f"{name} = {_value(value)}" for name, value in values.items()]


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return "inf" if value == math.inf else f"{value:.4g}"
    return json.dumps(value)  # a text: TOML's basic strings have JSON's escapes
