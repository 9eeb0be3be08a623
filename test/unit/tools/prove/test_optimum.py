"""The cheapest plan of a small program: held to arithmetic by hand, and to enumeration."""

from __future__ import annotations

from dataclasses import asdict
from random import Random

import pytest

from shardpass.planning.plan.cost import price
from shardpass.planning.plan.planner import plan_program
from tools.prove.cheapest.drafts import Draft
from tools.prove.cheapest.examine import Examiner, Outcome, read
from tools.prove.cheapest.options import Costs
from tools.prove.cheapest.plans import Plans
from tools.prove.cheapest.random_programs import LARGEST, SMALLEST, Example, random_program
from tools.prove.cheapest.space import Domains, Slot, space_of
from tools.prove.cheapest.told import summary, told
from tools.prove.cheapest.witness import Witness

MESH = (("d", 2),)
ROWS = (("d",), ())


LINK, MEMORY, FLOPS = 50e9, 1e12, 6.4e12  # of the machine ideal


def product(rows: int, inner: int, columns: int) -> str:
    """FSDP in one line: ``x @ w``, both in rows over d, nothing said of the result."""
    draft = Draft(MESH)
    x, w = draft.argument([rows, inner]), draft.argument([inner, columns])
    draft.dot(x, w, (1, 0))
    draft.annotations = {x: ROWS, w: ROWS}
    return draft.text()


def witness(text: str) -> Witness:
    program = read(text)
    domains = Domains(program.mesh)
    return Witness(space_of(program, domains), Costs(program.mesh, domains))


def shardings(found: Witness, chosen: dict[object, object]) -> list[str]:
    return [str(chosen[variable]) for variable in found.space.domains if not isinstance(variable, Slot)]


def test_a_small_weight_is_gathered() -> None:
    """x f32[1024,64] is 256 KiB and w f32[64,32] 8 KiB: a device receives the half of w that it lacks.

    4096 bytes and one latency of 512 at 50 GB/s, and half of the product's 2*1024*64*32 flops at 6.4 Tflop/s.
    """
    found = witness(product(1024, 64, 32))
    best = found.cheapest()
    assert best.price == pytest.approx((4096 + 512) / LINK + 2 * 1024 * 64 * 32 / 2 / FLOPS)
    assert best.proved
    rows = "{devices=[2,1]<=[2]}"
    assert shardings(found, best.chosen) == [rows, rows, rows]


def test_a_large_weight_stays_where_it_is() -> None:
    """x f32[8,1024] is 32 KiB and w f32[1024,512] 2 MiB: x goes to columns, and the partial products are scattered.

    Of x a device has 16 KiB and receives half of that, 8192 bytes; of its partial f32[8,512], which is 16 KiB, it
    receives half, 8192 bytes; two latencies; its tiles of w, x and the product through memory, and x twice more.
    """
    best = witness(product(8, 1024, 512)).cheapest()
    memory = 4 * (512 * 512 + 8 * 512 + 8 * 512) + 2 * 4 * 8 * 512
    assert best.price == pytest.approx((2 * 8192 + 2 * 512) / LINK + memory / MEMORY, rel=1e-3)
    assert best.proved


def test_a_weight_is_gathered_once_for_two_products() -> None:
    """``(x @ w) + (y @ w)``: w is brought to every device once, however many take it."""
    draft = Draft(MESH)
    x, y, w = draft.argument([1024, 64]), draft.argument([1024, 64]), draft.argument([64, 32])
    draft.binary("add", draft.dot(x, w, (1, 0)), draft.dot(y, w, (1, 0)))
    draft.annotations = dict.fromkeys((x, y, w), ROWS)
    best = witness(draft.text()).cheapest()
    products, memory = (
        2 * 2 * 1024 * 64 * 32 / 2 / FLOPS,
        3 * 4 * 1024 * 32 / 2,
    )  # the sum reads two tiles and writes one
    assert best.price == pytest.approx((4096 + 512) / LINK + products + memory / MEMORY)
    assert best.proved


