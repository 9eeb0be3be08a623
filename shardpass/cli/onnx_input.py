"""ONNX models as input of commands that take modules: options, and conversion to a module."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shardpass.ir.doors import LargeFile
    from shardpass.onnx import Model
    from shardpass.onnx.stablehlo.bridge import Program


def add_onnx_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that takes an ONNX model."""
    add = parser.add_argument_group("ONNX models").add_argument
    add(
        "--sharding",
        action="append",
        default=[],
        type=_pair,
        metavar="NAME=SHARDING",
        help="the sharding of a value over the axes of --mesh, as in 'x=P(\"data\")', in addition to the model; NAME "
        "may be a pattern. Repeatable",
    )
    add(
        "--shardings",
        metavar="FILE",
        help='a JSON file with such shardings: {"mesh": "data=4", "shardings": {"x": "P(..)"}}',
    )
    add(
        "--mesh",
        metavar="AXES",
        help="the mesh of these shardings, as in data=4,model=2; in explain also the mesh of HLO without one",
    )
    add(
        "--dim",
        action="append",
        default=[],
        type=_pair,
        metavar="NAME=SIZE",
        help="the size of a symbolic dimension, as in N=8. Repeatable",
    )
    add(
        "--constant",
        action="append",
        default=[],
        type=_pair,
        metavar="INPUT=VALUE",
        help="make an input a constant, as in axes=[0,1]. Repeatable",
    )


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no NAME=VALUE")
    return name, value


def is_model(data: bytes | LargeFile, file: str) -> bool:
    """Return whether the input is an ONNX model."""
    from shardpass.onnx.model import looks_like_a_model

    return looks_like_a_model(data if isinstance(data, bytes) else b"", file)


def model_of(parser: argparse.ArgumentParser, data: bytes | LargeFile, file: str, args: argparse.Namespace) -> Model:
    """Read the ONNX model, and add the shardings and values of the options.

    Raises ShardpassError as ``read_model``; a value that is no JSON, or no number, is bad usage.
    """
    from shardpass.onnx import read_model

    mesh, shardings = _shardings(parser, args)
    raw = data if isinstance(data, bytes) else data.read()
    dims = {name: _json(parser, "--dim", value) for name, value in args.dim}
    if wrong := next((name for name, size in dims.items() if type(size) is not int), None):
        parser.error(f"--dim {wrong}={dims[wrong]}: give an integer")
    constants = {name: _json(parser, "--constant", value) for name, value in args.constant}
    return read_model(bytes(raw), file, dims=dims, constants=constants, shardings=shardings, mesh=mesh)


def _shardings(parser: argparse.ArgumentParser, args: argparse.Namespace) -> tuple[Any, dict[str, str]]:
    """Return the mesh and the shardings, from the file first and then from the command line."""
    import json

    from shardpass.cli.common import module_at

    mesh, shardings = args.mesh, dict(args.sharding)
    if args.shardings is None:
        return mesh, shardings
    data, _ = module_at(args.shardings)
    try:
        content = json.loads(data if isinstance(data, bytes) else data.read())
        beside = dict(content["shardings"])
    except (ValueError, KeyError, TypeError):
        parser.error(f'--shardings {args.shardings}: give JSON, as in {{"mesh": "x=4", "shardings": {{"a": "P(..)"}}}}')
    return mesh or content.get("mesh"), {**beside, **shardings}


def _json(parser: argparse.ArgumentParser, option: str, text: str) -> Any:
    import json

    try:
        return json.loads(text)
    except ValueError:
        parser.error(f"{option} {text}: give a number or a list, as in [0,1]")


def as_module(
    parser: argparse.ArgumentParser, data: bytes | LargeFile, file: str, args: argparse.Namespace
) -> bytes | LargeFile:
    """Return the program of an ONNX model as a module; return other input unchanged."""
    if not is_model(data, file):
        return data
    return program_of(model_of(parser, data, file, args)).text.encode()


def program_of(model: Model) -> Program:
    """Return the program of a model, after printing remarks on the model."""
    from shardpass.diagnostics import report
    from shardpass.onnx import to_stablehlo

    for remark in model.remarks:
        report(remark)
    program: Program = to_stablehlo(model)
    return program
