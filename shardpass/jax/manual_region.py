"""Wrap a partitioned module as one manual region over whole arrays, the form that JAX takes back.

JAX expects whole arrays at the border of a program, with shardings that XLA reports. So main keeps the whole types,
its arguments and results are annotated with their shardings, and everything between is manual, which XLA's
partitioner leaves alone.

Cases: Shardy's annotations (`sdy.manual_computation` over all axes of one mesh) and GSPMD's
(`SPMDFullToShardShape` and `SPMDShardToFullShape` around each argument and result). A region of Shardy's has one
mesh, and with it one order of devices; where arguments and results have several, GSPMD's annotations say them.
Example, 4 devices: `jax.device_put(x, ...)` to the same devices in the reverse order takes `{devices=[4]3,2,1,0}` and
returns `{devices=[4]<=[4]}`. Nothing else in the module is Shardy's by then, so XLA may read all of it as GSPMD's.

Partial sums and tokens, which JAX's main has beside whole arrays, come back by ``beside_arrays``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from shardpass.diagnostics import table_jax
from shardpass.ir import annotations as names
from shardpass.ir.locations import first_names, parsed
from shardpass.ir.tensors import every_op, operation, splat
from shardpass.jax.beside_arrays import Rows, tokens_of, with_tokens, without_summands
from shardpass.ops.tiles.summing import zero_text
from shardpass.runtime.manual_computation import MESH_NAME, Around, for_xla, surround
from shardpass.runtime.partitioned_signature import Boundary, Signature, read_signature
from shardpass.sharding import Mesh, Sharding, common_mesh, parse_mesh, parse_sharding, sdy_text


def wrap(module: Any, original: Any, *, shardy: bool) -> tuple[Signature, bool]:
    """Rewrite a partitioned ``ir.Module`` in place to take and return whole arrays.

    Returned are what it took and returned before, and whether it has Shardy's annotations: where ``shardy`` asks for
    them and they can say the shardings.

    ``original``: the module that JAX lowered; its main's attributes other than shardings (donation, names of
    results) are copied.

    Raises:
        ShardpassError: SP604 (a boundary that does not divide), SP605 (a partial sum, which GSPMD has no word for,
            beside a sharding for which Shardy has none), and as ``read_signature``.
    """
    signature = without_summands(module, read_signature(module, partial_sums=shardy))
    for boundary in (*signature.arguments, *signature.results):
        if not boundary.even:
            shape, sharding = list(boundary.shape), boundary.sharding
            raise table_jax.UNEVEN.error(where=boundary.where, shape=shape, sharding=sharding)
    kept = names.Signature(names.main_of(original))
    tokens = tokens_of(module)
    shardy = shardy and (_has_partial_sums(signature) or _says_all(_one_mesh(module, signature), signature))
    with module.context, ir.Location.unknown():
        first_names(module.operation)
        sides = [_kept(side, module.context) for side in (kept.arguments, kept.results)]
        arguments, results = (
            [row for place, row in enumerate(side) if place not in places]
            for side, places in zip(sides, tokens, strict=True)
        )
        (_by_shardy if shardy else _by_gspmd)(module, signature, arguments, results)
        if names.INSPECTED in module.operation.attributes:
            _inspect(module, signature, shardy=shardy)
        if any(tokens):
            with_tokens(module, sides, tokens)
        for name in [n for n in module.operation.attributes if n.startswith("shardpass.")]:
            del module.operation.attributes[name]
    module.operation.verify()
    return signature, shardy


def _inspect(module: Any, signature: Signature, *, shardy: bool) -> None:
    """Add ``@InspectSharding`` calls on whole arrays with the shardings that partitioning chose.

    XLA tells the user's functions, to which the calls lead, and drops the calls and their arrays of zeros.
    """
    (block,) = operation(names.main_of(module)).regions[0].blocks
    end = operation(block.operations[len(block.operations) - 1])
    mesh = _one_mesh(module, signature)
    for row in module.operation.attributes[names.INSPECTED]:
        if "config" not in row:
            continue
        kind, sharding = row["type"].value, parse_sharding(row["sharding"].value)
        with ir.InsertionPoint(end), parsed(row["place"].value):
            value = splat(kind, zero_text(kind.element_type))
            if shardy:
                text = _sdy("an inspected array", kind.rank, sharding, mesh)
                value = sdy.ShardingConstraintOp(value, ir.Attribute.parse(text)).result
            else:
                value = _custom_call(names.CONSTRAINT, value, kind, ir.StringAttr.get(str(sharding)))
            attributes = {"call_target_name": ir.StringAttr.get("InspectSharding"), "backend_config": row["config"]}
            attributes["has_side_effect"] = ir.BoolAttr.get(True)
            ir.Operation.create("stablehlo.custom_call", [kind], [value], attributes)


def _kept(rows: Rows, context: Any) -> Rows:
    """Return all attributes except shardings, in the module's own context."""
    return [
        {n: ir.Attribute.parse(str(a), context) for n, a in row.items() if n not in (names.SHARDING, "sdy.sharding")}
        for row in rows
    ]


def _whole_types(boundaries: Sequence[Boundary]) -> list[Any]:
    return [ir.Type.parse(boundary.type) for boundary in boundaries]


