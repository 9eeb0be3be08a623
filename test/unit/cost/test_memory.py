"""The account of memory: small programs by arithmetic. XLA's statistics are the witness of whole modules (ir)."""

from __future__ import annotations

import random

from shardpass.cost.lifetimes import CPU, OTHERS, Block, Client, Step
from shardpass.cost.memory import Account, Chain, account

K = 1024
BROADCAST = "stablehlo.broadcast_in_dim"
DOT, TANH, ADD, TRANSPOSE = "stablehlo.dot_general", "stablehlo.tanh", "stablehlo.add", "stablehlo.transpose"
WHILE, REDUCE, UPDATE = "stablehlo.while", "stablehlo.reduce", "stablehlo.dynamic_update_slice"


def count(
    steps: list[tuple[str, list[int], list[int]]],
    returned: list[int],
    sizes: dict[int, int] | None = None,
    client: Client = OTHERS,
    donated: dict[int, int] | None = None,
) -> Account:
    """The account of a program with the argument 0; each step is (name, makes, reads), each buffer of 1 KiB."""
    body = Block(
        (0,), tuple(Step(n, name, tuple(m), tuple(r)) for n, (name, m, r) in enumerate(steps)), tuple(returned)
    )
    return account(body, [(sizes or {}).get(buffer, K) for buffer in range(64)], client, donated)


def test_a_chain_of_elementwise_steps_takes_the_place_of_the_product() -> None:
    """x @ x, then tanh and a sum with itself in the same buffer, which is no result's: a second product follows."""
    found = count([(DOT, [1], [0, 0]), (TANH, [2], [1]), (ADD, [3], [2, 1]), (DOT, [4], [3, 3])], [4])
    assert (found.arguments, found.results, found.temporaries) == (K, K, K)
    assert found.peak == 3 * K
    assert found.alive == ((1, K),)


def test_what_a_product_reads_is_written() -> None:
    """Two readers: the product needs all of tanh in memory, and so does who adds to it."""
    found = count([(DOT, [1], [0, 0]), (DOT, [2], [1, 0]), (TRANSPOSE, [3], [1]), (DOT, [4], [3, 2])], [4])
    assert found.temporaries == 2 * K  # 2 and, as it is transposed out of place, 3; 1 lies in the result's buffer


def test_a_costly_value_is_written_once_for_two_readers_on_cpus_and_a_cheap_one_is_not() -> None:
    def with_op(name: str, client: Client) -> int:
        steps = [(name, [1], [0]), (DOT, [2], [0, 0]), (ADD, [3], [1, 2]), (DOT, [4], [3, 3]), (ADD, [5], [1, 4])]
        return count(steps, [5], client=client).temporaries

    assert with_op(TANH, CPU) == 2 * K  # beside the first product; its sum is in place
    assert with_op("stablehlo.negate", CPU) == K
    assert with_op(TANH, OTHERS) == K  # computed again
    assert with_op("stablehlo.gather", OTHERS) == 2 * K  # which no client computes twice


def test_a_softmax_writes_nothing_between_the_scores_and_the_weights_on_gpus() -> None:
    """1: scores of 16 bits; 2: as floats, twice as large; their greatest, the exponentials, their sum, the weights."""
    wide, small = dict.fromkeys((2, 4, 5, 6, 8, 9), 2 * K), dict.fromkeys((3, 7, 12), 64)
    steps = [
        (DOT, [1], [0, 0]),
        ("stablehlo.convert", [2], [1]),
        (REDUCE, [3], [2]),
        (BROADCAST, [4], [3]),
        ("stablehlo.subtract", [5], [2, 4]),
        ("stablehlo.exponential", [6], [5]),
        (REDUCE, [7], [6]),
        (BROADCAST, [8], [7]),
        ("stablehlo.divide", [9], [6, 8]),
        ("stablehlo.convert", [10], [9]),
        (DOT, [11], [10, 10]),
        (DOT, [12], [11, 11]),
    ]
    sizes = wide | small
    assert count(steps, [12], sizes, OTHERS).temporaries == 2 * K  # 10, in the place of 1, and 11
    assert count(steps, [12], sizes, CPU).temporaries >= 3 * K  # 1 and 6


