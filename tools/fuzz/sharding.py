"""Compares the sharding parser with XLA's on generated texts, and looks for exceptions and hangs.

    python -m tools.fuzz.sharding xla --count 20000      # generated and mutated texts, beside HloSharding.from_string
    python -m tools.fuzz.sharding crash --seconds 60     # random bytes and mutants: ShardingError or an answer

Exit status 1 if anything disagrees. Texts that disagree are printed.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import sys
import time
from collections.abc import Iterator

from shardpass.sharding import Sharding, ShardingError, TupleSharding, parse_sharding
from shardpass.sharding.quoting import c_unquoted

# ------------------------------------------------------------------------------------- texts


def factors(rng: random.Random, n: int, parts: int) -> list[int]:
    out = []
    for _ in range(parts - 1):
        out.append(rng.choice([k for k in range(1, n + 1) if n % k == 0]))
        n //= out[-1]
    out.append(n)
    rng.shuffle(out)
    return out


def ints(values: list[int], rng: random.Random) -> str:
    comma = rng.choice([",", ",", ",", ", ", " ,\t", ",/*c*/"])
    return comma.join(map(str, values))


def iota(rng: random.Random, n: int) -> str:
    shape = factors(rng, n, rng.randint(1, 4))
    perm = list(range(len(shape)))
    if rng.random() < 0.8:
        rng.shuffle(perm)
    order = f"T({ints(perm, rng)})" if len(shape) > 1 else ""
    return f"[{ints(shape, rng)}]{order}"


def tiled(rng: random.Random) -> str:
    n = rng.choice([1, 2, 4, 6, 8, 12, 16, 24, 24, 36, 60])
    dims = factors(rng, n, rng.randint(1, 6))
    if rng.random() < 0.03:
        dims[rng.randrange(len(dims))] = rng.choice([0, -1, 2, 3, 5])
    if rng.random() < 0.7:
        devices = "<=" + iota(rng, n if rng.random() < 0.97 else max(1, n + rng.randint(-2, 2)))
    else:
        listed = list(range(n))
        how = rng.random()
        if how < 0.5:
            rng.shuffle(listed)
        elif how < 0.6:
            listed[rng.randrange(n)] = rng.randint(-1, n + 1)
        elif how < 0.65:
            listed = listed[: rng.randint(1, n)] + [0] * rng.randint(0, 2)
        devices = ints(listed, rng)
    items = [f"devices=[{ints(dims, rng)}]{devices}"]
    types = ["replicated", "manual", "unreduced", "maximal"]
    if rng.random() < 0.35:
        items.append("last_tile_dim_replicate")
    elif rng.random() < 0.6:
        chosen = rng.choices(types, [5, 4, 3, 1], k=rng.randint(0, min(4, len(dims))))
        items.append(f"last_tile_dims={{{rng.choice([',', ', ']).join(chosen)}}}")
    return attributes(rng, items)


def attributes(rng: random.Random, items: list[str]) -> str:
    if rng.random() < 0.1:
        items.append(f"{rng.choice(['shard_as', 'shard_like'])} {rng.randint(0, 9)}")
    if rng.random() < 0.1:
        items.append(metadata(rng))
    if rng.random() < 0.04:
        items.append(rng.choice(["replicated", "manual", "maximal", "unknown", "unreduced", "device=1", *items]))
    if rng.random() < 0.2:
        rng.shuffle(items)
    return "{" + rng.choice([" ", " ", "  ", "\n", "/*x*/ "]).join(items) + "}"


def metadata(rng: random.Random) -> str:
    fields = [
        'op_name="a"', "op_type='b'", "source_line=3", 'source_file="f\\n.py"', "profile_type={1}", "stack_frame_id=4",
        'op_name="x"', "source_line=-1", "source_column=9999999999", "bogus=1", 'deduplicated_name="d"',
    ]  # fmt: skip

    def one() -> str:
        return "{" + rng.choice([" ", ", "]).join(rng.choices(fields, k=rng.randint(0, 2))) + "}"

    return "metadata=" + (
        one() if rng.random() < 0.7 else "{" + ",".join(one() for _ in range(rng.randint(1, 3))) + "}"
    )


def simple(rng: random.Random) -> str:
    kind = rng.choice(["replicated", "manual", "unknown", "unreduced", f"maximal device={rng.randint(-1, 9)}"])
    return attributes(rng, [kind])


def named(rng: random.Random) -> str:
    names = rng.sample(["x", "y", "z", "data", "1", "a.b"], rng.randint(0, 4))
    sizes = [rng.choice([1, 2, 2, 3, 4, 6, 8, 12]) for _ in names]
    n = math.prod(sizes)
    quote = rng.choice(["'", '"'])
    mesh = "mesh[" + ",".join(f"{quote}{a}{quote}={s}" for a, s in zip(names, sizes, strict=True)) + "]"
    if rng.random() < 0.3:
        listed = list(range(n))
        rng.shuffle(listed)
        mesh += f", device_ids=({iota(rng, n) if rng.random() < 0.6 else ints(listed, rng)})"
    if rng.random() < 0.15:
        return "{" + mesh + rng.choice([", ", " "]) + rng.choice(["replicated", "manual", "unreduced", "[]"]) + "}"
    left = []
    for name, size in zip(names, sizes, strict=True):
        low = rng.choice([k for k in range(1, size + 1) if size % k == 0])
        if 1 < low < size and rng.random() < 0.8:
            left += [f"{quote}{name}{quote}:(1){low}", f"{quote}{name}{quote}:({low}){size // low}"]
        else:
            left.append(f"{quote}{name}{quote}")
    if rng.random() < 0.8:
        rng.shuffle(left)
    groups: list[list[str]] = [[] for _ in range(rng.randint(0, 4))]
    kinds: dict[str, list[str]] = {"replicated": [], "unreduced": [], "manual": []}
    for axis in left:
        where = rng.random()
        if groups and where < 0.6:
            rng.choice(groups).append(axis)
        elif where < 0.85:
            kinds[rng.choice(list(kinds))].append(axis)
    for group in groups:
        if rng.random() < 0.15:
            group.append("?")
    body = f"{mesh}, [{', '.join('{' + ','.join(g) + '}' for g in groups)}]"
    for kind, axes in kinds.items():
        if axes:
            body += f", {kind}={{{','.join(sorted(axes, key=left.index))}}}"
    if rng.random() < 0.1:
        body += ", " + metadata(rng)
    return "{" + body + "}"


def generated(rng: random.Random) -> str:
    one = rng.choices([tiled, simple, named], [6, 1, 3])[0]
    if rng.random() < 0.1:
        count = rng.randint(0, 7)
        return "{" + ", ".join(rng.choices([tiled, simple, named], [6, 2, 3])[0](rng) for _ in range(count)) + "}"
    text = one(rng)
    return text if rng.random() < 0.97 else rng.choice([" {}\n", "{} // end", "{} x", "/* a */{}", "{}}}"]).format(text)


TOKENS = [
    "{", "}", "[", "]", "(", ")", ",", "=", "<=", "T", "T(1,0)", "'", '"', "?", ":", " ", "\n", "\t", "\v", "\0", "0",
    "-1", "8", "2x4", "1.5", "1e5", "99999999999999999999", "18446744073709551615", "devices=", "device=", "é", "\\",
    "last_tile_dim_replicate", "last_tile_dims=", "metadata=", "replicated", "manual", "maximal", "unknown", "mesh",
    "unreduced", "unreduced=", "shard_as", "shard_like", "//", "/*", "*/", "mesh[", "'x'", ":(1)2", "\\n", "[2]", "_",
]  # fmt: skip


def mutated(rng: random.Random, text: str) -> str:
    for _ in range(rng.randint(1, 3)):
        at = rng.randint(0, len(text))
        to = min(len(text), at + rng.choice([0, 0, 1, 1, 2, 8]))
        new = rng.choice(["", "", rng.choice(TOKENS), text[at:to] * 2, chr(rng.randint(32, 126))])
        text = text[:at] + new + text[to:]
    return text


def texts(seed: int, count: int) -> list[str]:
    """``count`` texts, about half of them well formed."""
    rng = random.Random(seed)
    out: dict[str, None] = {}
    while len(out) < count:
        text = generated(rng)
        out[text if rng.random() < 0.6 else mutated(rng, text)] = None
    return list(out)


# ------------------------------------------------------------------------------------- comparison

NO_IOTA = ("SP003", "SP009")  # other counts than devices
LISTED = re.compile(r"devices=\[[^]]*\]\d")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
TRANSPOSE = re.compile(r"\[([\d,\s]+)\]\s*T\(([\d,\s]+)\)")
QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
NEGATIVE = re.compile(r"devices=\[[^]]*-")


def disagreement(verdict) -> str:  # type: ignore[no-untyped-def]
    """What is different between XLA's verdict and ours; empty where nothing is."""
    try:
        ours = parse_sharding(verdict.text, strict=False)
    except ShardingError as error:
        if error.code in NO_IOTA and LISTED.search(verdict.canonical or ""):
            return ""  # an iota that is none, listed all the same: XLA prints what lies in its memory
        if error.code == "SP009" and _has_other_places(verdict.text):
            return ""  # XLA takes places that are left out from its memory, and leaves out places that are too many
        if error.code == "SP007" and NEGATIVE.search(verdict.canonical or ""):
            return ""  # two negative tile counts, whose product is not: XLA lists devices beyond the end of the list
        return "" if not verdict.accepted else f"refused, but XLA prints {verdict.canonical}: {error}"
    if not verdict.accepted and _overrun(ours):
        return ""  # XLA wrote past a buffer: what follows is chance
    if not verdict.accepted:
        return f"accepted as {ours}, but XLA says {verdict.outcome}"
    if verdict.canonical not in (str(ours), _unescaped(str(ours))):
        if _disordered(ours) or _overrun(ours):
            return ""  # XLA prints what lies in its memory: the order of no iota, tiles that a long list ran over
        if verdict.outcome.startswith("abort") and _noted(ours, "SP007"):
            return ""  # no tiles, of which XLA prints an order, and then ends the process
        return f"printed {ours}, but XLA prints {verdict.canonical}"
    return _meaning(verdict, ours)


