"""Calls that are dropped, doubled, moved or made in another order are not proved, though each result is right.

The calls are of the host, as JAX lowers ``io_callback`` and ``jax.debug.print``, and outfeeds. In each program that is
wrong one can count what the host sees, by hand.
"""

import pytest

from test.unit.proving.pairs import side, verdict

X = side("tensor<4xf32>", "tensor<2xf32>", "{devices=[2]<=[2]}")
SIDES = [X, side("tensor<i1>"), side("tensor<i32>")]
W = "tensor<4xf32>"


def print_(value, index=0, more=""):
    how = f"has_side_effect = true, mhlo.backend_config = {{index = {index} : ui64}}{more}"
    return f"stablehlo.custom_call @xla_ffi_python_cpu_callback({value}) {{{how}}} : ({W}) -> ()"


def ask(result, value, index=0):
    return f"%{result} = {print_(value, index).removesuffix('()')}{W}"


def on(device, body):
    return f"""%d{device} = stablehlo.constant dense<{device}> : tensor<ui32>
    %is{device} = stablehlo.compare EQ, %id, %d{device} : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
    "stablehlo.if"(%is{device}) ({{
      {body}
      stablehlo.return
    }}, {{
      stablehlo.return
    }}) : (tensor<i1>) -> ()"""


def when(which, body, other=""):
    return f"""    "stablehlo.if"({which}) ({{
      {body}
      stablehlo.return
    }}, {{
      {other}
      stablehlo.return
    }}) : (tensor<i1>) -> ()"""


def loop(body, trips=3):
    return f"""    %zero = stablehlo.constant dense<0> : tensor<i32>
    %step = stablehlo.constant dense<1> : tensor<i32>
    %trips = stablehlo.constant dense<{trips}> : tensor<i32>
    %r:2 = stablehlo.while(%i = %zero, %c = %x0) : tensor<i32>, KIND
     cond {{
      %again = stablehlo.compare LT, %i, %trips : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %again : tensor<i1>
    }} do {{
      %next = stablehlo.add %i, %step : tensor<i32>
      %sum = stablehlo.add %c, %c : KIND
      {body}
      stablehlo.return %next, %sum : tensor<i32>, KIND
    }}"""


GATHERED = f"""    %id = stablehlo.partition_id : tensor<ui32>
    %all = "stablehlo.all_gather"(%x0) <{{all_gather_dim = 0 : i64,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
      replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}}> : (tensor<2xf32>) -> {W}
    %twice = stablehlo.add %all, %all : {W}
"""


def outcome(whole, local, *, returned="%x0"):
    whole = f"    {whole}\n    return {returned} : {W}".replace("KIND", W)
    local = f"{GATHERED}    {local}\n    return {returned} : tensor<2xf32>".replace("KIND", "tensor<2xf32>")
    return verdict(whole, local, SIDES, [X])


ONCE = print_("%x0")
NAMED = print_("%x0", more=', mhlo.sharding = "{maximal device=0}"')
TWO = print_("%x0") + "\n    " + print_("%x0", 1)
LOOPED = loop(print_("%x0"))
BRANCHED = when("%x1", print_("%x0"))
PRINT = print_("%all")
RIGHT = {
    "once": (ONCE, on(0, PRINT)),
    "once on the other device": (ONCE, on(1, PRINT)),
    "once on the device that is named": (NAMED, on(0, PRINT)),
    "two without tokens in another order": (TWO, on(0, print_("%all", 1) + "\n" + PRINT)),
    "on two devices": (TWO, on(0, PRINT) + "\n    " + on(1, print_("%all", 1))),
    "in a loop": (LOOPED, loop(on(0, PRINT))),
    "in a branch": (BRANCHED, when("%x1", on(0, PRINT))),
    "in a branch on one device": (BRANCHED, on(0, when("%x1", PRINT))),
    "none": ("", ""),
}
WRONG = {
    "dropped": (ONCE, ""),
    "one of two dropped": (TWO, on(0, PRINT)),
    "added": ("", on(0, PRINT)),
    "doubled": (ONCE, on(0, PRINT + "\n" + PRINT)),
    "on every device": (ONCE, PRINT),
    "on both devices": (ONCE, on(0, PRINT) + "\n    " + on(1, PRINT)),
    "on another device than is named": (NAMED, on(1, PRINT)),
    "of another value": (ONCE, on(0, print_("%twice"))),
    "another call": (ONCE, on(0, print_("%all", 7))),
    "another function": (ONCE, on(0, PRINT.replace("cpu_callback", "gpu_callback"))),
    "another configuration": (ONCE, on(0, PRINT.replace("true,", "true, backend_config = \"no\","))),
    "without its effect": (ONCE, on(0, PRINT.replace("has_side_effect = true", "has_side_effect = false"))),
    "into a branch": (ONCE, when("%x1", on(0, PRINT))),
    "out of a branch": (BRANCHED, on(0, PRINT)),
    "into the other branch": (BRANCHED, when("%x1", "", on(0, PRINT))),
    "into a branch by another value": (BRANCHED, "%n = stablehlo.not %x1 : tensor<i1>\n" + when("%n", on(0, PRINT))),
    "into both branches": (BRANCHED, when("%x1", on(0, PRINT), on(0, PRINT))),
    "out of a loop": (LOOPED, loop("") + "\n    " + on(0, PRINT)),
    "into a loop": (loop("") + "\n    " + ONCE, loop(on(0, PRINT))),
    "into a loop of other trips": (LOOPED, loop(on(0, PRINT), 4)),
    "twice a trip": (LOOPED, loop(on(0, PRINT + "\n" + PRINT))),
    "in the condition": (LOOPED, loop("").replace("%again =", on(0, PRINT) + "\n      %again =")),
    "in a body that counts comparisons": (ONCE, f"""%s = "stablehlo.sort"(%all) ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        {on(0, PRINT)}
        %l = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %l : tensor<i1>
      }}) {{dimension = 0 : i64}} : ({W}) -> {W}"""),
    "a loop that nothing else knows": (ONCE, loop(on(0, PRINT), 1)),
}  # fmt: skip