def test_a_loop_makes_what_is_made_of_constants_itself() -> None:
    """1 is a constant and 2 its broadcast, which the loop's body reads, and which is carried in the second program."""
    size = {2: 64 * K, 3: 64 * K, 5: 64 * K, 6: 64 * K}

    def with_loop(reads: tuple[int, ...], arguments: tuple[int, ...], makes: tuple[int, ...]) -> int:
        body = Block(
            arguments, (Step(2, ADD, (6,), (arguments[0], 2)), Step(3, DOT, (7,), (6, 6))), (7, *arguments[1:])
        )
        steps = (
            Step(0, "stablehlo.constant", (1,), ()),
            Step(1, BROADCAST, (2,), (1,)),
            Step(4, WHILE, makes, reads, 0, (Block(arguments, (), (1,)), body)),
            Step(5, DOT, (8,), (makes[0], makes[0])),
        )
        return account(Block((0,), steps, (8,)), [size.get(buffer, K) for buffer in range(16)], OTHERS).temporaries

    captured = with_loop((0, 2), (4,), (9,))
    assert captured < 64 * K + 4 * K  # 6 alone
    assert with_loop((0, 2, 2), (4, 5), (9, 3)) >= 128 * K  # its initial value


def test_a_result_that_is_made_late_lends_its_buffer() -> None:
    """1 is dead when 3 is made, so it lies in 3's buffer; two that live together do not both find room there."""
    assert count([(DOT, [1], [0]), (DOT, [2], [1]), (DOT, [3], [2])], [3]).temporaries == K
    assert count([(DOT, [1], [0]), (DOT, [2], [0]), (DOT, [4], [1, 2]), (DOT, [3], [4])], [3]).temporaries == 2 * K
    larger = {1: 2 * K}
    assert count([(DOT, [1], [0]), (DOT, [2], [1]), (DOT, [3], [2])], [3], larger).temporaries == 3 * K


def test_a_donated_argument_has_the_result() -> None:
    found = count([(DOT, [1], [0])], [1], donated={0: 0})
    assert (found.arguments, found.results, found.donated) == (K, K, K)
    # the product reads the argument while it is made: it is copied there afterwards
    assert (found.temporaries, found.peak) == (K, 2 * K)
    in_place = count([(TANH, [1], [0])], [1], donated={0: 0})
    assert (in_place.temporaries, in_place.peak) == (0, K)
    late = count([(DOT, [1], [0]), (DOT, [2], [1])], [2], donated={0: 0})
    assert (late.temporaries, late.peak) == (K, 2 * K)


def test_an_argument_that_is_returned_is_copied() -> None:
    found = count([], [0])
    assert (found.arguments, found.results, found.temporaries, found.peak) == (K, K, 0, 2 * K)


def test_each_result_has_a_buffer() -> None:
    """One is returned twice, one is a constant."""
    assert count([("stablehlo.constant", [2], []), (DOT, [1], [0])], [1, 1, 2]).results == 3 * K


def loop(body: list[tuple[str, list[int], list[int]]], returned: list[int], arguments: list[int]) -> Account:
    """Of 10 = dot(0); (11, 12) = while(10, 0): the body has ``arguments``; 13 = dot(11)."""
    steps = tuple(Step(9, name, tuple(made), tuple(read)) for name, made, read in body)
    inner = Block(tuple(arguments), steps, tuple(returned))
    cond = Block(tuple(30 + n for n in range(len(arguments))), (), (30,))
    results, carried = (11, 12)[: len(arguments)], (10, 0)[: len(arguments)]
    over = Step(1, WHILE, results, carried, 0, (cond, inner))
    outer = (Step(0, DOT, (10,), (0,)), over, Step(2, DOT, (13,), (11,)))
    return account(Block((0,), outer, (13,)), [K] * 64)


def test_a_loop_carries_in_place() -> None:
    """What is carried is one buffer, that of the first value; the body's product goes back into it as tanh."""
    found = loop([(DOT, [20], [14]), (TANH, [21], [20])], [21], [14])
    assert found.temporaries == 1 * K  # the carry; the product finds room in the result's buffer
    # where the old value is still needed after the new one is there, the new one lies beside
    both = loop([(DOT, [20], [14]), (DOT, [21], [14]), (DOT, [22], [20, 21])], [22], [14])
    assert both.temporaries == 2 * K


