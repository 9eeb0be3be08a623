"""Pieces of StableHLO text: literals, arrays, regions of reducers and comparators, attributes of LAPACK calls."""

from __future__ import annotations

from collections.abc import Sequence

from tools.values import EXACT, FLOATS, INTEGERS, Type


def fits(element: str, bound: float) -> bool:
    """Whether integers up to ``bound`` are exact; integers wrap around and have no limit."""
    return bound <= EXACT.get(element, float("inf"))


def is_number(element: str) -> bool:
    return element in (*FLOATS, *INTEGERS)


def literal(element: str, value: int) -> str:
    if element == "i1":
        return "true" if value else "false"
    if element.startswith("complex"):
        return f"({value}.0, 0.0)"
    return f"{value}.0" if element in FLOATS else str(value)


def array(values: Sequence[int]) -> str:
    return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"


def body(element: str, op: str) -> str:
    """A region of two scalars that applies ``op``."""
    t = f"tensor<{element}>"
    return (
        f'{{ ^bb0(%p: {t}, %q: {t}): %r = "stablehlo.{op}"(%p, %q) : ({t}, {t}) -> {t} '
        f'"stablehlo.return"(%r) : ({t}) -> () }}'
    )


def comparator(elements: Sequence[str], direction: str = "LT") -> str:
    """A region over as many pairs as there are elements, which compares the first."""
    pairs = [f"%p{i}{side}: tensor<{e}>" for i, e in enumerate(elements) for side in "ab"]
    t = f"tensor<{elements[0]}>"
    return (
        f'{{ ^bb0({", ".join(pairs)}): %r = "stablehlo.compare"(%p0a, %p0b) '
        f"{{comparison_direction = #stablehlo<comparison_direction {direction}>}} : ({t}, {t}) -> tensor<i1> "
        '"stablehlo.return"(%r) : (tensor<i1>) -> () }'
    )


def identity_of(op: str, element: str) -> str:
    """What ``op`` leaves as it is, as MLIR writes it."""
    floats = {"f32": "7F800000", "f64": "7FF0000000000000", "bf16": "7F80", "f16": "7C00"}
    signs = {"f32": "FF800000", "f64": "FFF0000000000000", "bf16": "FF80", "f16": "FC00"}
    if op in ("add", "or", "xor"):
        return literal(element, 0)
    if op == "multiply":
        return literal(element, 1)
    if op == "and":
        return "true" if element == "i1" else str(_limits(element)[1] if element.startswith("ui") else -1)
    if element == "i1":
        return "true" if op == "minimum" else "false"
    if element in FLOATS:
        return "0x" + (signs if op == "maximum" else floats)[element]
    return str(_limits(element)[op == "minimum"])


def _limits(element: str) -> tuple[int, int]:
    bits = int(element.strip("ui"))
    return (0, 2**bits - 1) if element.startswith("ui") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def lapack_call(
    target: str, config: str, operands: Sequence[Type], results: Sequence[Type], batch: int, alias: int
) -> str:
    """The attributes of a call as JAX writes it. ``alias``: the operand whose place the first result takes."""
    layouts = [", ".join(_layout(len(k.shape), len(k.shape) > batch + 1) for k in row) for row in (operands, results)]
    place = "0" if len(results) > 1 else ""
    aliases = (
        f"#stablehlo.output_operand_alias<output_tuple_indices = [{place}], operand_index = {alias}, "
        "operand_tuple_indices = []>"
    )
    return (
        f'call_target_name = "{target}", backend_config = {{{config}}}, api_version = 4 : i32, '
        f'mhlo.frontend_attributes = {{num_batch_dims = "{batch}"}}, operand_layouts = [{layouts[0]}], '
        f"result_layouts = [{layouts[1]}], output_operand_aliases = [{aliases}]"
    )


def _layout(rank: int, matrix: bool) -> str:
    """A matrix is column-major, batches are row-major."""
    order = list(range(rank - 1, -1, -1))
    if matrix:
        order[:2] = [rank - 2, rank - 1]
    text = str(order) if order else ""
    return f"dense<{text if rank != 1 else 0}> : tensor<{rank}xindex>"
