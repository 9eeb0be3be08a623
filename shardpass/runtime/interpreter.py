"""Run per-device programs on StableHLO's reference interpreter, which shares no code with XLA.

The program is first written out for all devices in step (``lockstep``). StableHLO's own `interpreter.run_parallel` runs
N programs at once, which takes a core for each device, and no collective may wait for more than three seconds.

NumPy arrays that MLIR's Python attributes cannot give back (bf16, f8, i4, complex) leave as wider ones
(``_CARRIERS``), exactly. The interpreter aborts its process on what it does not know, so by default it runs in a
process of its own.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _stablehlo
from jaxlib.mlir.dialects import func
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.diagnostics import table_runtime
from shardpass.ir.annotations import main_of
from shardpass.ir.child import failure_of
from shardpass.ir.chlo import write_out_chlo
from shardpass.ir.context import make_context, parse_module
from shardpass.ir.locations import place_of
from shardpass.ir.tensors import every_op, operation
from shardpass.runtime.lockstep import Lockstep
from shardpass.runtime.partitioned_signature import Boundary, Signature, read_signature
from shardpass.runtime.tiles import Array, check_arguments, join, split

SPMD = "spmd"  # what main of the partitioned module is called here


def interpret(
    module: Any,
    *arrays: Any,
    padding: Any = 0,
    isolated: bool = True,
    timeout: float | None = None,
) -> list[Array]:
    """Run a partitioned module (text, bytecode or ``ir.Module``) on whole arrays; return whole arrays.

    ``padding`` is as in ``Executable.place``; ``isolated``: in a process of its own; ``timeout`` in seconds.

    Raises:
        ShardpassError: as ``compile`` and ``place`` do, SP540 where the interpreter stops, and SP541 where devices wait
            for one another forever.
    """
    copy = own_copy(module)
    signature = read_signature(copy)
    check_arguments(signature, arrays)
    devices = signature.num_devices
    tiles = [
        split(np.asarray(array), boundary, devices, padding)
        for array, boundary in zip(arrays, signature.arguments, strict=True)
    ]
    results = run_tiles(copy, signature, tiles, isolated=isolated, timeout=timeout)
    return [join(row, boundary) for row, boundary in zip(results, signature.results, strict=True)]


def run_tiles(
    module: Any,
    signature: Signature,
    tiles: Sequence[Sequence[Array]],
    *,
    isolated: bool = True,
    timeout: float | None = None,
) -> list[list[Array]]:
    """Run [argument][device] tiles to [result][device] tiles. Changes the module, which must be of ``own_copy``."""
    return next(run_each(module, signature, [tiles], isolated=isolated, timeout=timeout))


def run_each(
    module: Any,
    signature: Signature,
    runs: Sequence[Sequence[Sequence[Array]]],
    *,
    isolated: bool = True,
    timeout: float | None = None,
) -> Iterator[list[list[Array]]]:
    """Run a module several times, as ``run_tiles``, in one child process. ``timeout``: total seconds.

    Yields the results of the runs in order; raises the error of the first one that has none.
    """
    devices = signature.num_devices
    with module.context, ir.Location.unknown():
        write_out_chlo(module)
        _copy_what_is_scattered_into(module)
        step = Lockstep({f.attributes["sym_name"].value: operation(f) for f in module.body.operations}, devices)
        program = _wrap(module, signature, step)
        text = module.operation.get_asm(binary=True)
    by_device = [[np.ascontiguousarray(row[device]) for device in range(devices) for row in tiles] for tiles in runs]
    for flat in _in_child(text, by_device, timeout) if isolated else (evaluate(text, run) for run in by_device):
        *flat, noted = flat
        _refuse_waiting(step, np.asarray(noted).tolist())
        yield _by_result(flat, signature)
    del program


def _refuse_waiting(step: Lockstep, noted: Sequence[int]) -> None:
    """Raise ShardpassError: SP541 if devices wait for one another, SP540 if that is not known."""
    if not noted[0]:
        return
    waits = step.waiting(noted)
    if waits is None:
        at = step.chosen[noted[0] - 1]
        reason = f"devices choose differently in {at.name}, where a run of all devices in step cannot follow them"
        raise table_runtime.INTERPRETER_FAILED.error(place_of(at.location), reason=reason)
    collective, device, other, parted = waits
    loop = parted.name == "stablehlo.while"
    away = f"{'leaves' if loop else 'takes another branch of'} {parted.name} at {place_of(parted.location)}"
    raise table_runtime.DEVICES_WAIT.error(
        place_of(collective.location), device=device, op=collective.name, other=other, away=away
    )


def own_copy(module: Any) -> Any:
    context = make_context()
    _stablehlo.register_interpreter_dialect(context)
    if isinstance(module, (str, bytes)):
        return parse_module(module, context=context)
    return parse_module(module.operation.get_asm(binary=True), context=context, trusted=True)


# --- the module around the program

# element type -> the type that carries it out, exactly; complex leaves as its two parts
_CARRIERS = {
    **dict.fromkeys(("bf16", "f4E2M1FN", "f8E8M0FNU"), "f32"),
    **{f"f8{name}": "f32" for name in ("E3M4", "E4M3", "E4M3FN", "E4M3FNUZ", "E4M3B11FNUZ", "E5M2", "E5M2FNUZ")},
    **{"i2": "i8", "i4": "i8", "ui2": "ui8", "ui4": "ui8"},
}


def _wrap(module: Any, signature: Signature, step: Lockstep) -> Any:
    """Rename main to @spmd, and make a new main that runs its ops on all devices in ``step``; return the old main."""
    program = main_of(module)
    program.attributes["sym_name"] = ir.StringAttr.get(SPMD)
    program.attributes["sym_visibility"] = ir.StringAttr.get("private")
    inputs = list(program.attributes["function_type"].value.inputs) * signature.num_devices
    with ir.InsertionPoint(module.body):
        main = func.FuncOp("main", ir.FunctionType.get(inputs, []))
        block = main.add_entry_block()
    with ir.InsertionPoint(block):
        values = _in_step(step, program, block.arguments, signature)
        carried = [part for value in values for part in _carried(value)]
        func.ReturnOp(carried)
    main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, [v.type for v in carried]))
    program.operation.detach_from_parent()
    return program


def _copy_what_is_scattered_into(module: Any) -> None:
    """Copy the operands of each scatter, as the interpreter of jaxlib 0.10.2 overwrites them."""
    for top in module.body.operations:
        for op in [inner for inner in every_op(operation(top)) if inner.name == "stablehlo.scatter"]:
            for k in range((len(op.operands) - 1) // 2):
                value = op.operands[k]
                shape = list(value.type.shape)
                with ir.InsertionPoint(op):
                    op.operands[k] = hlo.slice(value, [0] * len(shape), shape, [1] * len(shape))


def _in_step(step: Lockstep, program: Any, arguments: Any, signature: Signature) -> list[Any]:
    """Emit the ops of all devices as one program, which the interpreter can run.

    Returns the results of device 0, then of device 1, and so on; last, the vector that records the first op at which
    the devices chose different branches (``Lockstep.noted``).
    """
    devices, count = signature.num_devices, len(signature.arguments)
    copies = [[arguments[device * count + k] for device in range(devices)] for k in range(count)]
    step.functions[SPMD] = operation(program)
    results = step.function(SPMD, copies)
    return [*(row[device] for device in range(devices) for row in results), step.noted]


def _carried(value: Any) -> list[Any]:
    kind = value.type
    shape, element = list(kind.shape), str(kind.element_type)
    if element.startswith("complex"):
        part = ir.RankedTensorType.get(shape, ir.ComplexType(kind.element_type).element_type)
        return [ir.Operation.create(f"stablehlo.{p}", [part], [value]).result for p in ("real", "imag")]
    if element in _CARRIERS:
        wider = ir.RankedTensorType.get(shape, ir.Type.parse(_CARRIERS[element]))
        return [ir.Operation.create("stablehlo.convert", [wider], [value]).result]
    return [value]


def _by_result(flat: Sequence[Array], signature: Signature) -> list[list[Array]]:
    """Group main's flat results as [result][device], in the program's element types."""
    parts = iter(flat)
    rows: list[list[Array]] = [[] for _ in signature.results]
    for _ in range(signature.num_devices):
        for row, boundary in zip(rows, signature.results, strict=True):
            row.append(_uncarried(parts, boundary))
    return rows


def _uncarried(parts: Any, boundary: Boundary) -> Array:
    if boundary.element.mlir.startswith("complex"):
        whole = np.empty(boundary.tile, boundary.dtype)
        whole.real, whole.imag = next(parts), next(parts)
        return whole
    return np.asarray(next(parts)).astype(boundary.dtype)


# --- running it


def evaluate(module: bytes, arguments: Sequence[Array]) -> list[Array]:
    """Run main of bytecode in this process, which the interpreter may abort."""
    context = make_context()
    _stablehlo.register_interpreter_dialect(context)
    with context, ir.Location.unknown():
        parsed = ir.Module.parse(module)
        (main,) = (f for f in parsed.body.operations if f.attributes["sym_name"].value == "main")
        types = main.attributes["function_type"].value.inputs
        attributes = [
            ir.DenseElementsAttr.get(array, type=kind.element_type, shape=list(kind.shape))
            for array, kind in zip(arguments, types, strict=True)
        ]
        return [np.array(result) for result in _stablehlo.eval_module(parsed, attributes)]


def _in_child(module: bytes, runs: Sequence[Sequence[Array]], timeout: float | None) -> Iterator[list[Array]]:
    """Run ``evaluate`` on each of ``runs`` in a child process; yield their results in order.

    Raises ShardpassError (SP540) with the child's last error message, after the results that it gave.
    """
    command = [sys.executable, "-c", "from shardpass.runtime.interpreter import serve; serve()"]
    given = pickle.dumps((module, [list(run) for run in runs]))
    try:
        child = subprocess.run(command, input=given, capture_output=True, timeout=timeout, check=False)
        out, reason = child.stdout, failure_of(child)
    except subprocess.TimeoutExpired as late:
        out, reason = late.stdout or b"", f"it took more than {timeout} s"
    results = BytesIO(out)
    for _ in runs:
        try:
            yield pickle.load(results)
        except (EOFError, pickle.UnpicklingError):
            raise table_runtime.INTERPRETER_FAILED.error(reason=reason.removeprefix("error: ")) from None


def serve() -> None:
    """Run in the child process: a pickled (module, runs) on stdin, the pickled results of each run on stdout."""
    module, runs = pickle.load(sys.stdin.buffer)
    for run in runs:
        sys.stdout.buffer.write(pickle.dumps(evaluate(module, run)))
        sys.stdout.buffer.flush()
