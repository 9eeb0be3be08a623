"""``@CustomSPMDPartitioning``: JAX's ``custom_partitioning``, with a per-device program by its author.

The call names the author's functions by a key, which only the process that lowered the program can look up
(``ir.jax_private``). They are called as XLA's partitioner calls them:

1. ``sharding_rule`` says which dimensions belong together. Every factor may be split: whatever a device needs of others
   (a sum over a split dimension, a halo) is the author's matter. So factors that a result does not have are reductions
   that complete themselves; padding along them is zero.
2. Without a rule (JAX allows that where GSPMD's annotations are used) ``infer_sharding_from_operands`` is asked: given
   one split dimension of one operand, it answers which dimensions of the results are then split. These form one
   factor. Each other dimension is a factor of its own, and comes as it is split.
3. ``partition``, called once with the split that was chosen, returns the program of one device, and the shardings that
   it takes and gives. Where they differ from those of the split, tiles are redistributed around it.

Example: on x=4, "i j -> i j" with i over x: ``partition`` sees ``P("x", None)`` for the operand and the result, and
its function works on a quarter of the rows.

The collectives of the author's program stand in the partitioned program and not in the plan: they are unknown until
the program is built.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from shardpass.diagnostics.table_passes import CUSTOM_PARTITIONING
from shardpass.element_types import element_type
from shardpass.ir import annotations as names
from shardpass.ir.bodies import move_body
from shardpass.ir.locations import place_of
from shardpass.ir.tensors import retype, shape_of
from shardpass.ops.families.custom_call import SHARDING_RULE, define_target, factors_of
from shardpass.ops.model import LocalPlan, OpModel, Pointwise, Shape, Site
from shardpass.ops.splits.factors import Factor, Kind, Priority, Rule, RuleBuilder
from shardpass.sharding import Sharding, parse_sharding

TARGET = "CustomSPMDPartitioning"
Tensor = tuple[Any, Shape]  # its dtype and shape, for JAX


@dataclass(frozen=True, eq=False)
class CustomPartitioned(Pointwise):
    key: str

    def emit(self, plan: LocalPlan, site: Site) -> Sequence[Any]:
        site.discard()
        split, op = plan.split, site.op
        if split.mesh.manual:
            raise _refused(op, "stands in a region that is manual over some axes")
        given = [split.mesh.sharding(dims) for dims in split.operands]
        wanted = [split.mesh.sharding(dims) for dims in split.results]
        made = _partition(op, self.key, (given, wanted), (split.operand_shapes, split.result_shapes))
        module, takes, gives = made
        with site.before():
            tiles = []
            for tile, shape, source, target in zip(op.operands, split.operand_shapes, given, takes, strict=True):
                tiles.append(_redistributed(tile, shape, source, target))
            with op.context:
                body = ir.Module.parse(module)
            results = move_body(body, op, tiles, site.channels)
            rows = zip(results, split.result_shapes, gives, wanted, strict=True)
            return [_redistributed(*row) for row in rows]


def _redistributed(tile: Any, shape: Shape, source: Sharding, target: Sharding) -> Any:
    if source == target:
        return tile
    attributes = {
        names.FROM: ir.StringAttr.get(str(source)),
        names.TO: ir.StringAttr.get(str(target)),
        names.GLOBAL_TYPE: ir.TypeAttr.get(retype(tile.type, shape)),
        names.CAUSE: ir.StringAttr.get("what the partition function of a custom_partitioning asks for"),
    }
    return names.make_custom_call(names.REDISTRIBUTE, tile, retype(tile.type, target.tile_shape(shape)), attributes)


def _partition(
    op: Any, key: str, shardings: tuple[list[Sharding], list[Sharding]], shapes: tuple[Any, Any]
) -> tuple[bytes, list[Sharding], list[Sharding]]:
    """Ask the author's ``partition`` for one device's program and the shardings of its operands and results."""
    from shardpass.ir import jax_private

    tensors = [
        [(_dtype(value), shape) for value, shape in zip(values, of, strict=True)]
        for values, of in zip((op.operands, op.results), shapes, strict=True)
    ]
    texts = [[_text(s, len(shape)) for s, shape in zip(side, of, strict=True)]
             for side, of in zip(shardings, shapes, strict=True)]  # fmt: skip
    if not jax_private.knows_partition(key):
        raise _refused(op, "was lowered by another process, whose functions are not known here")
    try:
        module, takes, gives = jax_private.call_partition(key, tensors[0], texts[0], tensors[1], texts[1])
        return module, list(map(_read, takes)), list(map(_read, gives))
    except Exception as error:  # the author's function: whatever it raises
        raise _refused(op, f"has a partition function that raised {type(error).__name__}: {error}") from error


def _refused(op: Any, reason: str) -> Exception:
    return CUSTOM_PARTITIONING.error(place_of(op.location), reason=reason)


def _dtype(value: Any) -> Any:
    return element_type(str(value.type.element_type)).dtype


def _text(sharding: Sharding, rank: int) -> str:
    return str(sharding) if rank else "{replicated}"


def _read(text: str) -> Sharding:
    sharding = parse_sharding(text)
    if not isinstance(sharding, Sharding):
        raise ValueError(f"{text} is no sharding of one array")
    return sharding


# ---------------------------------------------------------------- which dimensions belong together


def custom_partitioning(op: Any) -> OpModel[Any] | None:
    key = names.text(op.attributes["backend_config"])
    tensors = [tuple((_dtype(v), shape_of(v)) for v in side) for side in (op.operands, op.results)]
    rule = _written_rule(op) if SHARDING_RULE in op.attributes else _inferred(key, *tensors)
    return CustomPartitioned(rule, key)


def _written_rule(op: Any) -> Rule:
    """Build the rule of case 1, from ``sharding_rule``."""
    rule = sdy.OpShardingRuleAttr(op.attributes[SHARDING_RULE])
    operands, results = factors_of(rule)
    whole = {*rule.need_replication_factors, *rule.blocked_propagation_factors}
    factors = []
    for number, size in enumerate(rule.factor_sizes):
        everywhere = all(any(number in dim for dim in m) for m in results)
        split = Kind.PARALLEL if everywhere and number not in rule.reduction_factors else Kind.REDUCTION
        factors.append(Factor(size, Kind.REPLICATED if number in whole else split))
    sides = tuple(operands), tuple(results)
    return Rule(tuple(factors), *sides, Priority.CONTRACTION, "add", self_completing=True)


@lru_cache(maxsize=256)
def _inferred(key: str, operands: tuple[Tensor, ...], results: tuple[Tensor, ...]) -> Rule:
    """Build the rule of case 2, by asking ``infer_sharding_from_operands``."""
    build = RuleBuilder([len(shape) for _, shape in operands], [len(shape) for _, shape in results])
    mapped: dict[tuple[int, int], int] = {}  # (result, dimension) -> factor
    for index, (_, shape) in enumerate(operands):
        for dim, size in enumerate(shape):
            ends = [
                (place, at)
                for place, at in _inferred_dims(key, index, dim, operands, results)
                if results[place][1][at] == size
            ]
            known = next((mapped[end] for end in ends if end in mapped), None)
            factor = known if known is not None else build.factor(size, Kind.PARALLEL if ends else Kind.REDUCTION)
            build.operand(index, dim, factor)
            for end in ends:
                if mapped.setdefault(end, factor) == factor and known is None:
                    build.result(*end, factor)
    for place, (_, shape) in enumerate(results):
        for at, size in enumerate(shape):
            if (place, at) not in mapped:
                build.result(place, at, build.factor(size))
    return build.build(Priority.CONTRACTION, "add", self_completing=True)


def _inferred_dims(
    key: str, index: int, dim: int, operands: tuple[Tensor, ...], results: tuple[Tensor, ...]
) -> list[tuple[int, int]]:
    """Return the result dimensions that are split if only dimension ``dim`` of operand ``index`` is."""
    from shardpass.ir import jax_private

    try:
        texts = jax_private.call_infer_sharding(key, operands, (index, dim), results)
        shardings = [_read(text) for text in texts]
    except Exception:  # the author's function need not answer; then nothing is known
        return []
    return [
        (place, at)
        for place, (sharding, (_, shape)) in enumerate(zip(shardings, results, strict=True))
        for at, count in enumerate(sharding.tile_counts(len(shape)) if sharding.is_tiled else ())
        if count > 1
    ]


define_target(TARGET, custom_partitioning)
