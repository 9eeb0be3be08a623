"""A plan lists the collectives that its emit builds, for every split of a sample of each form of each op."""

from __future__ import annotations

import pytest
from support.plans import check_plans


def function(arguments: str, lines: str, result: str) -> str:
    """A function of ``arguments`` (types) that returns %r, the value of the last of ``lines``."""
    given = ", ".join(f"%{name}: tensor<{kind}>" for name, kind in zip("abcd", arguments.split(), strict=False))
    return f"func.func @main({given}) -> tensor<{result}> {{ {lines}  return %r : tensor<{result}> }}"


def pooled(combiner: str, source: str, result: str, about: str, init: str = "0.0") -> str:
    """A reduce_window with the attributes ``about``."""
    return function(
        source,
        f"""
        %z = stablehlo.constant dense<{init}> : tensor<f32>
        %r = "stablehlo.reduce_window"(%a, %z) <{{{about}}}> ({{
          ^bb0(%u: tensor<f32>, %v: tensor<f32>):
            %s = stablehlo.{combiner} %u, %v : tensor<f32>
            stablehlo.return %s : tensor<f32>
        }}) : (tensor<{source}>, tensor<f32>) -> tensor<{result}>
        """,
        result,
    )


def convolved(window: str, source: str, kernel: str, result: str, groups: str = "feature_group_count = 1 : i64") -> str:
    """A convolution with two spatial dimensions."""
    batch = "" if "batch_group_count" in groups else ", batch_group_count = 1 : i64"
    return function(
        f"{source} {kernel}",
        f"""%r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {{{window}}} {{{groups}{batch}}} : (tensor<{source}>, tensor<{kernel}>) -> tensor<{result}>""",
        result,
    )


def selected(source: str, result: str, window: str) -> str:
    """The gradient of max pooling."""
    block = "({{ ^bb0(%u: tensor<f32>, %v: tensor<f32>): %s = {} stablehlo.return %s : tensor<{}> }}"
    select = block.format("stablehlo.compare GE, %u, %v : (tensor<f32>, tensor<f32>) -> tensor<i1>", "i1")
    scatter = block.format("stablehlo.add %u, %v : tensor<f32>", "f32").removeprefix("(")
    return function(
        f"{result} {source}",
        f"""
        %z = stablehlo.constant dense<0.0> : tensor<f32>
        %r = "stablehlo.select_and_scatter"(%a, %b, %z) <{{{window}}}> {select}, {scatter})
          : (tensor<{result}>, tensor<{source}>, tensor<f32>) -> tensor<{result}>
        """,
        result,
    )


def spliced(sizes: str, pieces: str, result: str) -> str:
    kinds = ", ".join(f"tensor<{kind}>" for kind in sizes.split())
    names = ", ".join(f"%{name}" for name, _ in zip("abcd", sizes.split(), strict=False))
    rows = pieces.count("]")
    about = f"shardpass.dimension = 0 : i64, shardpass.pieces = dense<[{pieces}]> : tensor<{rows}x3xi64>"
    call = f"stablehlo.custom_call @shardpass.splice({names}) {{{about}}} : ({kinds}) -> tensor<{result}>"
    return function(sizes, f"%r = {call}", result)


def pad(low: str, high: str, interior: str, source: str, result: str) -> str:
    return function(
        source,
        f"""%z = stablehlo.constant dense<0.0> : tensor<f32>
        %r = stablehlo.pad %a, %z, low = [{low}], high = [{high}], interior = [{interior}]
          : (tensor<{source}>, tensor<f32>) -> tensor<{result}>""",
        result,
    )


def one(op: str, source: str, result: str) -> str:
    """An op of one operand, with its attributes between the operand and the types."""
    return function(source, f"%r = {op} : (tensor<{source}>) -> tensor<{result}>", result)


