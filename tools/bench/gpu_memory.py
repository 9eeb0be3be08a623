"""The account of memory beside XLA's for GPUs, without a GPU: expert forms at real sizes, compiled for hosts of H100s.

    pip install jax-cuda13-pjrt==JAX jax-cuda13-plugin==JAX       of the version of jaxlib; no CUDA library is needed
    python -m tools.bench.gpu_memory                              all forms of tools/bench/expert_programs
    python -m tools.bench.gpu_memory ulysses zero1 --json gpu.json --hlo folder

XLA:GPU's compiler is a shared library that compiles ahead of time for a described device (``TARGET``). Each form is
partitioned by shardpass for the machine h100, and compiled so; nothing is run. Temporaries are those of
``Compiled.memory_analysis``: XLA's buffer assignment after its own fusions, its scheduler and its combined collectives.
A second program is the form as XLA's own partitioner compiles it.

Counted: how far the account of all memory (arguments, results, temporaries) is off.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tools.bench.report import geometric_mean, show_table

HOST = 8  # devices
HEADS = ("form", "devices", "account MiB", "XLA:GPU MiB", "account/XLA", "of all memory", "XLA's partitioner MiB")
TARGET = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152 shared_memory_per_core: 233472
  threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128 block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535 block_dim_limit_z: 65535 memory_bandwidth: 3352320000000 l2_cache_size: 52428800
  clock_rate_ghz: 1.98 device_memory_size: 84929347584 shared_memory_per_block_optin: 232448
  cuda_compute_capability { major: 9 } registers_per_core_limit: 65536 registers_per_block_limit: 65536
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 7 }
runtime_version { major: 13 minor: 0 patch: 0 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One form: bytes of temporaries, ours and those of XLA's buffer assignment; ``rest``: arguments and results."""

    name: str
    devices: int
    account: int
    xla: int
    rest: int
    partitioned_by_xla: int

    @property
    def of_all(self) -> float:
        """The account over XLA's, with arguments and results in both."""
        return (self.account + self.rest) / (self.xla + self.rest)


def described_devices(count: int) -> tuple[Any, ...]:
    """H100s that are not there. Leans on ``jax._src.xla_bridge.canonicalize_platform``, which asks for real ones."""
    import jax._src.xla_bridge as bridge
    from jax.experimental import topologies

    known = bridge.canonicalize_platform
    bridge.canonicalize_platform = lambda platform: platform if platform == "cuda" else known(platform)
    try:
        shape = f"1x{count // HOST}x{HOST}" if count > HOST else f"1x1x{count}"
        return tuple(topologies.get_topology_desc(platform="cuda", target_config=TARGET, topology=shape).devices)
    finally:
        bridge.canonicalize_platform = known


def compiled(module: Any, devices: Sequence[Any]) -> Any:
    """Compiles a module in Shardy's terms for ``devices``, as ``shardpass.ir.jax_private`` does for real ones."""
    import numpy as np
    from jaxlib import _jax
    from jaxlib import xla_client as xla

    options = xla.CompileOptions()
    options.num_replicas, options.num_partitions = 1, len(devices)
    options.device_assignment = xla.DeviceAssignment.create(np.array([[device.id for device in devices]]))
    build = options.executable_build_options
    build.num_replicas, build.num_partitions = 1, len(devices)
    build.use_spmd_partitioning = build.use_shardy_partitioner = True
    return devices[0].client.compile(module, _jax.DeviceList(tuple(devices)), options)


def measure(name: str, text: str, folder: Path | None) -> Row:
    """Partitions and compiles one form."""
    import shardpass
    from shardpass.ir.context import copy_module
    from shardpass.ir.locations import first_names
    from shardpass.runtime.compiling import drop_donation, own_copy
    from shardpass.runtime.manual_computation import over_devices
    from shardpass.suggesting.explain import pipeline

    module = shardpass.run_pipeline(text, pipeline(1, machine="h100"))
    report = shardpass.explain(module, machine="h100")
    built = copy_module(module)
    over_devices(built, report.devices)
    drop_donation(built)
    with built.context:
        first_names(built.operation)
    devices = described_devices(report.devices)
    ours, whole = compiled(built, devices), compiled(own_copy(text), devices)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        for kind, one in (("shardpass", ours), ("xla", whole)):
            (folder / f"{name}.{kind}.hlo").write_text(one.hlo_modules()[0].to_string())
    stats, theirs = ours.get_compiled_memory_stats(), whole.get_compiled_memory_stats()
    rest = stats.argument_size_in_bytes + stats.output_size_in_bytes
    assert report.memory is not None
    temporaries = (report.memory.temporaries, stats.temp_size_in_bytes)
    return Row(name, report.devices, *temporaries, rest, theirs.temp_size_in_bytes)


def cells(row: Row) -> list[str]:
    """A line of the table."""
    ratio = f"{row.account / row.xla:.2f}" if row.xla else "-"
    account, xla, theirs = (f"{size / 2**20:.1f}" for size in (row.account, row.xla, row.partitioned_by_xla))
    return [row.name, str(row.devices), account, xla, ratio, f"{row.of_all:.2f}", theirs]


def summary(rows: Sequence[Row]) -> str:
    """The lines below the table."""
    ratios = [row.of_all for row in rows]
    far = math.exp(sum(abs(math.log(one)) for one in ratios) / len(ratios))
    middle = f"geometric mean {geometric_mean(ratios):.3f}, median {median(ratios):.2f}"
    ends = f"{min(ratios):.2f} to {max(ratios):.2f}; off by {far:.3f} in geometric mean"
    return f"account over XLA:GPU's, of all memory: {middle}, {ends}"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("forms", nargs="*", metavar="FORM", help="all, where none is named")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--hlo", type=Path, metavar="FOLDER", help="write the compiled programs there")
    options = parser.parse_args(argv)
    os.environ.setdefault("JAX_PLATFORMS", "")
    import jax

    jax.config.update("jax_platforms", "cpu")
    from tools.bench.expert_programs import FORMS

    rows = [measure(name, FORMS[name].text(), options.hlo) for name in options.forms or FORMS]
    show_table("temporaries of a device, compiled for H100s", HEADS, [cells(row) for row in rows], [summary(rows)])
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
