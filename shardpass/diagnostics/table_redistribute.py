"""SP4xx: redistribution, from one sharding to another."""

from __future__ import annotations

from shardpass.diagnostics.core import Code, ShardpassError


class RedistributionError(ShardpassError):
    """A redistribution has no meaning, or has no plan under the given limits."""


NO_TILES = Code(
    "SP401",
    "the {side} sharding {sharding} does not say which part of the array a device holds",
    "give a tiled, replicated or maximal sharding",
    explanation="`{manual}` and `{unknown}` assign no tiles to devices, so a redistribution has no start or no end. A "
    "tuple of shardings belongs to a tuple of arrays: plan each array by itself.",
    exception=RedistributionError,
)
DEVICES_DIFFER = Code(
    "SP402",
    "the source sharding is over {source} devices and the target over {target}",
    "give both shardings over the same devices, or say which devices these are: source_devices= and target_devices= "
    "(--source-devices and --target-devices)",
    explanation="Without lists of devices a redistribution moves an array between the devices of one program. Example: "
    "`{devices=[4]<=[4]}` and `{devices=[8]<=[8]}` are over 4 and 8 devices. From one set of devices to another "
    "(docs/device_sets.md) device k of a sharding is entry k of `source_devices` or of `target_devices`.",
    exception=RedistributionError,
)
DEVICES_UNKNOWN = Code(
    "SP403",
    "neither {source} nor {target} says how many devices there are",
    "give the number of devices (num_devices, or --devices on the command line)",
    explanation="`{replicated}` and `{maximal device=0}` do not name the devices of the program.",
    exception=RedistributionError,
)
DEVICE_OUT_OF_RANGE = Code(
    "SP404",
    "device {device} of {sharding} is not one of the {devices} devices",
    "use a device from 0 to {last}",
    explanation="Example: `{maximal device=9}` in a program of 8 devices.",
    exception=RedistributionError,
)
ELEMENT_TYPE = Code(
    "SP405",
    "there is no element type {name!r}",
    "use one of the element types {known}",
    explanation="The spellings of StableHLO (`f32`, `i32`, `ui8`, `complex<f32>`), HLO (`f32`, `s32`, `u8`, `pred`, "
    "`c64`) and NumPy (`float32`, `int32`, `uint8`, `bool`, `complex64`) are understood.",
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
    "use one of the planners {known}",
    explanation="`rink` is the method of Rink et al.; the plan of `best` never costs more than the plan of `rink`.",
    exception=RedistributionError,
)
UNREDUCED = Code(
    "SP408",
    "no redistribution makes the partial sums of {target} from {source}",
    "reduce the partial sums first; a target may keep only those over axes on which the source has them (planner best)",
    explanation="A value is unreduced along an axis if the sum over the devices along that axis is the value. The "
    "target may keep unreduced axes of the source. It may not have others, and it may not keep them where the two "
    "shardings share no mesh or the borders of their tiles cross.",
    exception=RedistributionError,
)
UNPROVEN = Code(
    "SP409",
    "the plan for {problem} failed its check: {reason}",
    "report this fault of shardpass with the problem, and try the other planner; no program was made",
    explanation="Every plan is simulated step by step before it is used: the simulation follows each tile, or part of "
    "a tile, from device to device. This plan did not end with the target's tiles.",
    exception=RedistributionError,
)
ATTRIBUTE = Code(
    "SP410",
    "shardpass.redistribute {reason}",
    "give the op shardpass.from and shardpass.to (sharding text) and shardpass.global_type (a tensor type), and make "
    "its operand and result tiles of that type",
    explanation="`shardpass-partition` inserts `custom_call @shardpass.redistribute` where two shardings disagree. An "
    "op that you write by hand needs the same attributes.",
    exception=RedistributionError,
)
MEMORY_LIMIT = Code(
    "SP412",
    "{limit!r} is not a memory limit",
    "give max (no tile above the greater of source and target), none, or bytes: 1048576, 512KiB, 1.5GiB",
    explanation="`max` limits the tile of each step: no tile may be larger than the larger of the source tile and the "
    "target tile. A limit in bytes is a limit on the memory that is alive on a device while a step runs: the operand, "
    "the result, and the buffers of an exchange.",
    exception=RedistributionError,
)
OVER_LIMIT = Code(
    "SP413",
    "no known plan for {problem} keeps to {limit} bytes live together: the least is {least} bytes, by {way}",
    "allow at least {least} bytes; the source tile has {source} bytes and the target tile {target}",
    explanation="The operand and the result of a step are alive at the same time, so almost every plan needs at least "
    "the source tile and the result of its first step. The message names the way with the lowest peak among all that "
    "the planner knows.",
    exception=RedistributionError,
)
PROFILE_FILE = Code(
    "SP414",
    "{file} cannot be read as a cost profile: {reason}",
    "write the file of a machine with shardpass calibrate, or name one of the machines that come with shardpass",
    explanation="A profile is a JSON object with `latency` (seconds), `bandwidth` and `copies` (bytes a second), and "
    "optionally blocks or axes of devices with faster links: see docs/redistribution.md.",
    exception=RedistributionError,
)
NOT_A_SHARDING = Code(
    "SP415",
    "the {side} is no sharding: {given}",
    "give a shardpass.Sharding, its text ('{{devices=[8,1]<=[8]}}'), or a jax.sharding.NamedSharding",
    explanation="`plan_redistribution` and `shardpass-plan` take the source and the target in several notations.",
    exception=RedistributionError,
)
DEVICE_COUNT = Code(
    "SP416",
    "num_devices is {given}, which is not a number of devices",
    "give an integer from 1 to {most}",
    explanation="The number of devices is needed where neither sharding names its devices.",
    exception=RedistributionError,
)
DEVICE_LIST = Code(
    "SP417",
    "{name} is {given}: {reason}",
    "give the ids of different devices, in the order of the sharding: range(8), or [8, 9, 12, 13]",
    explanation="Device k of a sharding is entry k of its list. An entry is an integer from 0 up, or an object with "
    "such an `id`, as JAX's devices are. A device that holds two tiles of one array is two devices.",
    exception=RedistributionError,
)
SUMS_BETWEEN_SETS = Code(
    "SP418",
    "the {side} sharding {sharding} holds partial sums, which no plan between device sets moves",
    "add the sums up first: redistribute to a sharding without unreduced axes on the source's devices",
    explanation="Between two sets of devices pieces are copied, not added. On one set of devices partial sums are "
    "completed by `plan_redistribution` without lists of devices.",
    exception=RedistributionError,
)
DEVICE_LIST_LENGTH = Code(
    "SP419",
    "{side}_devices names {listed} devices, and the {side} sharding is over {over}",
    "name as many devices as the sharding has",
    explanation="Example: `{{devices=[4]<=[4]}}` needs a list of 4 devices.",
    exception=RedistributionError,
)
LEAF = Code(
    "SP420",
    "{path} is {given}, which is no array to move",
    "give a tuple (shape, element type, source sharding, target sharding); mappings and lists are branches of the tree",
    explanation="`plan_reshard_tree` takes a tree of tuples, as in `{'w': ((8, 4), 'f32', source, target)}`.",
    exception=RedistributionError,
)
