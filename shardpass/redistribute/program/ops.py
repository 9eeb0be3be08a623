"""The ops of device programs: the small language in which plans are written.

A *device program* is a tuple of these ops, applied in order to the local array of every device at once; collectives tie
the devices together. Five interpreters read it: ``simulate`` (offsets alone, the proof), ``evaluate`` (NumPy arrays, a
witness), ``memory`` and ``local_work`` (shapes), and ``lower`` (StableHLO). Tables have one row for each device, by
physical device id.

The box exchange keeps a second array, the accumulator: ``BeginBoxExchange`` makes it, each ``BoxRound`` fills parts of
it from the local array, ``EndBoxExchange`` makes it the local array.
"""

from __future__ import annotations

from dataclasses import dataclass

from shardpass.redistribute.problem.device_arrays import IntArray


@dataclass(frozen=True, slots=True, eq=False)
class AsBits:
    """Move values as integers of the same bits throughout the program, unless the program adds values."""


@dataclass(frozen=True, slots=True, eq=False)
class Reshape:
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Transpose:
    """Result axis ``a`` is operand axis ``permutation[a]``."""

    permutation: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Pad:
    """Zeros at the end of each axis, up to ``shape``."""

    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Trim:
    """The first ``shape`` elements of each axis."""

    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Zeros:
    """An array of zeros in place of the local array: for arrays without elements."""

    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class DynamicSlice:
    """A slice of the local array: ``sizes`` elements from ``starts[device]`` on."""

    sizes: tuple[int, ...]
    starts: IntArray  # [devices, rank]


@dataclass(frozen=True, slots=True, eq=False)
class AllGather:
    """Concatenate the arrays of a group along ``axis``, in the order of the group.

    ``by_pieces``: sent by an all_to_all of copies, which leaves each array in a separate buffer.
    """

    axis: int
    groups: IntArray  # [groups, size]
    axes: tuple[str, ...] = ()  # mesh axes, for people
    by_pieces: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class AllToAll:
    """Block ``j`` of axis ``split`` goes to the group's device ``j``; received blocks are joined along ``concat``.

    ``by_slices``: a separate slice cuts each block, where XLA may make one array of blocks first.
    """

    split: int
    concat: int
    groups: IntArray  # [groups, size]
    axes: tuple[str, ...] = ()
    by_slices: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Permute:
    """Device ``d`` gets the array of device ``source_of[d]``."""

    source_of: IntArray  # [devices]
    axes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Slide:
    """The borders of tiles move along ``axis``.

    The local array is followed (``before``: preceded) by the nearest ``halo`` rows of the array of device
    ``source_of[d]``, and then by ``slack`` rows of zeros. The result is the ``size`` rows from ``starts[d]`` on: a tile
    that starts at ``base[d]`` of the dimension ``axis``. A tile that lies past the array's end may be any rows.
    """

    axis: int
    size: int
    halo: int
    before: bool
    slack: int
    source_of: IntArray  # [devices]; -1: nothing comes
    starts: IntArray  # [devices]
    base: IntArray  # [devices]
    axes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class AllReduce:
    groups: IntArray
    reduction: str
    axes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ReduceScatter:
    """Add the arrays of a group; device ``j`` of the group keeps block ``j`` of ``axis``."""

    axis: int
    groups: IntArray
    reduction: str
    axes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class BeginBoxExchange:
    """Pads the local array to the shape ``value`` and makes an accumulator of the shape ``accumulator``, zeros.

    Both shapes leave room for boxes that stick out of their tile.
    """

    value: tuple[int, ...]
    accumulator: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class BoxRound:
    """One round of a box exchange: each device sends at most one box and gets at most one.

    Every box has the shape ``size`` on the wire; ``extents[d]`` of it is meant for device ``d`` (all zero:
    nothing). ``take[s]`` is where the box starts in the local array of the sender ``s``, ``put[d]`` where it
    goes in the accumulator of ``d``. A round in which every device is its own source is a local copy.
    """

    size: tuple[int, ...]
    source_of: IntArray  # [devices]; -1: nothing comes
    take: IntArray  # [devices, rank]
    put: IntArray  # [devices, rank]
    extents: IntArray  # [devices, rank]
    axes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class EndBoxExchange:
    """The accumulator's first ``shape`` elements become the local array: a tile that starts at ``base[d]``."""

    shape: tuple[int, ...]
    base: IntArray  # [devices, rank], in the whole array


@dataclass(frozen=True, slots=True, eq=False)
class ChunkRounds:
    """An all_to_all or all_gather and any permutation of the devices after it, as rounds of permutes.

    In round r device ``d`` gets a chunk from device ``source_of[r, d]`` (itself: a copy): the box of shape
    ``chunk`` that starts at ``take[r, source_of[r, d]]`` in the sender's array; where ``take`` is None, all of it.
    Reshaped to ``placed``, the chunk is block ``(place[d] + r) mod rounds`` of the result along ``axis``. The sources
    of a round are a permutation.
    """

    chunk: tuple[int, ...]
    placed: tuple[int, ...]
    axis: int
    source_of: IntArray  # [rounds, devices]
    take: IntArray | None  # [rounds, devices, rank of the value]
    place: IntArray  # [devices]
    axes: tuple[str, ...] = ()


Op = (
    AsBits
    | Reshape
    | Transpose
    | Pad
    | Trim
    | Zeros
    | DynamicSlice
    | AllGather
    | AllToAll
    | Permute
    | Slide
    | AllReduce
    | ReduceScatter
    | BeginBoxExchange
    | BoxRound
    | EndBoxExchange
    | ChunkRounds
)
DeviceProgram = tuple[Op, ...]