def test_a_loop_keeps_what_the_step_that_replaces_it_still_reads() -> None:
    """Beside the carried value and the first product, which lies in the result's buffer: a product and a transpose read
    other elements of the old value than they write, and a sum writes where it reads."""

    def last(name: str) -> int:
        return loop([(DOT, [20], [14]), (name, [21], [14, 20])], [21], [14]).temporaries

    assert last(DOT) == last("stablehlo.concatenate") == 2 * K
    assert last(ADD) == K
    assert loop([(DOT, [20], [14]), (DOT, [21], [20])], [21], [14]).temporaries == K  # the old value was read before


def test_values_that_change_places_in_a_loop_are_copied() -> None:
    """Two buffers are carried, and each value goes through a copy to the other's; one of four is the result's."""
    assert loop([], [15, 14], [14, 15]).temporaries == 3 * K
    # what nobody reads can be overwritten: the second moves to the place of the first, and a new one to its own
    assert loop([(TANH, [20], [15])], [15, 20], [14, 15]).temporaries == K


def test_what_a_loop_passes_on_is_not_copied() -> None:
    """The second value is the argument 0 all along."""
    assert loop([(DOT, [20], [14, 15]), (TANH, [21], [20])], [21, 15], [14, 15]).temporaries == K


def test_an_update_is_in_place_where_its_operand_dies() -> None:
    assert count([(DOT, [1], [0]), (UPDATE, [2], [1, 0]), (DOT, [3], [2])], [3]).temporaries == K
    used_later = [(DOT, [1], [0]), (UPDATE, [2], [1, 0]), (DOT, [3], [2, 1])]
    assert count(used_later, [3]).temporaries == 2 * K


def test_the_order_of_the_client() -> None:
    """Eight gathers stand first, each used by one product of a chain: one lives at a time, on CPUs all at first."""
    steps = [("stablehlo.all_gather", [20 + n], [0]) for n in range(8)]
    steps += [(DOT, [40 + n], [20 + n, 39 + n if n else 0]) for n in range(8)]
    assert count(steps, [47]).temporaries == 2 * K  # a gathered value, and the last product; the next is the result's
    assert count(steps, [47], client=CPU).temporaries >= 8 * K


def test_a_long_reduction_on_cpus_reads_from_memory() -> None:
    steps = [(DOT, [1], [0]), (TRANSPOSE, [2], [1]), (REDUCE, [3], [2]), (DOT, [4], [3])]
    sizes = {1: 64 * K, 2: 64 * K}
    assert count(steps, [4], sizes).temporaries == 64 * K + K
    assert count(steps, [4], sizes, CPU).temporaries == 2 * 64 * K


def test_what_nothing_reads_is_not_computed() -> None:
    assert count([(TRANSPOSE, [1], [0]), (DOT, [2], [0])], [2]).temporaries == 0


def test_a_broadcast_that_stretches_nothing_is_its_operand() -> None:
    def to(size: int) -> int:
        return count([(DOT, [1], [0]), (BROADCAST, [2], [1]), (DOT, [3], [2])], [3], {2: size}).temporaries

    assert to(K) == K
    assert to(4 * K) == 4 * K  # the product lies in the result's buffer before that is made


def test_buffers_begin_at_multiples_of_64_bytes() -> None:
    assert count([(DOT, [1], [0]), (DOT, [2], [1])], [2], {1: 65, 2: 4}).temporaries == 128


def test_a_chain_counts_as_the_account_does() -> None:
    """Random sizes: each step reads the one before, in a buffer of its own."""
    rng = random.Random(7)
    for _ in range(50):
        sizes = [64 * rng.randint(1, 99) for _ in range(rng.randint(2, 9))]
        chain = Chain(sizes[0])
        for size in sizes[1:]:
            chain.step(size)
        made = [(f"op{n}", [n], [n - 1]) for n in range(1, len(sizes))]
        # main's argument is never freed and its result has a buffer throughout: both are made small
        steps = [("first", [50], [51]), (made[0][0], made[0][1], [50]), *made[1:], ("last", [52], [len(sizes) - 1])]
        table = {**dict(enumerate(sizes)), 0: 0, 50: sizes[0], 51: 0, 52: 0}
        assert count(steps, [52], table).temporaries == chain.peak
