"""rng_bit_generator made part by part: bit for bit what XLA makes on one device, and what Philox's paper says."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.differential import check_text

import shardpass

pytestmark = pytest.mark.turns(2)

M64 = 2**64
ROUNDS, MULTIPLIERS, WEYL = 10, (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)


def philox_block(key: int, counter: int) -> list[int]:
    """Philox4x32-10 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3): four words of 32 bits."""
    words = [counter >> (32 * i) & 0xFFFFFFFF for i in range(4)]
    keys = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(ROUNDS):
        one, two = MULTIPLIERS[0] * words[0], MULTIPLIERS[1] * words[2]
        words = [(two >> 32) ^ words[1] ^ keys[0], two & 0xFFFFFFFF, (one >> 32) ^ words[3] ^ keys[1], one & 0xFFFFFFFF]
        keys = [(k + w) & 0xFFFFFFFF for k, w in zip(keys, WEYL, strict=True)]
    return words


def by_the_paper(state: tuple[int, ...], count: int) -> np.ndarray:
    """``count`` words of 32 bits, block after block."""
    start = state[1] + (state[2] if len(state) == 3 else state[0]) * M64
    words = [w for block in range(-(-count // 4)) for w in philox_block(state[0], (start + block) % 2**128)]
    return np.array(words[:count], np.uint32)


TEXT = """
module attributes {{mhlo.num_partitions = {devices} : i32}} {{
func.func @main(%s: tensor<{n}xui64>) -> (tensor<{n}xui64>, tensor<{kind}> {{mhlo.sharding = "{split}"}}) {{
  %0, %1 = "stablehlo.rng_bit_generator"(%s) <{{rng_algorithm = #stablehlo<rng_algorithm {algorithm}>}}>
      : (tensor<{n}xui64>) -> (tensor<{n}xui64>, tensor<{kind}>)
  return %0, %1 : tensor<{n}xui64>, tensor<{kind}>
}}
}}
"""
STATES = [(123456789123, 5), (7, M64 - 3), (M64 - 1, M64 - 1), (1, 2, 3), (9, M64 - 2, M64 - 1)]


def program(kind: str, split: str, devices: int, n: int = 2, algorithm: str = "DEFAULT") -> str:
    return TEXT.format(kind=kind, split=split, devices=devices, n=n, algorithm=algorithm)


def made(module: object) -> set[str]:
    """Types of the bits that the partitioned program generates on each device."""
    return set(re.findall(r"rng_bit_generator.*-> \(tensor<\dxui64>, tensor<(.*?)>\)", str(module)))


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("algorithm", ["DEFAULT", "PHILOX"])
def test_counters_carry_as_on_one_device(state: tuple[int, ...], algorithm: str) -> None:
    """Seven rows of 5 words over 4 devices: tiles of 10 words begin inside of a block, and the last is half padding."""
    text = program("7x5xui32", "{devices=[4,1]<=[4]}", 4, len(state), algorithm)
    given = np.array(state, np.uint64)
    seen = check_text(text, [given])
    after, bits = shardpass.compile(seen.module)(given)
    np.testing.assert_array_equal(np.asarray(bits).reshape(-1), by_the_paper(state, 35))
    counted = (state[1] + 9) % M64
    assert int(np.asarray(after)[1]) == counted
    assert seen.kinds == []
    assert made(seen.module) == {"13xui32"}  # 10 words, and the 3 before them that their block may begin with


SPLIT = "{devices=[3,1]<=[3]}"


@pytest.mark.parametrize("width", [8, 16, 32, 64])
@pytest.mark.parametrize("rows", [12, 7])
def test_every_width(width: int, rows: int) -> None:
    """A block is two words of 64 bits, or four that are narrower. Tiles of 4x4 begin with one, of 3x3 need not."""
    columns = 4 if rows == 12 else 3
    seen = check_text(program(f"{rows}x{columns}xui{width}", SPLIT, 3), [np.array([11, M64 - 4], np.uint64)])
    reach = 9 + (2 if width == 64 else 4) - 1
    assert made(seen.module) == {f"4x4xui{width}" if rows == 12 else f"{reach}xui{width}"}


@pytest.mark.parametrize(("element", "width"), [("i8", 8), ("i32", 32), ("f32", 32), ("bf16", 16), ("f64", 64)])
@pytest.mark.parametrize("algorithm", ["DEFAULT", "THREE_FRY"])
def test_other_elements_are_the_unsigned_ones_bit_for_bit(element: str, width: int, algorithm: str) -> None:
    """XLA's partitioner refuses to make them, and on one device it returns them as unsigned."""
    given = np.array([11, M64 - 4], np.uint64)
    ours, unsigned = (
        shardpass.compile(shardpass.run_pipeline(program(f"7x3x{e}", SPLIT, 3, algorithm=algorithm), "partition"))(
            given
        )[1]
        for e in (element, f"ui{width}")
    )
    check_text(program(f"7x3xui{width}", SPLIT, 3, algorithm=algorithm), [given])
    assert str(ours.dtype) != str(unsigned.dtype)
    np.testing.assert_array_equal(np.asarray(ours).view(f"u{width // 8}"), np.asarray(unsigned))


@pytest.mark.parametrize(
    ("kind", "split", "devices"),
    [
        ("1x8x3xui32", "{devices=[1,4,1]<=[4]}", 4),
        ("8x6xui32", "{devices=[4,2]<=[8]}", 8),  # columns are cut of a device's own rows
        ("8x6xui32", "{devices=[4,2]<=[2,4]T(1,0)}", 8),
        ("9xui32", "{devices=[4]<=[4]}", 4),
        ("5x2xui32", "{devices=[4,1]3,1,2,0}", 4),
        ("3x2xui32", "{devices=[4,1]<=[4]}", 4),  # the last device has nothing but padding
    ],
)
def test_however_the_rows_are_split(kind: str, split: str, devices: int) -> None:
    state = (3, M64 - 1)
    seen = check_text(program(kind, split, devices), [np.array(state, np.uint64)])
    _, bits = shardpass.compile(seen.module)(np.array(state, np.uint64))
    flat = np.asarray(bits).reshape(-1)
    np.testing.assert_array_equal(flat, by_the_paper(state, flat.size))
    assert kind not in made(seen.module)


@pytest.mark.parametrize("algorithm", ["DEFAULT", "THREE_FRY"])
def test_what_is_made_whole(algorithm: str) -> None:
    """Columns alone, or the other algorithm: all bits on every device, and nothing is sent."""
    split = "{devices=[1,3]<=[3]}" if algorithm == "DEFAULT" else "{devices=[3,1]<=[3]}"
    seen = check_text(program("6x6xui32", split, 3, algorithm=algorithm), [np.array([1, 2], np.uint64)])
    assert made(seen.module) == {"6x6xui32"}
    assert seen.kinds == []
