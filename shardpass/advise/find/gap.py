"""The gap between the partitioner's program and two others: shardpass's own, and the one with pinned decisions.

Problem: a list of edits does not tell how much is left. Shardpass's program is what no annotation may reach; the pinned
program is what annotations reach in XLA.

Both take a decision by the solver, whose work on real programs has no useful bound. So a child process makes them, with
a limit of time, and is ended at the limit. The figures that it has printed by then are used.

Protocol: on the child's stdin the module, its machine and its target, pickled; on its stdout a line of JSON for each
program: [name, figures]. The pinned program has a line, PINNED_SO_FAR, for each variant that is the best until then.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from functools import partial

from shardpass.advise.find.verify import figures
from shardpass.cost.machine import Machine
from shardpass.diagnostics import ShardpassError, collect
from shardpass.ir.child import command
from shardpass.report.findings import DECIDED, PINNED, PINNED_SO_FAR, Figures
from shardpass.targets.target import CPU, Target

FREE = "partition{constraints=free}"  # a leftover constraint is no reason to send more


def others(module: bytes, machine: Machine, seconds: float, target: Target | None = None) -> dict[str, Figures]:
    """Return the figures of shardpass's own program and of the pinned program, omitting those not ready within
    ``seconds``.

    ``target``: the devices for which both are compiled; by default virtual CPU devices, and those that are planned.
    """
    words, given = command("shardpass.advise.find.gap", "serve", ()), pickle.dumps((module, machine, target))
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        out = child.communicate(given, timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        child.kill()
        out = child.communicate()[0]
    except BaseException:
        child.kill()
        child.communicate()
        raise
    rows = dict(_read(out))
    if PINNED in rows:
        rows.pop(PINNED_SO_FAR, None)
    return rows


def _read(out: bytes) -> Iterator[tuple[str, Figures]]:
    for line in out.decode(errors="replace").splitlines():
        try:
            name, row = json.loads(line)
            yield name, Figures(**row)
        except (ValueError, TypeError):
            continue  # a line that was cut


def serve() -> None:
    """Print the figures of each program as soon as they are known, in the child."""
    from shardpass.cost.chosen import machine_text

    data, machine, target = pickle.load(sys.stdin.buffer)
    out = sys.stdout

    def show(name: str, program: Figures) -> None:
        print(json.dumps([name, program.as_dict()]), file=out, flush=True)

    with redirect_stdout(sys.stderr), collect():
        for name, made in ((DECIDED, _decided), (PINNED, partial(_pinned, partial(show, PINNED_SO_FAR)))):
            with suppress(ShardpassError):
                show(name, made(data, machine_text(machine), target))


def _decided(data: bytes, machine: str, target: Target | None) -> Figures:
    from shardpass.ir.context import parse_module
    from shardpass.ir.machines import set_module_machine
    from shardpass.report.build import explain_module
    from shardpass.report.hlo.programs import explain_partitioned_by

    module = parse_module(data, trusted=True)
    set_module_machine(module, machine)
    report = explain_module(module, "step", pipeline=FREE)
    if target is not None and target.platform != CPU:
        report = explain_partitioned_by("shardpass", report.built, "", None, machine, None, target)
    return figures(report)


def _pinned(improved: Callable[[Figures], None], data: bytes, machine: str, target: Target | None) -> Figures:
    from shardpass.advise.pin.pin import pin_module
    from shardpass.ir.context import parse_module

    module = parse_module(data, trusted=True)
    after = pin_module(module, machine=machine, target=target, improved=improved)[1].after
    assert after is not None
    return after
