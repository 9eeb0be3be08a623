"""The door of sharding texts, in every notation: two of them to plan between, or one in a module."""

from __future__ import annotations

import re
from random import Random

from tools.fuzz.door_case import OUT, Case, Inputs, of_module
from tools.fuzz.mutations import NUMBERS
from tools.fuzz.sharding import generated, mutated

_AXES = (("x=4,y=2", 8), ("x=2,y=2,z=2", 8), ("mesh['x'=4,'y'=6]", 24), ("data=12", 12), ("x=1", 1))
_TOKENS = """{ } [ ] ( ) , 'x' "x" ? None P( :(1)2 p0 2 -1 x = é \\"""


def _named_text(rng: Random, axes: str) -> str:
    """``P``, Shardy's and the paper's notation over the axes ``axes``."""
    names = re.findall(r"[a-z]+(?='?=\d)", axes)

    def some() -> list[str]:
        return rng.sample(names, rng.randint(0, len(names)))

    match rng.randrange(3):
        case 0:
            groups = [rng.choice(("None", f"'{rng.choice(names)}'", "(" + "".join(f"'{n}'," for n in some()) + ")"))
                      for _ in range(rng.randint(0, 3))]  # fmt: skip
            extra = rng.choice(("", "", ", unreduced={'x'}", ", reduced={'y'}"))
            return f"P({', '.join(groups)}{extra})"
        case 1:
            dims = [
                f"{{{', '.join([*_sub_axes(rng, some()), *rng.choice(((), ('?',)))])}}}{rng.choice(('', '', 'p1'))}"
                for _ in range(rng.randint(0, 3))
            ]  # fmt: skip
            more = rng.choice(("", "", ', replicated={"x"}', ', unreduced={"y"}'))
            return f"#sdy.sharding<@mesh, [{', '.join(dims)}]{more}>"
        case _:
            quoted = [",".join(f'"{n}"' for n in some()) for _ in range(rng.randint(0, 3))]
            dims = [f"{rng.choice((1, 4, 8, 32))}{{{axes}}}{rng.choice((8, 64))}" for axes in quoted]
            return f"[{', '.join(dims)}]"


def _sub_axes(rng: Random, names: list[str]) -> list[str]:
    return [f'"{name}"' + rng.choice(("", "", ":(1)2")) for name in names]


def _odd_text(rng: Random, text: str) -> str:
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        at = rng.randint(0, len(text))
        text = text[:at] + rng.choice((*_TOKENS.split(), "\n", *NUMBERS[:6])) + text[rng.choice((at, at + 1, at + 3)) :]
    return text


def sharding(rng: Random, seed: int, inputs: Inputs) -> Case:
    """A plan between two texts; or a module that holds one."""
    if rng.random() < 0.4:
        text = generated(rng)
        said = (mutated(rng, text) if rng.random() < 0.4 else text).replace("\\", "\\\\").replace('"', '\\"')
        said = re.sub(r"[\0\n\x0b]", lambda m: f"\\{ord(m[0]):02X}", said)
        rank, count = rng.randint(0, 4), rng.choice((1, 2, 4, 6, 8, 12, 24))
        kind = f"tensor<{''.join(f'{rng.choice((1, 4, 6, 8, 24))}x' for _ in range(rank))}f32>"
        module = (
            f"module attributes {{mhlo.num_partitions = {count} : i32}} {{\n  func.func @main(%x: {kind} "
            f'{{mhlo.sharding = "{said}"}}) -> {kind} {{\n    %0 = stablehlo.sine %x : {kind}\n    '
            f"return %0 : {kind}\n  }}\n}}\n"
        )
        return of_module("sharding", rng, seed, module.encode())
    sizes = ",".join(str(rng.choice((1, 2, 4, 7, 8, 24, 64))) for _ in range(rng.randint(0, 3)))
    kind = f"{rng.choice(('f32', 'bf16', 'i1', 'i4', 'ui8', 'c64', 's32', 'pred'))}[{sizes}]"
    if rng.random() < 0.5:
        axes, _ = rng.choice(_AXES)
        texts = [_odd_text(rng, _named_text(rng, axes)) for _ in range(2)]
        words = [kind, *texts, f"--mesh={axes}"]
    else:
        words = [kind, *(mutated(rng, t) if rng.random() < 0.3 else t for t in (generated(rng), generated(rng)))]
        words = [word.replace("\0", "") for word in words]
        words += rng.choice(([], [], ["--devices=8"], ["--planner=rink"], ["--memory-limit=1MiB"]))
    words += rng.choice(([], [], ["--json"], ["--module"], ["--show"], [f"--svg={OUT}"]))
    words = [w if not w.startswith("-") or w.startswith("--") else f" {w}" for w in words]
    return Case("sharding", seed, "plan", tuple(words), form="svg" if f"--svg={OUT}" in words else "")