def window(**rows: tuple[int, ...]) -> str:
    """Attributes that are dense arrays; ``padding`` by pairs."""
    padding = rows.pop("padding", ())
    said = [f"{name} = array<i64: {', '.join(map(str, row))}>" for name, row in rows.items()]
    if padding:
        pairs = [f"[{low}, {high}]" for low, high in zip(padding[::2], padding[1::2], strict=True)]
        said.append(f"padding = dense<[{', '.join(pairs)}]> : tensor<{len(pairs)}x2xi64>")
    return ", ".join(said)


SENDING = {
    "slice": one("stablehlo.slice %a [4:16, 0:10]", "16x10xf32", "12x10xf32"),
    "slice, half": one("stablehlo.slice %a [8:16, 0:3]", "16x10xf32", "8x3xf32"),
    "slice, strided": one("stablehlo.slice %a [2:16:2, 1:10:3]", "16x10xf32", "7x3xf32"),
    "slice, of large tiles": one("stablehlo.slice %a [1:63, 1:63]", "64x64xf32", "62x62xf32"),
    "slice, uneven": one("stablehlo.slice %a [1:13, 2:7]", "13x7xi4", "12x5xi4"),
    "pad": pad("1, 2", "1, 0", "0, 0", "8x12xf32", "10x14xf32"),
    "pad, negative": pad("-1, -2", "3, 0", "0, 0", "8x12xf32", "10x10xf32"),
    "pad, interior": pad("1, 0", "0, 2", "1, 2", "8x5xf32", "16x15xf32"),
    "reverse": one("stablehlo.reverse %a, dims = [0, 1]", "8x13xf32", "8x13xf32").replace("(tensor<8x13xf32>) -> ", ""),
    "concatenate": function(
        "8x4xf32 5x4xf32",
        "%r = stablehlo.concatenate %a, %b, dim = 0 : (tensor<8x4xf32>, tensor<5x4xf32>) -> tensor<13x4xf32>",
        "13x4xf32",
    ),
    "roll": spliced("16x4xf32", "[0, 15, 16], [0, 0, 15]", "16x4xf32"),
    "ends exchanged": spliced("9x4xf32 7x4xf32", "[0, 3, 9], [1, 0, 4]", "10x4xf32"),
    "reshape of rows": one("stablehlo.reshape %a", "6x4x7xf32", "8x3x7xf32"),
    "reshape of two groups": one("stablehlo.reshape %a", "5x4x9x2xf32", "20x6x3xf32"),
    "pooling": pooled("add", "13x16xf32", "6x8xf32", window(window_dimensions=(3, 2), window_strides=(2, 2))),
    "pooling, padded": pooled(
        "add", "16x16xf32", "16x8xf32", window(window_dimensions=(3, 3), window_strides=(1, 2), padding=(1, 1, 1, 1))
    ),
    "pooling, dilated": pooled(
        "add",
        "8x9xf32",
        "13x7xf32",
        window(window_dimensions=(3, 2), base_dilations=(2, 1), window_dilations=(1, 2)),
    ),
    "cumulative": pooled("add", "16x10xf32", "16x10xf32", window(window_dimensions=(16, 10), padding=(15, 0, 0, 9))),
    "convolution": convolved("pad = [[1, 1], [1, 1]]", "2x16x12x3xf32", "3x3x3x4xf32", "2x16x12x4xf32"),
    "convolution, strided": convolved("stride = [2, 2]", "2x17x13x3xf32", "3x3x3x4xf32", "2x8x6x4xf32"),
    "convolution, transposed": convolved(
        "pad = [[1, 1], [2, 2]], lhs_dilate = [2, 3]", "2x8x7x3xf32", "3x3x3x4xf32", "2x15x21x4xf32"
    ),
    "convolution, cut": convolved("pad = [[-1, 1], [0, -2]]", "2x16x12x3xf32", "3x3x3x4xf32", "2x14x8x4xf32"),
    "convolution, long kernel": convolved("pad = [[1, 1], [0, 0]]", "2x16x12x3xf32", "16x11x3x4xf32", "2x3x2x4xf32"),
    "convolution, turned kernel": convolved(
        "pad = [[1, 1], [0, 0]], reverse = [true, true]", "2x16x12x3xf32", "15x11x3x4xf32", "2x4x2x4xf32"
    ),
    "convolution, in groups": convolved(
        "pad = [[1, 1], [1, 1]]", "2x8x8x4xf32", "3x3x1x8xf32", "2x8x8x8xf32", "feature_group_count = 4 : i64"
    ),
    "convolution, batch in groups": convolved(
        "pad = [[1, 1], [1, 1]]",
        "4x8x8x3xf32",
        "3x3x3x8xf32",
        "1x8x8x8xf32",
        "feature_group_count = 1 : i64, batch_group_count = 4 : i64",
    ),
    "select_and_scatter": selected(
        "5x6xf32", "11x12xf32", window(window_dimensions=(3, 2), window_strides=(2, 2), padding=(0, 0, 0, 0))
    ),
}