def _unescaped(text: str) -> str:
    """``text`` with its names as XLA prints them, which reads the escapes of a quoted name and writes none."""
    return QUOTED.sub(lambda name: f"'{c_unquoted(name[1])}'", text)


def _has_other_places(text: str) -> bool:
    """Whether a transpose in ``text`` has fewer or more places than the shape before it has dimensions.

    XLA refuses such a transpose behind ``<=`` and does not look at it in a mesh's ``device_ids``.
    """
    return any(
        len(places.split(",")) != len(dims.split(",")) for dims, places in TRANSPOSE.findall(COMMENT.sub("", text))
    )


def _disordered(ours: Sharding | TupleSharding) -> bool:
    return _noted(ours, "SP009")


def _noted(ours: Sharding | TupleSharding, code: str) -> bool:
    found = ours if isinstance(ours, TupleSharding) else [ours]
    return any(problem.code == code for one in found for problem in one.notes.problems)


def _overrun(ours: Sharding | TupleSharding) -> bool:
    """Whether XLA goes past a buffer, as for 12 tiles of 10 devices: what lies there decides what it does."""
    found = ours if isinstance(ours, TupleSharding) else [ours]
    return any(one.notes.tiles or p.code in NO_IOTA for one in found for p in one.notes.problems)


def _meaning(verdict, ours: Sharding | TupleSharding) -> str:  # type: ignore[no-untyped-def]
    if verdict.devices is None or isinstance(ours, TupleSharding):
        return ""
    if verdict.v2 is None and (ours.notes.tiles or not ours.notes.problems):
        dims, devices = ours.tile_assignment()
        if dims != verdict.tile_dims or tuple(devices.tolist()) != verdict.devices:
            return f"tiles {dims} of {devices}, but XLA has {verdict.tile_dims} of {verdict.devices}"
        return ""
    if ours.notes.problems:
        return ""
    if verdict.v2.startswith("{devices=[]"):
        return ""  # XLA's own text for a mesh of one device; nothing reads it
    plain = parse_sharding(verdict.v2)
    if plain != ours:
        return f"means {ours.dims}, but XLA makes {verdict.v2} of it"
    return ""