@pytest.mark.parametrize("case", RIGHT)
def test_the_same_calls_are_proved(case):
    found = outcome(*RIGHT[case])
    assert found.proved, str(found)


@pytest.mark.parametrize("case", WRONG)
def test_other_calls_are_not_proved(case):
    found = outcome(*WRONG[case])
    assert (found.refuted or found.unknown).result is None
    assert found.json()["result"] is None


# ---------------------------------------------------------------- results of calls, and order by tokens

ASK = ask("y", "%x0")
ZERO = f"%none = stablehlo.constant dense<0.0> : {W}"


def asked(value="%all", device=0, index=0):
    call = ask("a", value, index)
    return f"""{ZERO}
    %d = stablehlo.constant dense<{device}> : tensor<ui32>
    %is = stablehlo.compare EQ, %id, %d : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
    %own = "stablehlo.if"(%is) ({{
      {call}
      stablehlo.return %a : {W}
    }}, {{
      stablehlo.return %none : {W}
    }}) : (tensor<i1>) -> {W}
    %y = "stablehlo.reduce_scatter"(%own) <{{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>,
      replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64, use_global_device_ids}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }}) : ({W}) -> tensor<2xf32>"""


def test_the_answer_of_a_call_is_proved():
    assert outcome(ASK, asked(), returned="%y").proved
    assert not outcome(ASK, asked(value="%twice"), returned="%y").proved
    assert not outcome(ASK, asked().replace("dense<0.0>", "dense<1.0>"), returned="%y").proved


T = "!stablehlo.token"


def fed(result, value, after, config="a"):
    return f'%{result} = "stablehlo.outfeed"({value}, %{after}) {{outfeed_config = "{config}"}} : ({W}, {T}) -> {T}'


START = f"%t = stablehlo.create_token : {T}"
CHAIN = f"{START}\n    {fed('u', '%x0', 't')}\n    {fed('v', '%x0', 'u', 'b')}"
FREE = CHAIN.replace("%u)", "%t)")
LOCAL = f"{fed('u', '%all', 't')}\n      {fed('v', '%all', 'u', 'b')}"
TURNED = f"{fed('u', '%all', 't', 'b')}\n      {fed('v', '%all', 'u')}"
CUT = f"{fed('u', '%all', 't')}\n      {fed('v', '%all', 't', 'b')}"
JOINED = f"{fed('u', '%all', 't')}\n      %j = stablehlo.after_all %u, %t : {T}\n      {fed('v', '%all', 'j', 'b')}"
ORDERS = {
    "the chain": (CHAIN, LOCAL, True),
    "joined": (CHAIN, JOINED, True),
    "turned": (CHAIN, TURNED, False),
    "cut": (CHAIN, CUT, False),
    "free, as a chain": (FREE, LOCAL, True),
    "free, turned": (FREE, TURNED, True),
    "free": (FREE, CUT, True),
    "another feed": (CHAIN, LOCAL.replace('"b"', '"c"'), False),
}


@pytest.mark.parametrize("case", ORDERS)
def test_outfeeds_keep_the_order_of_tokens(case):
    whole, local, right = ORDERS[case]
    assert outcome(whole, f"{START}\n    {on(0, local)}").proved is right


