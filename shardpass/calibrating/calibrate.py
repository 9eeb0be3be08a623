"""Calibrate the machine of the devices that JAX has here: sample, measure, fit."""

from __future__ import annotations

import datetime
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax

from shardpass.calibrating.fit import Fit, errors, fit
from shardpass.calibrating.measure import Show, measure, silent
from shardpass.calibrating.samples import Sample, flag_samples, samples
from shardpass.calibrating.work import LONG, flops, memory_bandwidth
from shardpass.cost.links import Switch
from shardpass.cost.machine import Machine, Source

FASTEST = 1e15  # a unit a second, of a term that was not seen
AS_FAST = 1.1  # times what floats are compared with


@dataclass(frozen=True)
class Calibration:
    """A measured machine, and the error of its model for each sample that ran.

    Attributes:
        off: how many times too high or too low each sample is modelled.
        refused: the names of samples that XLA does not compile here.
    """

    machine: Machine
    fitted: Fit
    samples: tuple[Sample, ...]
    seconds: tuple[float, ...]
    off: tuple[float, ...]
    refused: tuple[str, ...]

    @property
    def mean(self) -> float:
        """Return the geometric mean of ``off``."""
        return math.exp(statistics.fmean(map(math.log, self.off)))

    @property
    def note(self) -> str:
        """Describe in one line how well the machine model fits."""
        return f"{len(self.off)} samples, off by {self.mean:.2f}x in geometric mean, {max(self.off):.2f}x at worst"


def calibrate(
    devices: int,
    sizes: Sequence[int],
    repeats: int,
    name: str,
    show: Show = silent,
    *,
    by: str = "calibrating.calibrate",
    long: float = LONG,
) -> Calibration:
    """Measure collectives of tiles of ``sizes`` bytes, memory and products, on ``devices`` devices.

    ``by``: the tool, for the machine's source. ``long``: seconds of a product that is large enough.
    """
    bandwidth = memory_bandwidth(devices, repeats, show, long)
    asked = list(samples(devices, sizes))
    times = measure(asked, repeats, show)
    ran = [(sample, seconds) for sample, seconds in zip(asked, times, strict=True) if seconds is not None]
    usable, seconds = [sample for sample, _ in ran], [took for _, took in ran]
    refused = tuple(dict.fromkeys(s.name for s, took in zip(asked, times, strict=True) if took is None))
    fitted = fit(usable, seconds, 1 / bandwidth)
    rates = flops(devices, repeats, fitted.call, show, long)
    local = _local(fitted) | _flags(flag_samples(devices, max(sizes)), repeats, show)
    machine = machine_of(name, by, devices, fitted, rates, local)
    return Calibration(machine, fitted, tuple(usable), tuple(seconds), tuple(errors(fitted, usable, seconds)), refused)


def machine_of(
    name: str, by: str, devices: int, fitted: Fit, rates: Mapping[str, float], local: Mapping[str, Any]
) -> Machine:
    """Make the machine of the fitted and measured rates."""
    device = jax.devices()[0]
    kind = f"{devices} devices of {device.platform}, {device.device_kind}"
    link = Switch(None, fitted.latency, _rate(fitted.received), _rate(fitted.reduced))
    source = Source("all", f"{by}, on {kind}", datetime.date.today())
    return Machine(name, kind, memory_of(device), _rate(fitted.copied), dict(rates), (link,), dict(local), (source,))


def memory_of(device: Any) -> float:
    """Return the memory of ``device`` in bytes; infinite for a CPU and for devices that do not report it."""
    try:
        known = device.memory_stats() or {}
    except Exception:  # of a backend that has none
        known = {}
    return float(known.get("bytes_limit", math.inf))


def _rate(unit: float) -> float:
    return 1 / max(unit, 1 / FASTEST)


def _local(fitted: Fit) -> dict[str, float | bool]:
    return {name: _rate(getattr(fitted, name)) for name in ("runs", "elements", "places")}


def _flags(pairs: Mapping[str, tuple[Sample, Sample]], repeats: int, show: Show) -> dict[str, float | bool]:
    times = measure([sample for pair in pairs.values() for sample in pair], repeats, show)
    out: dict[str, float | bool] = {}
    for flag, first, second in zip(pairs, times[::2], times[1::2], strict=True):
        least = AS_FAST if flag == "floats_as_bits" else 1.0
        out[flag] = first is not None and second is not None and first > least * second
    return out
