"""Pairs of a whole program and a program of one device, from the text of their bodies."""

from shardpass.proving import prove

MANUAL = 'mhlo.sharding = "{{manual}}", shardpass.global_type = {}, shardpass.sharding = "{}"'


def whole_text(body, arguments, results, functions=""):
    """``arguments``, ``results``: rows of (type, type of a tile, sharding); arguments are %x0, %x1, .."""
    given = ", ".join(f"%x{k}: {row[0]}" for k, row in enumerate(arguments))
    kinds = ", ".join(row[0] for row in results)
    return f"module {{\n  func.func @main({given}) -> ({kinds}) {{\n{body}\n  }}\n{functions}\n}}"


def local_text(body, arguments, results, functions="", devices=2):
    def side(row):
        return f"{row[1]} {{{MANUAL.format(row[0], row[2])}}}"

    given = ", ".join(f"%x{k}: {side(row)}" for k, row in enumerate(arguments))
    kinds = ", ".join(map(side, results))
    head = f"module attributes {{mhlo.num_partitions = {devices} : i32}}"
    return f"{head} {{\n  func.func @main({given}) -> ({kinds}) {{\n{body}\n  }}\n{functions}\n}}"


def verdict(whole, local, arguments, results, functions="", *, refute=False, whole_functions=""):
    one = whole_text(whole, arguments, results, whole_functions)
    return prove(one, local_text(local, arguments, results, functions), refute=refute)


def side(kind, tile=None, sharding="{replicated}"):
    return kind, tile or kind, sharding


def all_reduce(result, operand, kind="tensor<4xf32>", channel=1, groups="[[0, 1]]"):
    rows = groups.count("[") - 1
    shape = f"{rows}x{(groups.count(',') + 1) // rows}"
    return f"""%{result} = "stablehlo.all_reduce"(%{operand}) <{{
      channel_handle = #stablehlo.channel_handle<handle = {channel}, type = 1>,
      replica_groups = dense<{groups}> : tensor<{shape}xi64>, use_global_device_ids}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }}) : ({kind}) -> {kind}"""
