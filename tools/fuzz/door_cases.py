"""The doors, and how a case of each is made: from its door, its seed and the good inputs (``door_inputs``) alone.

So one that fails can be run again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from tools.fuzz.door_case import GIVEN, OUT, Case, Inputs, edited, of_module
from tools.fuzz.door_shardings import sharding
from tools.fuzz.door_words import arguments, pipeline
from tools.fuzz.mutations import changed_bytes, changed_text


def make(door: str, seed: int, inputs: Inputs) -> Case:
    """The case ``seed`` of ``door``."""
    return DOORS[door](Random(f"{door}:{seed}"), seed, inputs)


def _text(rng: Random, seed: int, inputs: Inputs) -> Case:
    return of_module("text", rng, seed, edited(rng, inputs["text"]))


def _hlo(rng: Random, seed: int, inputs: Inputs) -> Case:
    return of_module("hlo", rng, seed, edited(rng, inputs["hlo"]))


def _binary(kind: str) -> Callable[[Random, int, Inputs], Case]:
    def case(rng: Random, seed: int, inputs: Inputs) -> Case:
        one = rng.choice(inputs[kind])
        # now and then a piece of another form: of these, any may stand in a file
        other = rng.choice(inputs[kind if rng.random() < 0.8 else rng.choice(sorted(inputs))] or [b""])
        return of_module(kind, rng, seed, one if rng.random() < 0.05 else changed_bytes(rng, one, other))

    return case


def _machine(rng: Random, seed: int, inputs: Inputs) -> Case:
    files = {"m.toml": edited(rng, inputs["machine"]), GIVEN: rng.choice(inputs["text"])}
    how = rng.randrange(8)
    if how < 6:
        words = ("f32[64,64]", "{devices=[4,2]<=[8]}", "{devices=[2,4]<=[4,2]T(1,0)}", "--machine=m.toml", "--json")
        return Case("machine", seed, "plan", words, files)
    if how == 6:
        return Case("machine", seed, "explain", (GIVEN, "--machine", "m.toml", "--json"), files)
    return Case("machine", seed, "opt", (GIVEN, "propagate{machine=m.toml}", "-o", OUT), files, "stablehlo")


def _onnx(rng: Random, seed: int, inputs: Inputs) -> Case:
    data = rng.choice(inputs["onnx"])
    data = _edited_model(rng, data) if rng.random() < 0.6 else changed_bytes(rng, data, rng.choice(inputs["onnx"]))
    words, form = rng.choice(
        (
            ((), ""),
            (("--strict", "--extended"), ""),
            (("--print-inferred",), ""),
            (("--format", "json"), ""),
            (("-o", OUT), "onnx"),
            (("--stablehlo", OUT), "stablehlo"),
        )
    )
    return Case("onnx", seed, "check", ("m.onnx", *words), {"m.onnx": data}, form)


def _edited_model(rng: Random, data: bytes) -> bytes:
    """The model as protobuf's text, with words changed; as it was where protobuf reads none of what is tried."""
    import onnx
    from google.protobuf import text_format

    text = text_format.MessageToString(onnx.load_model_from_string(data))
    for _ in range(20):
        changed = changed_text(rng, text, text)
        try:
            model = text_format.Parse(changed, onnx.ModelProto())
            made: bytes = model.SerializeToString(deterministic=True)
        except (text_format.ParseError, UnicodeError, ValueError, RecursionError):
            continue
        if changed != text:
            return made
    return data


DOORS: Mapping[str, Callable[[Random, int, Inputs], Case]] = {
    "text": _text,
    "bytecode": _binary("bytecode"),
    "portable": _binary("portable"),
    "export": _binary("export"),
    "hlo": _hlo,
    "proto": _binary("proto"),
    "pipeline": pipeline,
    "arguments": arguments,
    "sharding": sharding,
    "machine": _machine,
    "onnx": _onnx,
}
