"""Determine the machine from the kind of JAX's devices.

The environment variable SHARDPASS_MACHINE overrides the table. Devices of an unknown kind get the default machine, with
a remark, once for each kind. TPUs in several slices get the machine of slices, if the table has it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import cache
from typing import Any

import jax

from shardpass.cost.chosen import USUAL, VARIABLE, content_text
from shardpass.cost.machine import MACHINES
from shardpass.diagnostics import report
from shardpass.diagnostics.table_cost import UNKNOWN_DEVICE
from shardpass.ir import jax_private

CPU = "cpu"
GPUS = ("cuda", "rocm", "gpu")
KINDS = (  # (platforms, what the kind of a device says, machine), the first that matches
    (GPUS, r"\bA100\b", "a100"),
    (GPUS, r"\bH100\b", "h100"),
    (GPUS, r"\bH200\b", "h200"),
    (GPUS, r"\bB200\b", "b200"),
    (GPUS, r"\bGB200\b", "gb200"),
    (GPUS, r"\bMI300X\b", "mi300x"),
    (("tpu",), r"v5 ?(e|lite)", "v5e"),
    (("tpu",), r"v5p?\b", "v5p"),  # "TPU v5" is what some versions call it
    (("tpu",), r"v6 ?(e|lite)", "v6e"),
)


def machine_here(devices: Iterable[Any] | None = None) -> str:
    """Return the machine, as text, for programs on ``devices``; by default, for all devices of JAX.

    Raises ShardpassError: SP901 to SP903 for an invalid environment variable.
    """
    if os.environ.get(VARIABLE):
        return content_text()
    first, *others = jax.devices() if devices is None else devices
    machine = _of_kind(first.platform, first.device_kind)
    several = len({getattr(device, "slice_index", 0) for device in (first, *others)}) > 1
    slices = f"{machine}-slices"
    return slices if several and slices in MACHINES else machine


def machine_of_mesh(mesh: Any) -> str:
    """Return the machine of programs over a mesh of JAX: of its devices, or of an abstract one the usual machine."""
    return content_text() if isinstance(mesh, jax.sharding.AbstractMesh) else machine_here(mesh.devices.flat)


def machine_of_lowered(lowered: Any) -> str:
    """Return the machine for which to decide a program that JAX lowered: the machine of its devices, or the default
    for a program without devices.
    """
    devices = jax_private.devices_of_lowered(lowered)
    return machine_here(devices) if devices else content_text()


@cache
def _of_kind(platform: str, kind: str) -> str:
    if platform == CPU:
        return CPU
    for platforms, pattern, machine in KINDS:
        if platform in platforms and re.search(pattern, kind, re.IGNORECASE):
            return machine
    report(UNKNOWN_DEVICE.at(kind=repr(kind), platform=platform, machine=USUAL))
    return USUAL
