"""The doors of words: pipelines, and command lines, whose options are those of the parsers."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import cache
from random import Random

from tools.fuzz.door_case import GIVEN, OUT, Case, Inputs
from tools.fuzz.mutations import NAMES, NUMBERS

# ---------------------------------------------------------------- pipelines

_SPEECH = "4 true false off none max 16GiB h100 cpu rink best all memory 1,2 x=2"
_MLIRS = "cse canonicalize symbol-dce inline sccp no-such-pass strip-debuginfo loop-invariant-code-motion"
_ODD = "{|}|(|)|,|=| |\"|'|builtin.module(|func.func(|any(|{}|()|\0|é|\\"  # between bars


@cache
def _options() -> Mapping[str, tuple[str, ...]]:
    """Pass -> the options that it has."""
    from shardpass.pipeline import registry

    found = {name: registry.find(name) for name in registry.own_names()}
    return {name: tuple(o.spelling for o in cls.options()) for name, cls in found.items() if cls is not None}


def _element(rng: Random, depth: int = 0) -> str:
    from shardpass.pipeline.named import NAMED

    how = rng.random()
    if how < 0.15 and depth < 4:
        inner = ",".join(_element(rng, depth + 1) for _ in range(rng.randint(0, 3)))
        return f"{rng.choice(('builtin.module', 'func.func', 'any', 'x.y'))}({inner})"
    if how < 0.35:
        return rng.choice(_MLIRS.split()) + rng.choice(("", "", "", "{max-iterations=3}", "{top-down=maybe}"))
    named = how < 0.65
    name = rng.choice(sorted(NAMED if named else _options()))
    known = sorted({o for options in _options().values() for o in options}) if named else _options()[name]
    said = [
        rng.choice(
            (f"{option}={rng.choice(_SPEECH.split())}", f"{option}={rng.choice(NUMBERS)}", option, f'{option}="a b"')
        )
        for option in rng.choices(known or ["no-such"], k=rng.choice((0, 0, 1, 1, 2)))
    ]
    return name + (f"{{{' '.join(said)}}}" if said or rng.random() < 0.1 else "")


def _pipeline_text(rng: Random) -> str:
    text = ",".join(_element(rng) for _ in range(rng.choice((1, 1, 1, 2, 3))))
    if rng.random() < 0.3:
        text = f"builtin.module({text})"
    for _ in range(rng.choice((0, 0, 1, 2))):
        at = rng.randint(0, len(text))
        text = (
            text[:at]
            + rng.choice(_ODD.split("|")) * rng.choice((1, 1, 1, 200))
            + text[rng.choice((at, at, at + 1, at + 5)) :]
        )
    return text.replace("\0", "")  # no command line holds one


def pipeline(rng: Random, seed: int, inputs: Inputs) -> Case:
    """A pipeline on a good module, given in one of three ways."""
    text, files = _pipeline_text(rng), {GIVEN: rng.choice(inputs["text"])}
    given = rng.random()
    if given < 0.15:
        text = text.replace("'", "").replace("\n", "")
        files[GIVEN] += f"\n// configuration: --pass-pipeline='{text}'\n".encode()
        return Case("pipeline", seed, "opt", (GIVEN, "--run-reproducer", "-o", OUT), files, "stablehlo")
    if text.startswith("-"):
        text = "x" + text
    words = (GIVEN, "-o", OUT, f"--pass-pipeline={text}") if given < 0.4 else (GIVEN, text, "-o", OUT)
    return Case("pipeline", seed, "opt", words, files, "stablehlo")


# ---------------------------------------------------------------- command lines

_FILES = (
    GIVEN,
    GIVEN,
    GIVEN,
    "absent",
    ".",
    "",
    "no/such/folder",
    "/dev/null",
    "/dev/full",
    "a" * 300,
    "m.toml",
    "é\udc80",
)
_VALUES: Mapping[str, tuple[str, ...]] = {
    "AXES": ("x=2,y=2", "x=4", "x=0", "x", "x=2,x=2", "=", "mesh['x'=4]", "x=1000000007", "x=2,,y=2",
             "a=1" + ",b=1" * 99),
    "N": ("0", "1", "4", "999999999", "1" * 40, "-1", "x", "٣", "1e3", ""),
    "S": ("0", "7", "-1", "x", "99999999999999999999"),
    "BYTES": ("none", "max", "0", "1", "16GiB", "1e9", "-1", "5XB", "1" * 40, "nan", "", "12.5MiB"),
    "FORM": ("stablehlo", "bytecode", "vhlo", "vhlo=1.8.0", "vhlo=99.0.0", "hlo", "vhlo=", "elf", ""),
    "M": ("default", "cpu", "h100", "gb200", "pod", "no-such", "m.toml", "absent.toml", "", ".toml"),
    "P": ("default", "cpu", "h100", "a100", "pod", "no-such", "m.toml", "absent.toml", "", ".toml"),
    "WAYS": ("", "jax", "xla,", "shardy,jax"),  # the true ones take seconds each
    "WHICH": ("off", "all", "memory", "h100", "maybe", ""),
    "BOOL": ("true", "false", "0", "maybe", ""),
    "PASS": ("cse", "shardpass-import", "no-such", "", "{", "partition"),
    "PIPELINE": ("partition", "import", "cse", "no-such", "", "check,", "shardpass-import,cse"),
    "TYPE": ("f32[8,8]", "bf16[7]", "i4[16]", "f32[]", "f32[0,4]", "f32", "f32[8", "q7[2]",
             "f32[99999999999999999999]"),
}  # fmt: skip
_SHARDINGS = (
    "{replicated}", "{devices=[4,1]<=[4]}", "{devices=[1,4]<=[4]}", "{devices=[2,2]<=[2,2]T(1,0)}", "P('x', None)",
    "P(('x','y'))", "{manual}", "", "[8, 8]", '#sdy.sharding<@mesh, [{"x"}, {}]>', "{devices=[2,1]<=[2]}",
)  # fmt: skip


@cache
def _parsers() -> Mapping[str, argparse.ArgumentParser]:
    from tools.catalogue import commands

    scripts = [(name, parser) for name, parser in commands().items() if name.startswith("shardpass-")]
    return {name.removeprefix("shardpass-"): parser for name, parser in scripts}


def arguments(rng: Random, seed: int, inputs: Inputs) -> Case:
    """Any options of a command, with good values and others; the files are good ones."""
    parsers = _parsers()
    name = rng.choice([n for n in parsers if n != "run"] * 3 + ["run"])  # which starts XLA's devices
    actions = [action for action in parsers[name]._actions if not isinstance(action, argparse._VersionAction)]
    words = []
    for action in rng.choices([a for a in actions if a.option_strings], k=rng.choice((0, 1, 1, 2, 3, 5))):
        flag = rng.choice(action.option_strings)
        if action.nargs == 0:
            words.append([flag])
        else:
            value = _value(rng, action)
            words.append([f"{flag}={value}"] if rng.random() < 0.4 and flag.startswith("--") else [flag, value])
    for action in actions:
        if not action.option_strings and rng.random() < 0.95:
            words.append([_value(rng, action)])
    if rng.random() < 0.1:
        words.append([rng.choice(("--no-such", "-x", "--", "-", "", "é", *NAMES[4:8], *NUMBERS[:3]))])
    if rng.random() < 0.3:
        rng.shuffle(words)
    files = {GIVEN: rng.choice(inputs["text"]), "m.toml": rng.choice(inputs["machine"])}
    line = tuple(word.replace("\0", "") for group in words for word in group)
    return Case("arguments", seed, name, line, files, stdin=files[GIVEN], usage=True, writes=True)


def _value(rng: Random, action: argparse.Action) -> str:
    if action.choices and rng.random() < 0.9:
        return str(rng.choice(list(action.choices)))
    what = str(action.metavar or "")
    if rng.random() < 0.05:
        return rng.choice((*NUMBERS, *NAMES))
    if what in _VALUES:
        return rng.choice(_VALUES[what])
    if what in ("SOURCE", "TARGET"):
        return rng.choice(_SHARDINGS)
    if action.dest in ("output", "html", "svg", "stablehlo") or "reproducer" in action.dest or "dir" in action.dest:
        return rng.choice(
            (OUT, OUT, OUT, "-", ".", "no/such/folder", "/dev/null", "/dev/full", "", "a" * 300, GIVEN + "2")
        )
    return rng.choice(_FILES)