def test_sends_to_another_channel_are_not_proved():
    send = f'%u = "stablehlo.send"(%V, %t) {{channel_handle = #stablehlo.channel_handle<handle = 5, type = 2>, is_host_transfer = true}} : ({W}, {T}) -> {T}'  # noqa: E501
    whole, local = f"{START}\n    {send.replace('%V', '%x0')}", send.replace("%V", "%all")
    assert outcome(whole, f"{START}\n    {on(0, local)}").proved
    assert not outcome(whole, f"{START}\n    {on(0, local.replace('handle = 5', 'handle = 6'))}").proved
    assert not outcome(whole, "").proved


INFEED = f'%v, %u = "stablehlo.infeed"(%t) {{infeed_config = ""}} : ({T}) -> ({W}, {T})'


def test_infeeds_are_read_as_often():
    whole = f"{START}\n    {INFEED}"
    assert outcome(whole, f"{START}\n    {on(0, INFEED)}").proved
    assert not outcome(whole, f"{START}\n    {INFEED}").proved
    again = INFEED.replace("%v, %u", "%w, %z").replace("(%t)", "(%u)")
    assert not outcome(whole, f"{START}\n    {on(0, f'{INFEED}{chr(10)}{again}')}").proved


DRAW = "%p = stablehlo.rng %low, %high, %shape, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>"  # noqa: E501
BOUNDS = """%low = stablehlo.constant dense<0.0> : tensor<f32>
    %high = stablehlo.constant dense<1.0> : tensor<f32>
    %shape = stablehlo.constant dense<4> : tensor<1xi64>
    """


def test_random_numbers_are_drawn_as_often():
    """A draw moves the state of the generator on, whether or not anything reads it."""
    assert outcome(BOUNDS + DRAW, BOUNDS + DRAW).proved
    assert not outcome(BOUNDS + DRAW, BOUNDS).proved
    assert not outcome(BOUNDS + DRAW, BOUNDS + DRAW + "\n    " + DRAW.replace("%p", "%q")).proved
    assert not outcome(BOUNDS + DRAW, BOUNDS + on(1, DRAW)).proved


# ---------------------------------------------------------------- manual regions

REGION = f"""%r = sdy.manual_computation(%x0) in_shardings=[<@m, [{{"x"}}]>] out_shardings=[<@m, [{{"x"}}]>]
      manual_axes={{"x"}} (%c: tensor<2xf32>) {{
      {print_("%c").replace(W, "tensor<2xf32>")}
      sdy.return %c : tensor<2xf32>
    }} : ({W}) -> {W}"""
MESH = '  sdy.mesh @m = <["x"=2]>'
EACH = print_("%x0").replace(W, "tensor<2xf32>")


@pytest.mark.parametrize(
    ("local", "right"),
    [(EACH, True), ("", False), (on(0, EACH), False), (on(0, PRINT), False), (EACH + "\n    " + EACH, False)],
)
def test_each_device_of_a_region_makes_its_call(local, right):
    whole, given = f"    {REGION}\n    return %x0 : {W}", f"{GATHERED}    {local}\n    return %x0 : tensor<2xf32>"
    assert verdict(whole, given, SIDES, [X], whole_functions=MESH).proved is right


# ---------------------------------------------------------------- ordered calls of JAX, whose tokens main takes

TOKENS = """module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%t: !stablehlo.token, %x: tensor<4xf32> {mhlo.sharding = "{devices=[2]<=[2]}"})
      -> (!stablehlo.token, tensor<4xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) {
    %a:2 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%t, %x) {has_side_effect = true,
      mhlo.backend_config = {index = 0 : ui64}} : (!stablehlo.token, tensor<4xf32>) -> (!stablehlo.token, tensor<4xf32>)
    %b:2 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%a#0, %x) {has_side_effect = true,
      mhlo.backend_config = {index = 1 : ui64}} : (!stablehlo.token, tensor<4xf32>) -> (!stablehlo.token, tensor<4xf32>)
    %c = stablehlo.add %a#1, %b#1 : tensor<4xf32>
    return %b#0, %c : !stablehlo.token, tensor<4xf32>
  }
}"""


def test_ordered_calls_of_shardpass_s_own_program():
    import shardpass
    from shardpass.proving import prove

    local = str(shardpass.run_pipeline(TOKENS, "partition"))
    assert prove(TOKENS, local, refute=False).proved
    second = local[: local.index("index = 1")].rindex("xla_ffi_python_cpu_callback(") + len(
        "xla_ffi_python_cpu_callback("
    )
    end = local.index(",", second)
    assert local[second:end].endswith("#0")
    first = local.index("xla_ffi_python_cpu_callback(") + len("xla_ffi_python_cpu_callback(")
    cut = local[:second] + local[first : local.index(",", first)] + local[end:]
    assert not prove(TOKENS, cut, refute=False).proved
