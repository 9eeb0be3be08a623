"""SP4xx: redistribution, from one sharding to another."""

from __future__ import annotations

from shardpass.diagnostics.core import Code, ShardpassError


class RedistributionError(ShardpassError):
    """A redistribution that cannot be asked for, or that could not be planned."""


NO_TILES = Code(
    "SP401",
    "the {side} sharding {sharding} says nothing of what a device holds",
    "give a tiled, replicated or maximal sharding",
    explanation="`{{manual}}` and `{{unknown}}` assign no tiles to devices, so there is nothing to move from or to. "
    "A tuple of shardings is for a tuple of arrays: plan each array by itself.",
    exception=RedistributionError,
)
DEVICES_DIFFER = Code(
    "SP402",
    "the source sharding is over {source} devices and the target over {target}",
    "give both shardings over the same devices",
    explanation="A redistribution moves an array between devices of one program. `{{devices=[4]<=[4]}}` and "
    "`{{devices=[8]<=[8]}}` are over 4 and 8 devices.",
    exception=RedistributionError,
)
DEVICES_UNKNOWN = Code(
    "SP403",
    "neither {source} nor {target} says how many devices there are",
    "give the number of devices (num_devices, or --devices on the command line)",
    explanation="`{{replicated}}` and `{{maximal device=0}}` do not name the devices of the program.",
    exception=RedistributionError,
)
DEVICE_OUT_OF_RANGE = Code(
    "SP404",
    "device {device} of {sharding} is not one of the {devices} devices",
    "devices are numbered from 0 to {last}",
    explanation="`{{maximal device=9}}` in a program of 8 devices.",
    exception=RedistributionError,
)
ELEMENT_TYPE = Code(
    "SP405",
    "there is no element type {name!r}",
    "element types are {known}",
    explanation="StableHLO's spelling (`f32`, `i32`, `ui8`, `complex<f32>`) and HLO's (`f32`, `s32`, `u8`, `pred`, "
    "`c64`) are both understood.",
    exception=RedistributionError,
)
SHAPE = Code(
    "SP406",
    "{text!r} is not a shape: {reason}",
    "write an array as f32[256,128]: element type, then the size of each dimension",
    explanation="Sizes are integers from 0 up. A scalar is `f32[]`.",
    exception=RedistributionError,
)
PLANNER = Code(
    "SP407",
    "there is no planner {name!r}",
    "planners are {known}",
    explanation="`rink` is the method of Rink et al.; `best` is never dearer than it.",
    exception=RedistributionError,
)
UNREDUCED = Code(
    "SP408",
    "partial sums as in {target} cannot be had from {source}",
    "reduce first; partial sums can only be kept over axes on which the source has them (planner best)",
    explanation="An unreduced axis means that the sum over the devices along it is the value. The target can keep such "
    "axes of the source, but partial sums cannot be made from whole values, nor be kept where the two "
    "shardings share no mesh or the borders of their tiles cross.",
    exception=RedistributionError,
)
UNPROVEN = Code(
    "SP409",
    "the plan for {problem} failed its check: {reason}",
    "this is a fault of shardpass, and no program was made; try the other planner, and please report the problem",
    explanation="Every plan is followed step by step before it is handed out: where each tile, or part of a "
    "tile, comes from and where it ends. This plan did not end with the target's tiles.",
    exception=RedistributionError,
)
ATTRIBUTE = Code(
    "SP410",
    "shardpass.redistribute {reason}",
    "the op needs shardpass.from and shardpass.to (sharding text) and shardpass.global_type (a tensor type), and its "
    "operand and result must be tiles of that type",
    explanation="The op is what `shardpass-partition` leaves where shardings disagree; a hand-written one must carry "
    "the same attributes.",
    exception=RedistributionError,
)
PROFILE = Code(
    "SP411",
    "there is no cost profile {name!r}",
    "profiles are {known}, or a file NAME.json as tools/bench/calibrate.py writes it",
    explanation="A profile says what a collective costs: so much for each, so much for each byte. It decides "
    "between few steps and few bytes.",
    exception=RedistributionError,
)
MEMORY_LIMIT = Code(
    "SP412",
    "{limit!r} is not a memory limit",
    "give max (no tile above the greater of source and target), none, or bytes: 1048576, 512KiB, 1.5GiB",
    explanation="A limit in bytes is on what lives together on a device while a step runs: operand, result, and what "
    "an exchange fills beside them.",
    exception=RedistributionError,
)
OVER_LIMIT = Code(
    "SP413",
    "no known plan for {problem} keeps to {limit} bytes live together: the least is {least} bytes, by {way}",
    "allow at least {least} bytes; source tile and target tile alone are {source} and {target} bytes",
    explanation="A step's operand and its result live together, so hardly any plan takes less than its source tile and "
    "what it first makes of it. Of all ways that the planner knows, the message names the one with the least peak.",
    exception=RedistributionError,
)
PROFILE_FILE = Code(
    "SP414",
    "{file} is no cost profile: {reason}",
    "write one with tools/bench/calibrate.py, or name one of the built-in profiles",
    explanation="A profile is a JSON object with latency (seconds), bandwidth and copies (bytes a second), and perhaps "
    "blocks or axes of devices that have faster links: see docs/redistribution.md.",
    exception=RedistributionError,
)
