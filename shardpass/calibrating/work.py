"""Measure memory bandwidth and the flops of element types, on all devices at once."""

from __future__ import annotations

from shardpass.calibrating.measure import Show, measure, silent
from shardpass.calibrating.samples import Sample, end, module
from shardpass.redistribute.program.local_work import LocalWork

TYPES = {"f32": "f32", "bf16": "bf16", "f16": "f16", "i8": "i32"}  # and in what products of it are added up
SMALLEST, LARGEST = 128, 8192  # rows of a product
LONG = 0.02  # seconds after which a product is large enough
FIRST, MOST, AGAIN = 1 << 20, 1 << 30, 4  # bytes of a pass over memory, and how many times more the next has


def memory_sample(devices: int, size: int) -> Sample:
    """Make a sample that reads and writes ``size`` bytes once."""
    count = max(1, size // 4)
    kind = f"tensor<{count}xf32>"
    body = f"%r = stablehlo.negate %x : {kind}"
    text = module(devices, (kind, kind), (end(kind, (count * devices,), 0, devices),) * 2, body)
    return Sample(f"a pass over {4 * count} bytes", text, (count * devices,), 0, 0, LocalWork(), traffic=8 * count)


def memory_bandwidth(devices: int, repeats: int, show: Show = silent, long: float = LONG) -> float:
    """Measure the memory bandwidth of a device in bytes per second, read or written.

    Arrays grow until a pass takes ``long`` seconds; the last two separate the time of memory from that of a call.
    """
    size, before, rate = FIRST, (0, 0.0), 0.0
    while True:
        sample = memory_sample(devices, size)
        (seconds,) = measure([sample], repeats, show)
        assert seconds is not None
        more = seconds - before[1]
        rate = (sample.traffic - before[0]) / more if more > seconds / 2 else sample.traffic / seconds
        if before[0] and (seconds >= long or size >= MOST):
            return rate
        before, size = (sample.traffic, seconds), size * AGAIN


def product_sample(devices: int, rows: int, element: str) -> Sample:
    """Make a sample: a product of square matrices on each device."""
    kind, summed = f"tensor<{rows}x{rows}x{element}>", f"tensor<{rows}x{rows}x{TYPES[element]}>"
    body = f"%r = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : ({kind}, {kind}) -> {summed}"
    whole = (rows * devices, rows)
    ends = end(kind, whole, 0, devices), end(summed, whole, 0, devices)
    name = f"a product of {rows} rows of {element}"
    return Sample(name, module(devices, (kind, summed), ends, body), whole, 0, 0, LocalWork(), element)


def flops(devices: int, repeats: int, call: float, show: Show = silent, long: float = LONG) -> dict[str, float]:
    """Measure the additions and multiplications per second for each element type that XLA can multiply.

    Matrices grow until one product takes ``long`` seconds. ``call``: seconds of a call, as ``fit`` has it.
    """
    rates = {}
    for element in TYPES:
        rows = SMALLEST
        while True:
            (seconds,) = measure([product_sample(devices, rows, element)], repeats, show)
            if seconds is None:
                break
            rates[element] = 2 * rows**3 / max(seconds - call, seconds / 2)
            if seconds >= long or rows >= LARGEST:
                break
            rows *= 2
    return rates
