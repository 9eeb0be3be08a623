"""Convert arrays to another sharding by shardpass's planner: the JAX primitive ``redistribute``.

Where the sharding of the argument is known (eagerly, or by ``source=``), the plan's own collectives are lowered into
a manual region: XLA adds nothing to them. Arrays on other devices move by messages (``between``). Under ``jit``
without ``source`` it is a constraint, which whoever partitions the program acts on: shardpass inside ``use()``, else
XLA.

As a function it is the identity: linear, its own inverse; its gradient goes the way back. Arrays of a tree are moved
one by one, those between devices together.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import lru_cache
from typing import Any

import jax
from jax.interpreters import ad, batching, mlir
from jax.sharding import AxisType, NamedSharding, PartitionSpec, Sharding

from shardpass.cost.chosen import content_text
from shardpass.cost.machine import Machine
from shardpass.diagnostics import table_jax
from shardpass.ir import jax_private
from shardpass.jax.between import is_between, move
from shardpass.jax.here import machine_of_mesh
from shardpass.jax.notation import from_jax
from shardpass.jax.scope import current
from shardpass.redistribute import plan_redistribution
from shardpass.redistribute.program.lower import emit
from shardpass.redistribute.terms.limit import read_limit


def redistribute(
    x: Any,
    sharding: Any,
    *,
    source: Any = None,
    machine: str | os.PathLike[str] | Machine | None = None,
    donate: bool = False,
    memory_limit: int | str | None = "max",
) -> Any:
    """Move ``x`` to ``sharding``. Works eagerly and under jit, grad and vmap.

    Arrays on other devices than their targets move together, by messages between devices (docs/device_sets.md); this
    works outside of jit only. All other arrays move one by one.

    Args:
        x: an array of any rank and element type, or a tree of arrays.
        sharding: the target: a ``NamedSharding``, or a ``PartitionSpec`` over the mesh of ``jax.set_mesh``. It must
            divide each dimension evenly. For a tree: one sharding for all arrays, or a tree of shardings, which may be
            a prefix of the tree of arrays.
        source: the current sharding, in the same notations. Not needed for arrays outside of jit, or on meshes with
            Explicit axes.
        machine: the machine for which the redistribution is planned, as in ``use``. The default is the machine of
            ``use``, else that of the devices of the mesh.
        donate: free each array on other devices than its target as soon as it has arrived, unless another leaf of the
            tree shares its buffers.
        memory_limit: with ``donate=True``, the bytes of moving arrays that may be alive at the same time on a device;
            the arrays then move in several waves. "max" moves all at once.

    Raises:
        ShardpassError: SP610 (not a NamedSharding of all dimensions), SP611 (does not divide a dimension), SP612 (the
            tree of shardings does not fit the tree of arrays), SP412 (invalid memory limit), SP901 to SP903 (unknown
            machine); for arrays on other devices SP413 (exceeds the memory limit), SP616 (devices of another job),
            SP617 (a transfer failed).
        ShardingError: if a sharding has more dimensions than its array.

    Exceptions do not lose arrays, including KeyboardInterrupt and exceptions in signal handlers: ``error.arrays`` lists
    the leaves, each complete at its new or its old place.
    """
    leaves, tree = jax.tree.flatten(x)
    targets, sources = _for_each(sharding, x, "sharding"), _for_each(source, x, "source")
    limit = read_limit(memory_limit)
    text = "" if machine is None else content_text(machine)
    ends = [_checked(*each) for each in zip(leaves, targets, sources, strict=True)]
    away = {
        k: target for k, (leaf, (target, _)) in enumerate(zip(leaves, ends, strict=True)) if is_between(leaf, target)
    }
    try:
        for k, (target, known) in enumerate(ends):
            if k not in away:
                leaves[k] = _redistribute(leaves[k], target, known, text)
        if away:
            move(leaves, away, text, limit, donate)
        return jax.tree.unflatten(tree, leaves)
    except BaseException as error:
        if away:  # no call: Python runs the handlers of signals after calls, so that no second exception comes between
            error.arrays = leaves  # type: ignore[attr-defined]
        raise


def _for_each(sharding: Any, tree: Any, name: str) -> list[Any]:
    """Return the sharding of each leaf of ``tree``, from one sharding or a prefix tree of them."""

    def is_one(part: Any) -> bool:
        return part is None or isinstance(part, Sharding | PartitionSpec)

    if is_one(sharding) or not jax.tree.leaves(tree):
        return [sharding] * len(jax.tree.leaves(tree))
    try:
        each = jax.tree.broadcast(sharding, tree, is_leaf=is_one)
    except ValueError as error:
        raise table_jax.OTHER_TREE.error(name=name, reason=str(error).split("\n", 1)[0]) from None
    leaves: list[Any] = jax.tree.leaves(each, is_leaf=is_one)
    return leaves


def _checked(x: Any, sharding: Any, source: Any) -> tuple[Any, Any]:
    """Return target and source as shardings over meshes."""
    sharding, source = _over_the_mesh(sharding), _over_the_mesh(source)
    for given in (sharding, *(() if source is None else (source,))):
        _check(given, jax.numpy.shape(x))
    return sharding, source


def _redistribute(x: Any, sharding: Any, source: Any, machine: str) -> Any:
    x = jax.numpy.asarray(x)
    return _moved(x, _explicit(x, sharding) if source is None else source, sharding, machine)


def _over_the_mesh(sharding: Any) -> Any:
    """Return a ``PartitionSpec`` over the mesh of ``jax.set_mesh``; other values unchanged."""
    if not isinstance(sharding, PartitionSpec):
        return sharding
    mesh: Any = jax.sharding.get_abstract_mesh()
    with suppress(ValueError):  # under jit only the abstract mesh is known
        mesh = jax.sharding.get_mesh()
    if mesh.empty:
        raise table_jax.NOT_A_SHARDING.error(given=f"{sharding} outside of any mesh")
    return NamedSharding(mesh, sharding)


def _moved(x: Any, source: Any, target: NamedSharding, machine: str) -> Any:
    """Bind the primitive and a constraint, which shows JAX the devices of a program without arguments."""
    y = redistribute_p.bind(x, source=source, target=target, machine=machine)
    return jax.lax.with_sharding_constraint(y, target) if isinstance(y, jax.core.Tracer) else y


def _explicit(x: Any, target: NamedSharding) -> NamedSharding | None:
    """Return the sharding in the type of ``x``, if all axes of the target's mesh are explicit."""
    known = jax.typeof(x).sharding
    if set(target.mesh.axis_types) != {AxisType.Explicit} or known.mesh != target.mesh.abstract_mesh:
        return None
    return NamedSharding(target.mesh, known.spec)