def compare(seed: int, count: int) -> Iterator[tuple[str, str, str]]:
    from tools.prove.xla_sharding_oracle import verdicts

    for verdict in verdicts(texts(seed, count)):
        problem = disagreement(verdict)
        if problem:  # some texts damage XLA's memory, and a later one is told wrong: ask a fresh child
            (verdict,) = verdicts([verdict.text])
            problem = disagreement(verdict)
        yield verdict.text, verdict.outcome, problem


# ------------------------------------------------------------------------------------- crashes


def probe(text: str) -> None:
    """Parses ``text`` both ways and uses what comes out; only ShardingError may leave."""
    for strict in (True, False):
        try:
            found = parse_sharding(text, strict=strict)
            for one in found if isinstance(found, TupleSharding) else [found]:
                str(one), hash(one), one == one
                one.tile_shape((4,) * len(one.dims))
                one.tile_offsets((4,) * len(one.dims))
        except ShardingError as error:
            str(error)


def crash(seconds: float, seed: int) -> int:
    rng, end, count, slowest = random.Random(seed), time.monotonic() + seconds, 0, (0.0, "")
    while time.monotonic() < end:
        text = generated(rng)
        if rng.random() < 0.8:
            text = mutated(rng, text)
        if rng.random() < 0.05:
            text = "".join(rng.choice(TOKENS) for _ in range(rng.randint(0, 40)))
        start = time.perf_counter()
        probe(text)
        slowest = max(slowest, (time.perf_counter() - start, text))
        count += 1
    print(f"{count} texts, no exception but ShardingError; slowest {slowest[0] * 1e3:.1f} ms: {slowest[1][:100]!r}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["xla", "crash"])
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.what == "crash":
        return crash(args.seconds, args.seed)
    outcomes: dict[str, int] = {}
    wrong = 0
    for text, outcome, problem in compare(args.seed, args.count):
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        if problem:
            wrong += 1
            print(f"{text!r}\n    {problem}")
    print(f"{args.count} texts, XLA: {outcomes}; {wrong} disagreements")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
