"""References for partitioned programs: the unpartitioned program on one device, and XLA's own partitioner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jaxlib.mlir import ir

from shardpass.diagnostics import table_runtime
from shardpass.importing.read_sdy import stablehlo_constant
from shardpass.importing.split_variadic import split_variadic
from shardpass.ir import annotations as names
from shardpass.ir import jax_private
from shardpass.ir.blocks import moved_out
from shardpass.ir.locations import place_of
from shardpass.ir.tensors import every_op, operation
from shardpass.runtime.compiling import choose_devices, compile_by_client, load, own_copy
from shardpass.runtime.executable import Executable
from shardpass.runtime.partitioned_signature import Signature, read_boundary, whole_signature
from shardpass.sharding import Sharding, parse_sharding

MANUAL_OPS = ("sdy.manual_computation",)
SDY_EDGES = ("sdy.data_flow_edge", "sdy.func_data_flow_edge")
SDY_IDENTITIES = ("sdy.sharding_constraint", "sdy.propagation_barrier", "sdy.reshard", *SDY_EDGES)
SDY_ERASED = ("sdy.mesh", "sdy.sharding_group")


def compile_single(module: Any, device: Any = None) -> Executable:
    """Compile an annotated, unpartitioned module for one device, without its shardings.

    Raises:
        ShardpassError: SP530 where it has a manual region, whose code is that of one device of several; SP101,
            SP505, SP510, SP511 as ``compile`` does.
    """
    copy = own_copy(module)
    devices = choose_devices(1, jax.local_devices() if device is None else [device])
    with copy.context, ir.Location.unknown():
        strip(copy)
    return load(copy, whole_signature(copy), devices)


def manual_region(module: Any) -> str:
    """Return the name of the module's first op of a manual region, "" without any."""
    for op in _ops(module):
        if op.name in MANUAL_OPS:
            return str(op.name)
        if names.custom_call_target(op) in (names.TO_SHARD, names.TO_FULL):
            return f"custom_call @{names.custom_call_target(op)}"
    return ""


def strip(module: Any) -> None:
    """Remove all annotations, in place. Raises ShardpassError (SP530) for a manual region."""
    manual = manual_region(module)
    if manual:
        raise table_runtime.MANUAL_REGION.error(place_of(module.operation.location), op=manual)
    for op in [op for op in _ops(module) if op.name == "sdy.named_computation"]:
        _inline(op)
    for op in list(_ops(module)):
        if op.name in SDY_IDENTITIES or names.custom_call_target(op) == names.CONSTRAINT:
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()
        elif op.name in SDY_ERASED:
            op.erase()
        else:
            _strip_op(stablehlo_constant(op) if op.name == "sdy.constant" else op)
    _strip_op(module.operation)
    module.operation.attributes[names.NUM_PARTITIONS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 1)


def _inline(computation: Any) -> None:
    """Replace an ``sdy.named_computation`` by its body."""
    returned = moved_out(computation.regions[0].blocks[0], computation, computation.operands)
    for result, value in zip(computation.results, returned, strict=True):
        result.replace_all_uses_with(value)
    computation.erase()


def _strip_op(op: Any) -> None:
    for name in list(op.attributes):
        if is_annotation(name):
            del op.attributes[name]
    if op.name == "func.func":
        annotated = names.Signature(op)
        for row in (*annotated.arguments, *annotated.results):
            for name in [n for n in row if is_annotation(n)]:
                del row[name]
        annotated.write()


def is_annotation(name: str) -> bool:
    """Return whether an attribute describes shardings and not values."""
    return name == names.SHARDING or name.startswith(("sdy.", "xla.sdy.", "shardpass."))


def _ops(module: Any) -> Any:
    for op in module.body.operations:
        yield from every_op(operation(op))


# --- XLA's own partitioner


def compile_by_xla(module: Any, devices: Sequence[Any] | None = None, *, donate: bool = False) -> Executable:
    """Compile an annotated, unpartitioned module with XLA's partitioner (Shardy's, where it is annotated so).

    Texts of shardings are made canonical first: XLA drops, or dies of, other forms. ``donate``: results may
    lie in donated arguments, which a run then overwrites.

    Raises:
        ShardpassError: a sharding that does not parse; SP101, SP501 (no number of partitions), SP505, SP510, SP511.
    """
    copy = own_copy(module)
    place = place_of(copy.operation.location)
    loaded, chosen = build_by_xla(copy, devices, donate=donate)
    with copy.context:
        kind = names.main_of(copy).attributes["function_type"].value
    arguments, results = jax_private.boundary_shardings(loaded)

    def boundaries(role: str, types: Any, shardings: list[str]) -> Any:
        # XLA tells nothing of a program on one device
        texts = shardings or ["{replicated}"] * len(types)
        return tuple(
            read_boundary(f"{role} {i}", t, _single(s), place)
            for i, (t, s) in enumerate(zip(types, texts, strict=True))
        )

    signature = Signature(
        len(chosen), boundaries("argument", kind.inputs, arguments), boundaries("result", kind.results, results)
    )
    return Executable(signature, loaded, chosen)


def build_by_xla(module: Any, devices: Sequence[Any] | None, *, donate: bool = False) -> tuple[Any, tuple[Any, ...]]:
    """Compile as ``compile_by_xla``, and change ``module``. Returns XLA's executable and its devices, which may be
    devices that are only described.
    """
    attributes = module.operation.attributes
    if names.NUM_PARTITIONS not in attributes:
        place = place_of(module.operation.location)
        raise table_runtime.NOT_PARTITIONED.error(place, missing=f"it has no `{names.NUM_PARTITIONS}`")
    chosen = choose_devices(attributes[names.NUM_PARTITIONS].value, devices)
    with module.context, ir.Location.unknown():
        canonicalise(module)
        split_variadic(module)
        shardy = any(op.name == "sdy.mesh" for op in _ops(module))
    return compile_by_client(module, chosen, shardy=shardy, donate=donate), chosen


def _single(text: str) -> Sharding:
    sharding = parse_sharding(text)
    assert isinstance(sharding, Sharding)  # of one tensor, not of a tuple
    return sharding


def canonicalise(module: Any) -> None:
    """Rewrite every ``mhlo.sharding`` as XLA prints it, in place."""
    for op in _ops(module):
        if names.SHARDING in op.attributes:
            op.attributes[names.SHARDING] = _canonical(op.attributes[names.SHARDING])
        if op.name == "func.func":
            annotated = names.Signature(op)
            for row in (*annotated.arguments, *annotated.results):
                if names.SHARDING in row:
                    row[names.SHARDING] = _canonical(row[names.SHARDING])
            annotated.write()


def _canonical(attribute: Any) -> Any:
    return ir.StringAttr.get(str(parse_sharding(names.text(attribute))))
