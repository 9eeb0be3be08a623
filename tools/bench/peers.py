#!/usr/bin/env python
"""One program partitioned in one of several ways, run, compared with one device, and measured.

    python -m tools.bench.peers mlp_sgd xla            one answer, for people (ways: shardpass, gspmd, xla, shardy)

Ways: ``shardpass`` is the pipeline "partition"; ``xla`` is what jax.jit compiles (Shardy's propagation, XLA's
partitioner); ``shardy`` is Shardy's own passes down to per-device code, which XLA then only compiles; ``gspmd`` is
jax.jit with GSPMD's propagation, as it was before JAX took Shardy's. Shardy's passes and XLA can end the process that
they run in, so a benchmark asks through ``Child``, a process that is started again when it dies. Programs are those of
test/integration/models, or any others that are lowered as they are.

An answer is a dict: ``status`` ("right", "wrong", "fails"), ``reason``, and where it compiled ``bytes``,
``collectives``, ``kinds``, ``unknown_loops`` (tools/bench/hlo_traffic.py), ``temp`` and ``output`` bytes (XLA's
compiled memory stats), ``error`` (greatest difference of a result, as test/integration/models/difference.py measures
it).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from shardpass.runtime.shardy_passes import shardy_module
from tools.bench.hlo_traffic import traffic
from tools.bench.real_programs import LoweredProgram, Measurable, differences, real_programs
from tools.processes import ChildFailed, JsonChild, answer, environment, module_command

WAYS = ("shardpass", "xla", "shardy")
ALL_WAYS = ("shardpass", "gspmd", "xla", "shardy")
DEVICES = 8


# ---------------------------------------------------------------- one measurement


class Workbench:
    """Measures ways on programs in this process; keeps the last program, lowered, with its results on one device.

    ``pipeline`` is shardpass's; ``scattered`` says how XLA's all-reduces are counted (tools/bench/hlo_traffic.py).
    """

    def __init__(
        self,
        programs: Mapping[str, Measurable] | None = None,
        pipeline: str = "partition",
        *,
        scattered: bool = False,
    ) -> None:
        self.programs: Mapping[str, Measurable] = real_programs() if programs is None else programs
        self.pipeline, self.scattered = pipeline, scattered
        self.name = ""
        self.lowered: Any = None
        self.expected: list[Any] = []

    def take(self, name: str) -> Measurable:
        from shardpass.runtime import compile_single

        if name != self.name:
            self.lowered = self.programs[name].lower()
            self.expected = compile_single(self.lowered.text)(*self.lowered.arguments)
            self.name = name
        return self.programs[name]

    def measure(self, name: str, way: str) -> dict[str, Any]:
        program = self.take(name)
        start = time.perf_counter()
        try:
            hlo, memory, run = getattr(self, way)()
        except Exception as error:  # a peer may refuse anything in any way
            return {"status": "fails", "reason": _first_line(error)}
        seconds = time.perf_counter() - start
        moved = traffic(hlo, program.devices, scattered=self.scattered)
        measured = {
            "bytes": moved.bytes,
            "collectives": moved.collectives,
            "kinds": moved.by_kind,
            "unknown_loops": moved.unknown_loops,
            "temp": memory.temp_size_in_bytes,
            "output": memory.output_size_in_bytes,
            "compile_s": seconds,
        }
        try:
            apart = max(differences(run(), self.expected), default=0.0)
        except Exception as error:
            return {**measured, "status": "fails", "reason": _first_line(error)}
        right = apart <= program.tolerance
        reason = "" if right else f"differs by {apart:.2g} of the greatest magnitude"
        return {**measured, "status": "right" if right else "wrong", "reason": reason, "error": apart}

    def shardpass(self) -> Any:
        import shardpass
        from shardpass.diagnostics import collect

        with collect():
            module = shardpass.run_pipeline(self.lowered.text, self.pipeline)
        return self._ours(module)

    def shardy(self) -> Any:
        return self._ours(shardy_module(self.lowered.text))

    def _ours(self, module: Any) -> Any:
        import shardpass

        executable = shardpass.compile(module)
        return executable.hlo_text(), executable.memory_stats(), lambda: executable(*self.lowered.arguments)

    def xla(self) -> Any:
        return self._jax(self.lowered)

    def gspmd(self) -> Any:
        import jax

        before = jax.config.jax_use_shardy_partitioner
        jax.config.update("jax_use_shardy_partitioner", False)
        try:
            return self._jax(self.programs[self.name].lower())
        finally:
            jax.config.update("jax_use_shardy_partitioner", before)

    def _jax(self, lowered: LoweredProgram) -> Any:
        import jax

        compiled = lowered.lowered.compile()
        arguments = self.lowered.case.arguments
        placed = jax.tree.map(jax.device_put, arguments, compiled.input_shardings[0])
        return compiled.as_text(), compiled.memory_analysis(), lambda: jax.tree.leaves(compiled(*placed))


def _first_line(error: BaseException) -> str:
    told = [d.message for d in getattr(error, "error_diagnostics", ())] or [str(error)]
    lines = [line for line in told[0].splitlines() if line.strip()] or [""]
    return f"{type(error).__name__}: {lines[0]}"[:300]


# ---------------------------------------------------------------- children


def set_devices() -> None:
    import jax

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", DEVICES)


def serve(bench: Workbench) -> None:
    """Answers each JSON line ``[program, way]`` on stdin with one line on stdout."""
    set_devices()
    for line in sys.stdin:
        name, way = json.loads(line)
        try:
            found = bench.measure(name, way)
        except Exception as error:
            found = {"status": "fails", "reason": f"the program itself: {_first_line(error)}"}
        answer(found)


class Child:
    """A process that measures; it is started again after it has died or taken too long.

    ``command``: a module and its arguments, which calls ``serve``.
    """

    def __init__(self, timeout: float = 300, command: Sequence[str] = ("tools.bench.peers", "--serve")) -> None:
        self.worker = JsonChild(module_command(*command), environment(), timeout)

    def ask(self, name: str, way: str) -> dict[str, Any]:
        try:
            return self.worker.ask([name, way])
        except ChildFailed as failure:
            return {"status": "fails", "reason": str(failure)}

    def close(self) -> int:
        return self.worker.close()[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?")
    parser.add_argument("way", nargs="?", choices=ALL_WAYS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(Workbench())
        return 0
    if not arguments.way:
        parser.error("name a program and a way")
    set_devices()
    print(json.dumps(Workbench().measure(arguments.program, arguments.way), indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
