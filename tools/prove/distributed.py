#!/usr/bin/env python
"""Several processes give what one process gives: 2 x 4 devices beside 1 x 8, on all examples and 20 models.

    python -m tools.prove.distributed                       everything (some minutes)
    python -m tools.prove.distributed --processes 4 --devices-per-process 2 mlp_sgd mlp_train_step.mlir

Each program runs in two ways: ``compile`` is ``shardpass.compile`` of the partitioned module, ``jit`` is ``jax.jit``
inside of ``shardpass.jax.use(strict=True)`` (models alone: an example is text). The same script runs once in one
process that has all devices, and once under tools/run_distributed.py; process 0 writes the results, and the hash of the
partitioned module. The hashes must be equal, and the results as near as two results of one program may be
(shardpass/runtime/compare.py): Gloo adds numbers in another order than XLA does within a process.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tools.bench.real_programs import LoweredProgram, real_programs
from tools.processes import ROOT, environment, module_command

EXAMPLES = ROOT / "examples"
WORKER = "--worker"
MODELS = 20


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, or 1 where a program differs or fails."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        "distributed", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--processes", type=int, default=2, metavar="P")
    parser.add_argument("--devices-per-process", type=int, default=4, metavar="D")
    parser.add_argument(WORKER, metavar="FOLDER", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", metavar="PROGRAM", help="examples and models (default: all, and 20)")
    args = parser.parse_args(argv)
    names = args.names or [*examples(), *some_models()]
    if args.worker:
        return work(Path(args.worker), names)
    with tempfile.TemporaryDirectory() as folder:
        alone, together = Path(folder, "alone"), Path(folder, "together")
        total = args.processes * args.devices_per_process
        for place, processes, devices in ((alone, 1, total), (together, args.processes, args.devices_per_process)):
            place.mkdir()
            begun = time.monotonic()
            if status := start(place, names, processes, devices):
                return status
            print(f"{processes} x {devices}: {len(names)} programs in {time.monotonic() - begun:.0f} s", flush=True)
        return report(names, alone, together)


def examples() -> list[str]:
    return sorted(path.name for path in EXAMPLES.glob("*.mlir"))


def some_models() -> list[str]:
    """At equal distances in the table, so of each family."""
    names = [name for name, program in real_programs().items() if program.available]
    return [names[k * len(names) // MODELS] for k in range(MODELS)]


def start(folder: Path, names: Sequence[str], processes: int, devices: int) -> int:
    options = ["--processes", str(processes), "--devices-per-process", str(devices)]
    work = module_command("tools.prove.distributed", WORKER, str(folder), *names)
    command = module_command("tools.run_distributed", *options, "--", *work)
    return subprocess.run(command, env=environment(), cwd=ROOT).returncode


# --- in each process


def work(folder: Path, names: Sequence[str]) -> int:
    from shardpass.runtime.processes import join, whole_value

    join()
    import jax

    for name in names:
        results: dict[str, Any] = {}
        for way, found in ways(name):
            for index, array in enumerate(found):
                if isinstance(array, jax.Array) and not array.sharding.addressable_devices:
                    continue  # a program for one device, of process 0
                results[f"{way} {index}"] = whole_value(array)
        if jax.process_index() == 0:
            # np.savez keeps no narrow floats
            np.savez(folder / f"{name}.npz", **{key: _wide(value) for key, value in results.items()})
    return 0


def _wide(array: Any) -> Any:
    narrow = array.dtype.kind == "V" or array.dtype.name in ("bfloat16", "float16") or "float8" in array.dtype.name
    return array.astype(np.float32) if narrow else array


def ways(name: str) -> Iterator[tuple[str, list[Any]]]:
    """The results of a program in each way; under ``hash`` that of its partitioned module."""
    import shardpass
    from shardpass.diagnostics import collect
    from shardpass.runtime import compile
    from shardpass.runtime.inputs import poison, random_inputs
    from shardpass.runtime.processes import fingerprint

    lowered = None if name.endswith(".mlir") else real_programs()[name].lower()
    text = (EXAMPLES / name).read_text() if lowered is None else lowered.text
    with collect():
        module = shardpass.run_pipeline(text, "partition")
    yield "hash", [np.array(fingerprint(module))]
    executable = compile(module)
    given = random_inputs(executable.signature.arguments) if lowered is None else lowered.arguments
    yield "compile", executable.run(*executable.place(*given, padding=poison))
    if lowered is not None:
        yield "jit", _jit(lowered)


def _jit(lowered: LoweredProgram) -> list[Any]:
    import jax

    import shardpass.jax as spj

    with spj.use(strict=True):
        compiled = lowered.lowered.compile()

    def put(array: Any, sharding: Any) -> Any:
        held = np.asarray(array)
        return jax.make_array_from_callback(held.shape, sharding, lambda index: held[index], dtype=held.dtype)

    placed = jax.tree.map(put, lowered.case.arguments, compiled.input_shardings[0])
    return list(jax.tree.leaves(compiled(*placed)))


# --- beside each other


def report(names: Sequence[str], alone: Path, together: Path) -> int:
    """Prints a line a program, and returns 1 where one differs."""
    failed = 0
    bitwise = 0
    for name in names:
        one, several = (_read(folder / f"{name}.npz") for folder in (alone, together))
        wrong, worst = differing(one, several)
        equal = worst == 0.0 and not wrong
        failed += bool(wrong)
        bitwise += equal
        ways_run = "+".join(sorted({key.split()[0] for key in one} - {"hash"}))
        verdict = f"DIFFERS: {'; '.join(wrong)}" if wrong else "equal" if equal else f"within {worst:.1e}"
        print(f"{name:45} {ways_run:12} {verdict}")
    print(f"{len(names) - failed} of {len(names)} agree, {bitwise} of them in every bit")
    return 1 if failed else 0


def differing(one: Mapping[str, Any], several: Mapping[str, Any]) -> tuple[list[str], float]:
    """What differs, and the greatest relative difference of what may."""
    from shardpass.runtime.compare import difference

    if one.keys() != several.keys():
        return [f"{len(one)} results, and {len(several)}"], 0.0
    wrong, worst = [], 0.0
    for index, key in enumerate(one):
        if key.startswith("hash"):
            if str(one[key]) != str(several[key]):
                wrong.append(f"the partitioned module is {one[key]}, and {several[key]}")
            continue
        apart = difference(index, several[key], one[key])
        worst = max(worst, apart.relative)
        if not apart.passed:
            wrong.append(f"{key}: {apart}")
    return wrong, worst


def _read(path: Path) -> dict[str, Any]:
    with np.load(path) as held:
        return {key: held[key] for key in held.files}


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    sys.exit(main())
