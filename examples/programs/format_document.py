"""The examples of the mhlo.sharding format's document, each as a whole program.

JAX prints shardings in the iota form and refuses sizes that the devices do not divide, so these four are
written by hand. The document's own text is kept, its last example with `last_tile_dim_replicate` after the
brace, and its sizes too: 4x3 does not divide into two column tiles.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Annotated:
    """One `stablehlo.add` of two arguments, all three of them annotated alike."""

    name: str
    about: str
    devices: int
    type: str
    mhlo: str  # the document's sharding
    sdy_mesh: str  # the same, as a mesh and a sharding on it
    sdy: str


TEMPLATE_MHLO = """\
// {about}
module @{name} attributes {{mhlo.num_partitions = {devices} : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func public @main(%0: {type} {{mhlo.sharding = "{mhlo}"}},
                         %1: {type} {{mhlo.sharding = "{mhlo}"}})
      -> ({type} {{mhlo.sharding = "{mhlo}"}}) {{
    %2 = stablehlo.add %0, %1 {{mhlo.sharding = "{mhlo}"}} : {type}
    return %2 : {type}
  }}
}}
"""

TEMPLATE_SDY = """\
// {about}
module @{name} attributes {{mhlo.num_partitions = {devices} : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <[{sdy_mesh}]>
  func.func public @main(%0: {type} {{sdy.sharding = #sdy.sharding<@mesh, {sdy}>}},
                         %1: {type} {{sdy.sharding = #sdy.sharding<@mesh, {sdy}>}})
      -> ({type} {{sdy.sharding = #sdy.sharding<@mesh, {sdy}>}}) {{
    %2 = stablehlo.add %0, %1 {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, {sdy}>]>}} : {type}
    return %2 : {type}
  }}
}}
"""

ANNOTATED = (
    Annotated(
        "format_rows",
        "two devices, each with two rows",
        2,
        "tensor<4x3xi32>",
        "{devices=[2,1]0,1}",
        '"rows"=2',
        '[{"rows"}, {}]',
    ),
    Annotated(
        "format_blocks",
        "eight devices, a 3x2x1 block for each",
        8,
        "tensor<3x4x4xi32>",
        "{devices=[1,2,4]0,1,2,3,4,5,6,7}",
        '"rows"=2, "columns"=4',
        '[{}, {"rows"}, {"columns"}]',
    ),
    Annotated(
        "format_replicated",
        "every device holds the whole",
        8,
        "tensor<4x3xi32>",
        "{replicated}",
        '"copies"=8',
        "[{}, {}]",
    ),
    Annotated(
        "format_partially_replicated",
        "two column tiles (of 2 columns and of 1), each on four devices",
        8,
        "tensor<4x3xi32>",
        "{devices=[1,2,4]0,1,2,3,4,5,6,7} last_tile_dim_replicate",
        '"columns"=2, "copies"=4',
        '[{}, {"columns"}]',
    ),
)


def texts() -> dict[str, tuple[str, str]]:
    """name -> (text with mhlo.sharding, text with sdy.sharding)."""
    return {
        program.name: (TEMPLATE_MHLO.format(**vars(program)), TEMPLATE_SDY.format(**vars(program)))
        for program in ANNOTATED
    }