def test_a_result_leaves_as_its_value_was_constrained() -> None:
    draft = Draft(MESH)
    x = draft.argument([64, 64])
    draft.constraint(draft.unary("tanh", x), ((), ("d",)))
    draft.annotations = {x: ROWS}
    found = witness(draft.text())
    best = found.cheapest()
    assert str(best.chosen[Slot(0)]) == "{devices=[1,2]<=[2]}"
    memory = 2 * 4 * 64 * 64 / 2 + 2 * 4 * 64 * 64 / 2  # of the tanh, and of the exchange
    assert best.price == pytest.approx((64 * 64 * 4 / 2 / 2 + 512) / LINK + memory / MEMORY, rel=1e-3)
    assert best.proved


def two_ops(seed: int) -> str:
    """A product and what is done with it, on 2x2 devices, with some sizes and annotations: tens of assignments."""
    rng = Random(seed)
    draft = Draft((("d", 2), ("m", 2)))
    rows, inner, columns = (1 << rng.randint(2, 8) for _ in range(3))
    x, w = draft.argument([rows, inner]), draft.argument([inner, columns])
    made = draft.dot(x, w, (1, 0))
    if seed % 3 == 0:
        made = draft.reduce("add", made, rng.choice((0, 1)))
    elif seed % 3 == 1:
        made = draft.dot(x, made, (0, 0))
    else:
        made = draft.unary("tanh", made)
    any_two = ((("d",), ()), ((), ("d",)), (("d", "m"), ()), (("m",), ("d",)), ((), ()))
    draft.annotations = {x: rng.choice(any_two), w: rng.choice(any_two)}
    fixed = any_two if len(draft.shape(made)) == 2 else ((("d",),), (("m",),), ((),))
    draft.annotations[made] = rng.choice(fixed)
    return draft.text()


@pytest.mark.turns(3)
@pytest.mark.parametrize("seed", range(12))
def test_the_integer_program_finds_what_enumeration_does(seed: int) -> None:
    found = witness(two_ops(seed))
    assert 1 < found.space.size < 400
    exact, quick = found.enumerated(), found.by_ilp()
    assert quick.price == pytest.approx(exact.price, rel=1e-6)
    assert quick.bound <= exact.price * (1 + 1e-6)


def test_plans_that_share_their_tables_are_those_of_the_planner() -> None:
    rng = Random(0)
    for seed in range(3):
        program = read(random_program(seed).text)
        space, plans = space_of(program, Domains(program.mesh)), Plans(program)
        for _ in range(5):
            said = space.shardings({variable: rng.choice(domain) for variable, domain in space.domains.items()})
            assert plans.price(said) == price(plan_program(program, said))


def test_random_programs_have_the_size_that_is_promised() -> None:
    for seed in range(100):
        assert SMALLEST <= read(random_program(seed).text).count <= LARGEST


def test_what_was_found_is_taken_over() -> None:
    """And found anew where the prices are other ones."""
    example = Example(0, "fsdp", product(1024, 64, 32), MESH)
    first = Examiner(effort=1).examine(example).outcome
    kept = Outcome.of(asdict(first))
    again = Examiner(effort=0).examine(example, kept).outcome
    assert (again.best, again.bound, again.assignment) == (first.best, first.bound, first.assignment)
    changed = Outcome.of(asdict(first) | {"best": first.best - 1})
    assert Examiner(effort=1).examine(example, changed).outcome.best == first.best


def test_what_is_told() -> None:
    found = Examiner(effort=1).examine(Example(7, "fsdp", product(1024, 64, 32), MESH))
    text = "\n".join(told(found))
    assert "0: dot_general" in text
    assert "all_gather over d: 4.0 KiB" in text
    assert next(iter(summary([found.outcome]))) == (
        "1 programs: equal on 100.0%, within 5% on 100.0%, worst 1.0000 (seed 7)"
    )
    assert list(summary([])) == ["no program"]
