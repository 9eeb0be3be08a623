"""Programs of which it is known by their data what can run at once, and their reports on the machine h100."""

from __future__ import annotations

from pathlib import Path

import shardpass
from shardpass.diagnostics import collect
from shardpass.report.explanation import Explanation
from shardpass.report.hlo.explain import explain_hlo
from shardpass.sharding import Mesh

EXAMPLES = Path(shardpass.__file__).parents[1] / "examples"
HEAD = "module attributes {mhlo.num_partitions = 4 : i32} {\n  func.func @main"
ROWS, COLUMNS, WHOLE = "{devices=[4,1]<=[4]}", "{devices=[1,4]<=[4]}", "{replicated}"
A = "tensor<256x64xf32>"
BIG, SMALL = "tensor<8192x8192xf32>", "tensor<4096x1024xf32>"


def explained(text: str, **more: object) -> Explanation:
    with collect():
        return shardpass.explain(text, machine="h100", effort=0, **more)


def beside(with_product: bool) -> str:
    """A small array, mapped and gathered; on each device, where asked for, beside a large product of another."""
    product = f"%p = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : ({BIG}, {BIG}) -> {BIG}"
    return f"""{HEAD}(%x: {BIG} {{mhlo.sharding = "{WHOLE}"}}, %w: {SMALL} {{mhlo.sharding = "{ROWS}"}})
      -> ({BIG} {{mhlo.sharding = "{WHOLE}"}}, {SMALL} {{mhlo.sharding = "{WHOLE}"}}) {{
    {product if with_product else ""}
    %s = stablehlo.tanh %w : {SMALL}
    return {"%p" if with_product else "%x"}, %s : {BIG}, {SMALL}
  }}
}}"""


LOOP = f"""{HEAD}(%x: tensor<256x64xf32> {{mhlo.sharding = "{ROWS}"}})
    -> (tensor<256x64xf32> {{mhlo.sharding = "{ROWS}"}}) {{
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %five = stablehlo.constant dense<5> : tensor<i32>
    %0:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<256x64xf32>
      cond {{
        %c = stablehlo.compare LT, %i, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }} do {{
        %n = stablehlo.add %i, %one : tensor<i32>
        %b = stablehlo.custom_call @Sharding(%a) {{mhlo.sharding = "{COLUMNS}"}} : ({A}) -> {A}
        %t = stablehlo.tanh %b : tensor<256x64xf32>
        %d = stablehlo.custom_call @Sharding(%t) {{mhlo.sharding = "{ROWS}"}} : ({A}) -> {A}
        stablehlo.return %n, %d : tensor<i32>, tensor<256x64xf32>
      }}
    return %0#1 : tensor<256x64xf32>
  }}
}}"""  # fmt: skip

HLO = """HloModule jit_step, is_scheduled=true, num_partitions=4

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %r = f32[] add(%a, %b)
}

%gathers (v: f32[1024,256]) -> f32[1024,1024] {
  %v = f32[1024,256] parameter(0)
  ROOT %ag = f32[1024,1024] all-gather(%v), channel_id=3, replica_groups={{0,1,2,3}}, dimensions={1}
}

%cond (c: (s32[], f32[1024,1024])) -> pred[] {
  %c = (s32[], f32[1024,1024]) parameter(0)
  %k = s32[] get-tuple-element(%c), index=0
  %n = s32[] constant(7)
  ROOT %less = pred[] compare(%k, %n), direction=LT
}

%body (t: (s32[], f32[1024,1024])) -> (s32[], f32[1024,1024]) {
  %t = (s32[], f32[1024,1024]) parameter(0)
  %i = s32[] get-tuple-element(%t), index=0
  %x = f32[1024,1024] get-tuple-element(%t), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %red = f32[1024,1024] all-reduce(%x), channel_id=1, replica_groups={{0,1,2,3}}, to_apply=%add
  %dot = f32[1024,1024] dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %sum = f32[1024,1024] add(%red, %dot)
  ROOT %out = (s32[], f32[1024,1024]) tuple(%next, %sum)
}

ENTRY %main_spmd (p: f32[1024,1024], q: f32[1024,256]) -> f32[1024,1024] {
  %p = f32[1024,1024] parameter(0)
  %q = f32[1024,256] parameter(1)
  %start = ((f32[1024,256]), f32[1024,1024]) async-start(%q), calls=%gathers
  %big = f32[1024,1024] dot(%p, %p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %more = f32[1024,1024] dot(%big, %p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %done = f32[1024,1024] async-done(%start)
  %both = f32[1024,1024] add(%more, %done)
  %z = s32[] constant(0)
  %init = (s32[], f32[1024,1024]) tuple(%z, %both)
  %w = (s32[], f32[1024,1024]) while(%init), condition=%cond, body=%body, backend_config={"known_trip_count":{"n":"7"}}
  ROOT %res = f32[1024,1024] get-tuple-element(%w), index=1
}
"""


def explained_hlo() -> Explanation:
    """HLO on four devices of v5p: an asynchronous gather beside two products, and a loop of seven trips."""
    return explain_hlo(HLO, "m.hlo", mesh=Mesh((("x", 4),)), machine="v5p")
