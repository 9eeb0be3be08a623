"""Fit the coefficients of the cost model to measured times.

    time = call + latency * collectives + received / bandwidth + reduced / (bandwidth of all_reduce)
         + bytes / memory + runs / (runs a second) + elements / (elements a second) + places / (places a second)

is fitted by least squares in relative error, no term below zero (Lawson and Hanson, 1974). The memory's bandwidth is
measured before (``work``), and the call itself (Python, dispatch) is no part of the machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np
from scipy.optimize import nnls

from shardpass.calibrating.samples import Sample

COPIED = 4  # the place of ``copied`` among the coefficients


@dataclass(frozen=True)
class Fit:
    """The fitted rates: seconds for a call, for a collective, for a byte received, and for each unit of local work."""

    call: float
    latency: float
    received: float
    reduced: float
    copied: float
    runs: float = 0.0
    elements: float = 0.0
    places: float = 0.0

    def seconds(self, sample: Sample) -> float:
        return float(np.dot(sample.row, astuple(self)))


def fit(samples: Sequence[Sample], seconds: Sequence[float], copied: float | None = None) -> Fit:
    """Fit the rates with least squares of the relative error; no rate is negative.

    ``copied``: seconds for a byte through memory, where it is known.
    """
    wanted = np.array(seconds)
    rows = np.array([sample.row for sample in samples]) / wanted[:, None]
    left = np.ones(len(wanted)) - (0.0 if copied is None else copied * rows[:, COPIED])
    scale = np.abs(rows).max(axis=0)
    scale[scale == 0] = 1
    free = [k for k in range(rows.shape[1]) if copied is None or k != COPIED]
    values = np.zeros(rows.shape[1])
    values[free] = nnls(rows[:, free] / scale[free], left)[0] / scale[free]
    if copied is not None:
        values[COPIED] = copied
    return Fit(*values.tolist())


def errors(fitted: Fit, samples: Sequence[Sample], seconds: Sequence[float]) -> list[float]:
    """Return by which factor, from 1 up, the model is too high or too low for each sample."""
    out = []
    for sample, measured in zip(samples, seconds, strict=True):
        ratio = max(fitted.seconds(sample), 1e-12) / measured
        out.append(max(ratio, 1 / ratio))
    return out
