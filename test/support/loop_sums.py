"""A loop that adds up products which are split over their contraction, as text."""

from __future__ import annotations

TRIPS = 5
P = "tensor<16x32xf32>"
ADD = f"%s = stablehlo.add %acc, %p : {P}"


def program(
    body: str = ADD, condition: str = "", returned: str = "%s", carried: str = "%zeros", behind: str = ""
) -> str:
    """A loop that carries ``%acc``; ``%p`` is a product split over its contraction, of the trip's slice of ``%xs``."""
    xs, x, w = "tensor<5x16x64xf32>", "tensor<16x64xf32>", "tensor<64x32xf32>"
    return f"""
    module attributes {{mhlo.num_partitions = 4 : i32, shardpass.mesh = "mesh['x'=4]"}} {{
      func.func @main(%xs: {xs} {{mhlo.sharding = "{{devices=[1,1,4]<=[4]}}"}},
          %w: {w} {{mhlo.sharding = "{{devices=[4,1]<=[4]}}"}}, %r: {P} {{mhlo.sharding = "{{replicated}}"}})
          -> ({P} {{mhlo.sharding = "{{replicated}}"}}) {{
        %zero = stablehlo.constant dense<0> : tensor<i32>
        %one = stablehlo.constant dense<1> : tensor<i32>
        %five = stablehlo.constant dense<{TRIPS}> : tensor<i32>
        %zeros = stablehlo.constant dense<0.0> : {P}
        %out:2 = stablehlo.while(%i = %zero, %acc = {carried}) : tensor<i32>, {P}
        cond {{
          %more = stablehlo.compare LT, %i, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
          {condition or "stablehlo.return %more : tensor<i1>"}
        }} do {{
          %cut = stablehlo.dynamic_slice %xs, %i, %zero, %zero, sizes = [1, 16, 64] :
            ({xs}, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x64xf32>
          %x = stablehlo.reshape %cut : (tensor<1x16x64xf32>) -> {x}
          %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({x}, {w}) -> {P}
          {body}
          %next = stablehlo.add %i, %one : tensor<i32>
          stablehlo.return %next, {returned} : tensor<i32>, {P}
        }}
        {behind or f"return %out#1 : {P}"}
      }}
    }}
    """