def _annotate(function: Any, arguments: Rows, results: Rows) -> None:
    annotated = names.Signature(function)
    annotated.arguments, annotated.results = arguments, results
    annotated.write()


# --- Shardy


def _by_shardy(module: Any, signature: Signature, arguments: Rows, results: Rows) -> None:
    mesh = _one_mesh(module, signature)
    into, out = (
        [Around(ir.Type.parse(b.type), _sdy(b.where, len(b.shape), b.sharding, mesh)) for b in side]
        for side in (signature.arguments, signature.results)
    )

    def enter(value: Any, index: int) -> Any:
        return _kept_partial(value, signature.arguments[index], into[index].sharding)

    main = surround(module, mesh, into, out, enter)
    for row, around in zip((*arguments, *results), (*into, *out), strict=True):
        row["sdy.sharding"] = ir.Attribute.parse(around.sharding)
    _annotate(main, arguments, results)


def _kept_partial(value: Any, boundary: Boundary, text: str) -> Any:
    """Constrain an argument ``value`` to its own sharding. Shardy of jaxlib 0.12 refuses a partial sum that enters a
    region without a constraint.
    """
    if not boundary.sharding.unreduced:
        return value
    return sdy.ShardingConstraintOp(value, ir.Attribute.parse(text)).result


def _one_mesh(module: Any, signature: Signature) -> Mesh:
    """Return the pipeline's mesh if it expresses every boundary, else the coarsest that does; names are those XLA
    reads.
    """
    text = names.get_text(module.operation, names.MESH)
    prefer = parse_mesh(text) if text else None
    if prefer is not None and _says_all(prefer, signature):
        return for_xla(prefer)
    shardings = _tiled(signature)
    mesh = common_mesh(shardings, prefer)
    return Mesh((("devices", signature.num_devices),)) if mesh is None else for_xla(mesh)


def _has_partial_sums(signature: Signature) -> bool:
    return any(b.sharding.unreduced for b in (*signature.arguments, *signature.results))


def _says_all(mesh: Mesh, signature: Signature) -> bool:
    return all(sharding.on(mesh) is not None for sharding in _tiled(signature))


def _tiled(signature: Signature) -> list[Sharding]:
    return [b.sharding for b in (*signature.arguments, *signature.results) if b.sharding.is_tiled]


def _sdy(where: str, rank: int, sharding: Any, mesh: Mesh) -> str:
    """Return the sharding of an array of ``rank`` as Shardy's attribute, with every dimension closed."""
    if sharding.is_replicated:
        sharding = Sharding.tiled(mesh, [()] * rank)
    named = sharding.on(mesh) if sharding.is_tiled or sharding.is_replicated or sharding.unreduced else None
    if named is None:
        raise table_jax.NO_AXES.error(where=where, sharding=sharding)
    return sdy_text(named, MESH_NAME)


# --- GSPMD


def _by_gspmd(module: Any, signature: Signature, arguments: Rows, results: Rows) -> None:
    main = names.main_of(module)
    (block,) = operation(main).regions[0].blocks
    manual = ir.StringAttr.get(names.MANUAL)
    for op in [op for op in every_op(operation(main)) if op.name == "stablehlo.partition_id"]:
        op.attributes[names.SHARDING] = manual  # it takes nothing that would tell XLA so
    with ir.InsertionPoint.at_block_begin(block):
        for argument, boundary in zip(block.arguments, signature.arguments, strict=True):
            _enter(argument, boundary, manual)
    last = operation(block.operations[len(block.operations) - 1])
    with ir.InsertionPoint(last):
        for index, boundary in enumerate(signature.results):
            last.operands[index] = _leave(last.operands[index], boundary, manual)
    kind = ir.FunctionType.get(_whole_types(signature.arguments), _whole_types(signature.results))
    main.attributes["function_type"] = ir.TypeAttr.get(kind)
    boundaries = (*signature.arguments, *signature.results)
    for row, boundary in zip((*arguments, *results), boundaries, strict=True):
        row[names.SHARDING] = ir.StringAttr.get(str(boundary.sharding))
    _annotate(main, arguments, results)


def _enter(argument: Any, boundary: Boundary, manual: Any) -> None:
    """Give the argument its global type, and convert it to the tile of a device for its uses."""
    tile = argument.type
    argument.set_type(ir.Type.parse(boundary.type))
    whole = _custom_call(names.CONSTRAINT, argument, argument.type, ir.StringAttr.get(str(boundary.sharding)))
    local = _custom_call(names.TO_SHARD, whole, tile, manual)
    argument.replace_all_uses_except(local, [operation(whole.owner)])


def _leave(value: Any, boundary: Boundary, manual: Any) -> Any:
    local = _custom_call(names.CONSTRAINT, value, value.type, manual)
    return _custom_call(names.TO_FULL, local, ir.Type.parse(boundary.type), ir.StringAttr.get(str(boundary.sharding)))


def _custom_call(target: str, operand: Any, result: Any, sharding: Any) -> Any:
    attributes = {
        "call_target_name": ir.StringAttr.get(target),
        "backend_config": ir.StringAttr.get(""),
        names.SHARDING: sharding,
    }
    return ir.Operation.create("stablehlo.custom_call", [result], [operand], attributes).result