def _check(sharding: Any, shape: tuple[int, ...]) -> None:
    if not isinstance(sharding, NamedSharding):
        raise table_jax.NOT_A_SHARDING.error(given=f"a {type(sharding).__name__}")
    ours = from_jax(sharding, len(shape))
    if ours.unreduced or ours.notes.open:
        raise table_jax.NOT_A_SHARDING.error(given=f"{sharding.spec}, which leaves dimensions open or unreduced")
    for dim, (size, count) in enumerate(zip(shape, ours.tile_counts(len(shape)), strict=True)):
        if size % count:
            raise table_jax.INDIVISIBLE.error(
                sharding=sharding.spec, dim=dim, shape=list(shape), size=size, count=count
            )


# --- the primitive

redistribute_p = jax_private.new_primitive("shardpass_redistribute")
local_p = jax_private.new_primitive("shardpass_redistribute_local")  # the same on tiles, inside a manual region


def _impl(x: Any, *, source: Any, target: NamedSharding, machine: str) -> Any:
    known = x.sharding if isinstance(x.sharding, NamedSharding) else source
    if known is None or x.is_fully_replicated or not _same_devices(known, target):
        return jax.device_put(x, target)  # from one device, or to other devices: no collective can
    return _program(known, target, machine)(x)


@lru_cache(maxsize=1024)
def _program(source: NamedSharding, target: NamedSharding, machine: str) -> Any:
    return jax.jit(
        lambda x: redistribute_p.bind(x, source=source, target=target, machine=machine),
        in_shardings=source,
        out_shardings=target,
    )


def _same_devices(one: NamedSharding, other: NamedSharding) -> bool:
    """Return whether both shardings number the same devices in the same order, as one program requires."""
    return list(one.mesh.devices.flat) == list(other.mesh.devices.flat)


