"""The reference pages of commands and of the Python names, from the parsers and from the public surface."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator

import shardpass
from tools.catalogue import commands

INPUT = (
    "Every command takes a module in any of the formats below, as a file or on stdin. What a file is shows in its "
    "bytes: MLIR text, MLIR bytecode, a portable StableHLO artefact (VHLO), a `jax.export` artefact, HLO text, or an "
    "HLO proto, as `--xla_dump_to` writes them too."
)
STATUS = (
    "Exit status: 0, success; 1, bad input, with one error on stderr that names its place and a remedy; 2, bad usage; "
    "130, interrupted (ended by SIGINT); 141, the reader of the output went away."
)


def commands_page() -> str:
    lines = ["# Commands", "", INPUT, "", STATUS, ""]
    for name, parser in commands().items():
        lines += [f"## {name}", "", *_plain(parser.description or ""), ""]
        lines += ["| argument | |", "|---|---|"]
        lines += [f"| {shown} | {_cell(text)} |" for shown, text in _arguments(parser)]
        lines += ["", *_epilog(parser.epilog or ""), ""]
    return "\n".join(lines)


def _arguments(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    for action in parser._actions:
        if "--help" in action.option_strings or action.help == argparse.SUPPRESS:
            continue
        value = str(action.metavar or "")
        if not value and action.choices:
            value = "{" + ",".join(map(str, action.choices)) + "}"
        takes = action.nargs != 0 and value
        if action.option_strings:
            words = [f"{word} {value}" if takes else word for word in action.option_strings]
        else:
            words = [f"[{value}]" if action.nargs == "?" else value]
        yield ", ".join(f"`{word}`" for word in words), (action.help or "") % {"default": action.default}


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def _epilog(text: str) -> Iterator[str]:
    """Yields the paragraphs; those with indented lines as code, below their first line."""
    for paragraph in text.split("\n\n"):
        first, *rest = paragraph.splitlines()
        yield from (first.capitalize(), "", *(f"  {line}" for line in rest), "") if rest else (_cell(first), "")


def _plain(text: str) -> list[str]:
    return [_cell(text)] if text else []


PYTHON = {
    "Programs": ("run_pipeline", "compile", "Executable", "suggest", "explain"),
    "Shardings": (
        "parse_sharding",
        "draw",
        "Sharding",
        "TupleSharding",
        "Mesh",
        "AxisRef",
        "ShardingError",
        "ShardingParseError",
    ),
    "Redistribution": ("plan_redistribution", "Plan", "plan_reshard_tree", "TransferPlan"),
    "Proofs": ("prove",),
    "Errors": ("ShardpassError", "Diagnostic"),
}
TESTING = ("assert_collectives", "collectives", "Collectives", "CollectivesError")
JAX = ("use", "install", "uninstall", "stats", "FallbackWarning", "redistribute", "partition", "pin")
# what people build on, beside the names of the package itself, by where each is imported from
EXTENDING = (
    "shardpass.pipeline.base.ModulePass",
    "shardpass.pipeline.registry.register",
    "shardpass.ops.model.OpModel",
    "shardpass.ops.families.custom_call.define_target",
)
READING = (
    "shardpass.report.explanation.Explanation",
    "shardpass.report.rows.Row",
    "shardpass.report.findings.Finding",
    "shardpass.report.diff.Difference",
    "shardpass.advise.suggest.report.Suggestion",
    "shardpass.planning.plan.plan.ProgramPlan",
    "shardpass.proving.verdict.Verdict",
    "shardpass.cost.machine.Machine",
    "shardpass.cost.machine.Work",
    "shardpass.cost.collective.Collective",
)


def python_page() -> str:
    """The names of the public surface, each as a request to mkdocstrings, which writes what their docstrings say."""
    public = shardpass._PUBLIC
    known = {name for names in PYTHON.values() for name in names}
    sections = {**PYTHON, "More": tuple(sorted(set(public) - known))}
    lines = [
        "# Python",
        "",
        "The names of the first sections are imported from `shardpass` and are **stable**: a release that changes",
        "one keeps the old form, with a `DeprecationWarning`, until the next minor version. The names under",
        "*Extending* and *What comes back* are **provisional**: each may change with a minor version, and the",
        "changelog says how. A name that this page does not have may move without a word.",
        "",
    ]
    for title, names in sections.items():
        if shown := [name for name in names if name in public]:
            lines += [f"## {title}", ""]
            for name in shown:
                lines += [f"::: {public[name]}.{name}", ""]
    lines += [
        "## Inside JAX",
        "",
        "Of `shardpass.jax`; the page [Use shardpass inside JAX](../jax.md) has examples.",
        "",
    ]
    for name in JAX:
        lines += [f"::: {getattr(importlib.import_module('shardpass.jax'), name).__module__}.{name}", ""]
    lines += ["## In tests", ""]
    lines += ["Of `shardpass.testing`; [Keep a step from regressing](../howto/regressions.md) has examples.", ""]
    lines += [line for name in TESTING for line in (f"::: {shardpass.testing._PUBLIC[name]}.{name}", "")]
    lines += [
        "## Extending",
        "",
        "Provisional. [Write a pass](../howto/pass.md) and [an op](../contributing.md) use these.",
        "",
    ]
    lines += [line for name in EXTENDING for line in (f"::: {name}", "")]
    lines += [
        "## What comes back",
        "",
        "Provisional. What functions of this page return, and what these consist of.",
        "",
    ]
    lines += [line for name in READING for line in (f"::: {name}", "")]
    return "\n".join(lines)
