"""Run programs over the devices of several processes: join the processes, and make them agree on a program.

Every process runs the same Python program, holds its own part of each array, and compiles the same partitioned module.
``jax.distributed`` connects the processes, and XLA's collectives carry the data (Gloo on CPU, NCCL on GPU): nothing
here sends an element.

State: none but JAX's. ``_turns`` counts how often this process brought a program of one name, so that the third
``jit_step`` of one process meets the third of the others.

Invariants: before XLA compiles a program over several processes, each of them has shown the others a hash of the
partitioned module, and they were equal (``agree``). A process that cannot go on ends at once (``join``), so that the
others learn of it within ``HEARTBEAT`` seconds, and do not wait for it in a collective.

Cases, for a program over processes 0 and 1:

1. both show the same hash: both compile;
2. the hashes differ (another version, other data in a constant): SP560 in both;
3. both failed to partition with the same code: both raise what they raised, so that the hook leaves it to XLA in both;
4. process 1 never comes: SP561 in process 0 after ``PATIENCE`` seconds, naming process 1;
5. the devices are only described (``jax.experimental.topologies``): their processes do not run, and none is asked.

Cost: a barrier and one read of P short texts a program, of JAX's coordination service.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, TypeVar

import jax
import jaxlib
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from shardpass.diagnostics import ShardpassError, table_runtime
from shardpass.ir import jax_private
from shardpass.ir.annotations import get_text
from shardpass.runtime.process_environment import ADDRESS, COUNT, INDEX

HEARTBEAT = 20  # seconds after which a silent process counts as dead
FAREWELL = 20  # seconds for which a process that ends waits for the others to end
PATIENCE = 300  # seconds for which a process waits for the others to bring a program

_turns: Counter[str] = Counter()
_lock = threading.Lock()

T = TypeVar("T")


def join(coordinator: str | None = None, processes: int | None = None, process: int | None = None) -> bool:
    """Join the other processes of this program, before JAX is first used; returns False if there are none.

    Args:
        coordinator: ``host:port`` at which process 0 listens; missing arguments are read from the environment that
            tools/run_distributed.py sets.
        processes: how many there are.
        process: the number of this process, from 0.

    On CPU the collectives are those of Gloo. From now on an exception that nobody catches ends the process at once,
    without the functions of ``atexit``: JAX's would wait for the other processes, which wait for this one.

    Raises:
        ShardpassError: SP564 where a number is missing or wrong, or the others cannot be reached.
    """
    if jax.distributed.is_initialized():
        return True
    coordinator = coordinator or os.environ.get(ADDRESS)
    processes = _number(COUNT) if processes is None else processes
    process = _number(INDEX) if process is None else process
    if processes is None or processes == 1:
        return False
    if coordinator is None or process is None or not 0 <= process < processes:
        given = f"coordinator {coordinator}, process {process} of {processes}"
        raise table_runtime.CANNOT_JOIN.error(reason=f"the process was given {given}")
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    try:
        jax.distributed.initialize(
            coordinator, processes, process, heartbeat_timeout_seconds=HEARTBEAT, shutdown_timeout_seconds=FAREWELL
        )
    except RuntimeError as error:
        raise table_runtime.CANNOT_JOIN.error(reason=str(error).strip().split("\n", 1)[0]) from None
    sys.excepthook = _end
    return True


def _number(name: str) -> int | None:
    text = os.environ.get(name)
    if text is not None and not text.isdecimal():
        raise table_runtime.CANNOT_JOIN.error(reason=f"{name} is {text!r}, which is no number")
    return None if text is None else int(text)


def _end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    sys.__excepthook__(kind, error, trace)
    leave(1)


def leave(status: int) -> None:
    """End this process with ``status``; does nothing for status 0 or a single process.

    The others get a moment to end by themselves first: they may have met the same error, and report it better than JAX,
    which ends them when this one is gone.
    """
    if status == 0 or not jax.distributed.is_initialized():
        return
    begun = time.monotonic()
    try:
        jax_private.wait_for_processes("shardpass/leave", 3)
        if jax.process_index() == 0:  # the others lean on it
            time.sleep(0.5)
    except RuntimeError:  # they work, or are gone; one that is gone is to be seen first
        time.sleep(0.0 if time.monotonic() - begun > 2 else 1.0)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue
    os._exit(status)


# --- which devices


def processes_of(devices: Iterable[Any]) -> tuple[int, ...]:
    """List the processes to which ``devices`` belong, in order."""
    return tuple(sorted({device.process_index for device in devices}))


def first_of_each(devices: Sequence[Any], needed: int) -> Sequence[Any]:
    """Return ``needed`` of ``devices``, the same number of each process.

    Raises:
        ShardpassError: SP563 where the processes cannot share them equally.
    """
    processes = processes_of(devices)
    if len(processes) == 1 or needed >= len(devices):
        return devices[:needed]
    if needed % len(processes):
        raise table_runtime.UNSHARED.error(needed=needed, processes=len(processes))
    each = needed // len(processes)
    return [d for p in processes for d in [d for d in devices if d.process_index == p][:each]]


# --- the same program everywhere


def agreed(module: Any, devices: Iterable[Any], make: Callable[[], tuple[Any, T]]) -> tuple[Any, T]:
    """Return the result of ``make`` for ``module`` (the module to compile, and more), the same in every process.

    An error of ``make`` is raised here where it arose in every process, with the same code.

    Raises:
        Disagreement: SP560, SP561.
    """
    devices = list(devices)
    processes = processes_of(devices)
    if len(processes) == 1 or jax_private.only_described(devices):
        return make()
    name = get_text(module.operation, "sym_name") or "main"
    try:
        made = make()
    except Exception as error:
        code = error.code if isinstance(error, ShardpassError) else type(error).__name__
        agree(name, processes, f"none ({code})")
        raise
    agree(name, processes, fingerprint(made[0]))
    return made


def fingerprint(module: Any) -> str:
    """Return a hash of the module without its locations, which may differ between machines."""
    return hashlib.sha256(module.operation.get_asm(binary=True, enable_debug_info=False)).hexdigest()[:16]


def agree(name: str, processes: Sequence[int], mine: str) -> None:
    """Send ``mine`` to the other ``processes``, and compare it with their values.

    Raises:
        Disagreement: SP560 where one differs, SP561 where one does not come.
    """
    with _lock:
        turn = _turns[f"{processes}/{name}"]
        _turns[f"{processes}/{name}"] += 1
    topic = f"shardpass/programs/{'-'.join(map(str, processes))}/{name}/{turn}"
    message = json.dumps([jax.process_index(), mine, _versions()])
    try:
        messages = jax_private.exchange(topic, str(jax.process_index()), message, processes, PATIENCE)
    except RuntimeError as error:
        reason = " ".join(str(error).split("[type.googleapis")[0].split())
        raise table_runtime.NOBODY_CAME.error(name=name, seconds=PATIENCE, reason=reason) from None
    answers = sorted(json.loads(text) for text in messages)
    if len({text for _, text, _ in answers}) == 1:
        return
    equal = len({versions for _, _, versions in answers}) == 1
    listed = "; ".join(f"process {index} has {text}{'' if equal else f' ({used})'}" for index, text, used in answers)
    raise table_runtime.PROGRAMS_DIFFER.error(name=name, found=listed)


def _versions() -> str:
    return f"jax {jax.__version__}, jaxlib {jaxlib.__version__}"


# --- arrays of which a process holds a part


def whole_value(array: Any) -> np.ndarray[Any, Any]:
    """Return the whole of ``array`` in every process. Call it in all processes that hold a part of ``array``."""
    if not isinstance(array, jax.Array) or array.is_fully_addressable:
        return np.asarray(array)
    return np.asarray(everywhere(array, lambda whole: whole).addressable_data(0))


def everywhere(array: Any, part: Callable[[Any], Any]) -> Any:
    """Copy ``part`` of a global array to each of the array's devices."""
    with jax.enable_x64(True):  # an f64 array keeps its f64
        copies = NamedSharding(array.sharding.mesh, PartitionSpec())
        return jax.jit(part, out_shardings=copies)(array)