def _staged(x: Any, *, source: Any, target: NamedSharding, machine: str) -> Any:
    """Implement the primitive by a reshard or constraint, or by a region on tiles if the source is known."""
    if source is None or source.mesh != target.mesh:
        if AxisType.Explicit in target.mesh.axis_types:
            return jax.sharding.reshard(x, target)
        return jax.lax.with_sharding_constraint(x, target)
    return jax.shard_map(
        lambda tile: local_p.bind(tile, shape=x.shape, source=source, target=target, machine=machine),
        mesh=target.mesh,
        in_specs=source.spec,
        out_specs=target.spec,
        check_vma=False,
    )(x)


def _abstract(x: Any, *, source: Any, target: NamedSharding, machine: str) -> Any:
    if AxisType.Explicit not in target.mesh.axis_types:
        return x
    spec = PartitionSpec(*target.spec, *[None] * (x.ndim - len(target.spec)))
    return x.update(sharding=NamedSharding(target.mesh.abstract_mesh, spec))


redistribute_p.def_impl(_impl)
redistribute_p.def_abstract_eval(_abstract)
mlir.register_lowering(redistribute_p, mlir.lower_fun(_staged, multiple_results=False))


def _transpose(cotangent: Any, _: Any, *, source: Any, target: NamedSharding, machine: str) -> list[Any]:
    back = (None, target) if source is None else (target, source)
    return [_moved(cotangent, back[0], back[1], machine)]


def _jvp(primals: Any, tangents: Any, *, source: Any, target: NamedSharding, machine: str) -> tuple[Any, Any]:
    """Redistribute the array and its tangent alike, as redistribution is linear.

    The transpose returns a gradient to the sharding of ``x``, if that sharding is known at this point.
    """
    (x,), (dx,) = primals, tangents
    y = redistribute_p.bind(x, source=source, target=target, machine=machine)
    if isinstance(dx, ad.Zero):
        return y, ad.Zero.from_primal_value(y)
    here = None if isinstance(x, jax.core.Tracer) else x.sharding
    back = here if source is None and isinstance(here, NamedSharding) else source
    return y, _moved(dx, back, target, machine)


ad.deflinear2(redistribute_p, _transpose)
ad.primitive_jvps[redistribute_p] = _jvp


def _batched(arguments: Any, dims: Any, *, source: Any, target: NamedSharding, machine: str) -> tuple[Any, int]:
    (x,), (dim,) = arguments, dims

    def widen(sharding: Any) -> Any:
        if sharding is None:
            return None
        spec: list[Any] = list(sharding.spec) + [None] * (x.ndim - 1 - len(sharding.spec))
        return NamedSharding(sharding.mesh, PartitionSpec(*spec[:dim], None, *spec[dim:]))

    return _moved(x, widen(source), widen(target), machine), dim


batching.primitive_batchers[redistribute_p] = _batched


# --- on tiles


def _local_shape(x: Any, *, shape: tuple[int, ...], source: NamedSharding, target: NamedSharding, machine: str) -> Any:
    return x.update(shape=from_jax(target, len(shape)).tile_shape(shape))


def _lower_local(ctx: Any, tile: Any, *, shape: tuple[int, ...], source: Any, target: Any, machine: str) -> list[Any]:
    ends = (from_jax(sharding, len(shape)) for sharding in (source, target))
    planned_for = machine or current().machine or machine_of_mesh(target.mesh)
    plan = plan_redistribution(shape, str(tile.type.element_type), *ends, machine=planned_for)
    channels = iter(ctx.module_context.new_channel, None)
    value = emit(plan.program, tile, channels, cause="shardpass.jax.redistribute")
    if not jax.config.jax_use_shardy_partitioner:
        _mark_manual(mlir.ir.InsertionPoint.current.block)
    return [value]


def _mark_manual(block: Any) -> None:
    """Mark `partition_id` as manual, which tells GSPMD that it differs by device."""
    for op in block.operations:
        if op.operation.name == "stablehlo.partition_id":
            op.attributes["mhlo.sharding"] = mlir.ir.StringAttr.get("{manual}")


local_p.def_abstract_eval(_local_shape)
mlir.register_lowering(local_p, _lower_local)
