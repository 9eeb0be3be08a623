"""The verdict of XLA's own parser on sharding texts, asked of jaxlib in child processes.

Some texts abort the process that parses them, and others abort it when the tile assignment is asked for. Therefore a
forked child answers, with one line before and one line after each dangerous step, and a new child takes over where the
last one died. shardpass does not use this module: XLA is the witness that the parser of shardpass is held to.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """``outcome``: ok, error (refused), abort (died parsing) or abort_after_parse (died on the tile assignment)."""

    text: str
    outcome: str
    canonical: str | None = None
    tile_dims: tuple[int, ...] | None = None
    devices: tuple[int, ...] | None = None
    v2: str | None = None
    types: tuple[str, ...] = ()

    @property
    def accepted(self) -> bool:
        return self.outcome in ("ok", "abort_after_parse")


def verdicts(texts: Iterable[str]) -> Iterator[Verdict]:
    """XLA's verdict on each text, in order."""
    todo = list(texts)
    at = 0
    while at < len(todo):
        for verdict in _from_child(todo[at : at + 500]):
            at += 1
            if verdict.outcome.startswith("abort"):
                # some texts damage the heap, and another one dies of it: ask a fresh child
                (verdict,) = _from_child([verdict.text])
            yield verdict


def _from_child(texts: list[str]) -> Iterator[Verdict]:
    from jaxlib._hlo import HloSharding  # loaded before the fork, once

    read, write = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(read)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 2)
            faulthandler.disable()
            with os.fdopen(write, "w", buffering=1) as out:
                for text in texts:
                    signal.alarm(10)  # a text on which XLA hangs counts as one on which it dies
                    _answer(HloSharding, text, out)
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    done, last = 0, None
    with os.fdopen(read) as lines:
        for line in lines:
            try:
                last = json.loads(line)
            except ValueError:
                break  # cut off by the death of the child
            if last["final"]:
                yield _verdict(texts[done], last)
                done, last = done + 1, None
    os.waitpid(child, 0)
    if done < len(texts):
        if last and "canonical" in last:
            yield Verdict(texts[done], "abort_after_parse", last["canonical"])
        else:
            yield Verdict(texts[done], "abort")


def _answer(HloSharding, text, out) -> None:  # type: ignore[no-untyped-def]
    def say(**what: object) -> None:
        out.write(json.dumps(what) + "\n")

    say(final=False)
    try:
        sharding = HloSharding.from_string(text)
    except Exception:
        say(final=True, outcome="error")
        return
    canonical = str(sharding)
    say(final=False, canonical=canonical)
    found: dict[str, object] = {"canonical": canonical}
    plain = sharding
    if canonical.startswith(("{mesh", "{maximal_mesh")):
        plain = sharding.v3_to_v2_sharding()
        found["v2"] = str(plain)
    try:
        if str(plain).startswith("{devices="):
            found["tile_dims"] = list(plain.tile_assignment_dimensions())
            found["devices"] = list(plain.tile_assignment_devices())
            found["types"] = [str(kind).split(".")[-1] for kind in plain.subgroup_types()]
    except MemoryError:
        os._exit(1)
    say(final=True, outcome="ok", **found)


def _verdict(text: str, found: dict[str, object]) -> Verdict:
    def ints(key: str) -> tuple[int, ...] | None:
        return tuple(found[key]) if key in found else None  # type: ignore[arg-type]

    return Verdict(
        text,
        str(found["outcome"]),
        found.get("canonical"),  # type: ignore[arg-type]
        ints("tile_dims"),
        ints("devices"),
        found.get("v2"),  # type: ignore[arg-type]
        tuple(found.get("types", ())),  # type: ignore[arg-type]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="XLA's verdict on each sharding text, one a line of standard input.")
    parser.parse_args()
    for verdict in verdicts(line.rstrip("\n") for line in sys.stdin):
        print(verdict)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