SILENT = {
    "slice of nothing": one("stablehlo.slice %a [4:12, 0:0]", "16x0xf32", "8x0xf32"),
    "slice to nothing": one("stablehlo.slice %a [4:4, 0:6]", "16x6xf32", "0x6xf32"),
    "pad of nothing": pad("3, 0", "3, 0", "0, 0", "0x8xf32", "6x8xf32"),
    "reverse of nothing": one("stablehlo.reverse %a, dims = [0]", "8x0xf32", "8x0xf32").replace(
        "(tensor<8x0xf32>) -> ", ""
    ),
    "a splice of one whole array": spliced("16x4xf32", "[0, 0, 16]", "16x4xf32"),
    "concatenate of one array": function(
        "8x4xf32", "%r = stablehlo.concatenate %a, dim = 0 : (tensor<8x4xf32>) -> tensor<8x4xf32>", "8x4xf32"
    ),
    "reshape": one("stablehlo.reshape %a", "8x6xf32", "2x4x6xf32"),
    "transpose": one("stablehlo.transpose %a, dims = [1, 0]", "8x6xf32", "6x8xf32"),
    "broadcast_in_dim": one("stablehlo.broadcast_in_dim %a, dims = [1]", "6xf32", "8x6xf32"),
    "bitcast_convert": one("stablehlo.bitcast_convert %a", "8x6xf32", "8x6x4xi8"),
    "add": function("8x6xf32 8x6xf32", "%r = stablehlo.add %a, %b : tensor<8x6xf32>", "8x6xf32"),
    "optimization_barrier": function("8x6xf32", "%r = stablehlo.optimization_barrier %a : tensor<8x6xf32>", "8x6xf32"),
    "dot_general": function(
        "4x8x6xf32 4x6x5xf32",
        "%r = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1]"
        " : (tensor<4x8x6xf32>, tensor<4x6x5xf32>) -> tensor<4x8x5xf32>",
        "4x8x5xf32",
    ),
}


@pytest.mark.turns(2)
@pytest.mark.parametrize("name", SENDING)
def test_what_is_planned_is_built(name: str) -> None:
    assert check_plans(SENDING[name])


@pytest.mark.parametrize("name", SILENT)
def test_nothing_is_sent(name: str) -> None:
    assert not check_plans(SILENT[name])


def test_a_halo_of_both_sides_is_two_permutes_of_one_row() -> None:
    """Windows of 3 rows of 64 floats: each side sends a row, half of it where the columns are split in two as well."""
    about = window(window_dimensions=(3, 1), padding=(1, 1, 0, 0))
    found = check_plans(pooled("add", "48x64xf32", "48x64xf32", about))
    assert {(c.kind, c.bytes) for c in found} == {("collective_permute", 64 * 4), ("collective_permute", 32 * 4)}
