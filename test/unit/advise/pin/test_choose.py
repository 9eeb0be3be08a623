"""Which points are kept, where a formula in place of XLA says what a set of them leads to."""

import random
from dataclasses import dataclass, replace

import pytest

from shardpass.advise.pin import choose as choosing
from shardpass.advise.pin.points import OPERAND, RESULT, Decided, Point, Spot
from shardpass.cost.machine import IDEAL
from shardpass.diagnostics import Place
from shardpass.diagnostics.table_runtime import PEER_FAILED
from shardpass.diagnostics.table_suggest import LIMIT_TOO_LOW
from shardpass.sharding import Mesh
from shardpass.targets.target import cpu

OPS = ("stablehlo.dot_general", "stablehlo.convolution", "stablehlo.gather", "stablehlo.add", "stablehlo.transpose")


@dataclass(frozen=True)
class Program:
    """What the formula says of a variant."""

    bytes_received: int
    temporaries: int
    memory: int

    target = cpu(8)

    @property
    def bytes_scattered(self):
        return self.bytes_received

    def seconds(self, machine, borders):
        return self.bytes_received / 1e9


PLAIN = Program(1000, 500, 800)


def points(count):
    def point(number):
        spot = Spot(number, OPERAND if number % 3 == 0 else RESULT, 0)
        return Point(spot, (("data",), ()), OPS[number % len(OPS)], "", 64, number % 4 == 3, Place("train.py", number))

    return tuple(map(point, range(count)))


class Formula:
    """Stands in for the compiler: ``effects`` of each point on the plain program; ``fails`` where all of some are."""

    def __init__(self, effects, fails=()):
        self.effects, self.fails = effects, frozenset(fails)
        self.compiled = 0

    def __call__(self, devices):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def compile(self, kept):
        self.compiled += 1
        if self.fails and self.fails <= {point.spot.op for point in kept}:
            raise PEER_FAILED.error(way="xla", reason="RET_CHECK")
        return self.of(kept)

    def of(self, kept):
        found = PLAIN
        for point in kept:
            received, temporaries = self.effects.get(point.spot.op, (0, 0))
            found = replace(
                found,
                bytes_received=found.bytes_received + received,
                temporaries=found.temporaries + temporaries,
                memory=found.memory + temporaries,
            )
        return found


@dataclass(frozen=True)
class Alive:
    peak: int = 600


@dataclass(frozen=True)
class Plan:
    """What shardpass's own plan receives, and holds at once."""

    bytes_received: int = 0
    alive: Alive = Alive()


def chosen(monkeypatch, count, effects, fails=(), most=40, plan=Plan(), within=None, **options):
    formula = Formula(effects, fails)
    monkeypatch.setattr(choosing, "Compiler", formula)
    monkeypatch.setattr(choosing, "pinned_module", lambda module, mesh, kept: kept)
    monkeypatch.setattr(choosing, "bytecode", lambda kept: kept)
    found = choosing.choose(
        _Module(), Decided(Mesh([("data", 8)]), points(count), plan), IDEAL, most, within, **options
    )
    return [point.spot.op for point in found.points], found, formula


class _Module:
    class context:
        @staticmethod
        def __enter__():
            pass

        @staticmethod
        def __exit__(*_):
            pass

    context = context()


def test_points_that_do_nothing_are_left_out(monkeypatch):
    kept, found, _ = chosen(monkeypatch, 32, {5: (-400, 0), 22: (-300, -10)})
    assert kept == [5, 22]
    assert found.pinned.bytes_received == 300


def test_each_better_program_is_told_when_it_is_compiled(monkeypatch):
    told = []
    _, found, _ = chosen(monkeypatch, 16, {5: (-400, 0), 6: (100, 0)}, improved=lambda *one: told.append(one))
    received = [program.bytes_received for program, _ in told]
    assert received[0] == 700, "of the set of all points"
    assert sorted(received, reverse=True) == received
    assert told[-1] == (found.pinned, found.seconds[1])


def test_points_that_hurt_are_left_out(monkeypatch):
    kept, found, _ = chosen(monkeypatch, 16, {5: (-400, 0), 6: (900, 0), 11: (0, 700)})
    assert kept == [5]
    assert found.pinned.temporaries == PLAIN.temporaries


@pytest.mark.parametrize("effects", [{}, {3: (10, 0)}, {3: (-500, 1)}, dict.fromkeys(range(12), (-1, 1))])
def test_without_a_gain_within_the_memory_there_is_none(monkeypatch, effects):
    kept, found, _ = chosen(monkeypatch, 12, effects)
    assert kept == []
    assert found.pinned == PLAIN


def test_a_set_over_which_xla_fails_is_as_bad_as_can_be(monkeypatch):
    kept, _, _ = chosen(monkeypatch, 16, {2: (-100, 0), 9: (-100, 0)}, fails={6})
    assert 6 not in kept
    assert kept


def test_where_xla_reaches_the_plan_no_other_set_is_a_start(monkeypatch):
    """All points are as good as shardpass's plan: only sets that leave points out of all are compiled."""
    compiled = []
    monkeypatch.setattr(
        Formula, "compile", lambda self, kept: (compiled.append(len(kept)), compile_variant(self, kept))[1]
    )
    kept, found, _ = chosen(monkeypatch, 12, {5: (-400, 0)}, plan=Plan(bytes_received=600))
    assert kept == [5]
    assert found.pinned.bytes_received == 600
    starts = [len(set(start)) for start in choosing._starts(points(12))]
    assert compiled[:2] == [0, 12]
    assert compiled[2:4] != starts[1:3]


compile_variant = Formula.compile


def test_where_the_plan_receives_no_less_nothing_else_is_compiled(monkeypatch):
    kept, _, formula = chosen(monkeypatch, 12, {5: (100, 0)}, plan=Plan(bytes_received=1000))
    assert kept == []
    assert formula.compiled == 2


def test_shardings_are_decided_again_within_what_plain_takes(monkeypatch):
    """All 8 points take 200 bytes more than plain, of a plan that holds 600: so 400 is the limit, and then 350."""
    limits = []
    decisions = {400: {100: (-300, 50)}, 350: {200: (-100, 0)}}

    def within(limit):
        limits.append(limit)
        named = tuple(replace(point, spot=replace(point.spot, op=next(iter(decisions[limit])))) for point in points(1))
        return Decided(Mesh([("data", 8)]), named, Plan(alive=Alive(limit)))

    effects = {3: (-500, 200)} | {op: change for one in decisions.values() for op, change in one.items()}
    kept, found, _ = chosen(monkeypatch, 8, effects, within=within)
    assert limits == [400, 350]
    assert kept == [200]
    assert (found.pinned.bytes_received, found.pinned.temporaries) == (900, 500)


def test_where_nothing_is_that_small_the_first_decision_stays(monkeypatch):
    def within(limit):
        raise LIMIT_TOO_LOW.error(limit=limit, least=limit, bytes=limit)

    kept, _, _ = chosen(monkeypatch, 8, {3: (-500, 200), 5: (-100, 0)}, within=within)
    assert kept == [5]


def test_where_xla_refuses_the_plain_program_that_is_the_error(monkeypatch):
    formula = Formula({})
    monkeypatch.setattr(choosing, "Compiler", formula)
    monkeypatch.setattr(choosing, "pinned_module", lambda module, mesh, kept: kept)
    monkeypatch.setattr(choosing, "bytecode", _refused)
    with pytest.raises(Exception, match=r"RET_CHECK"):
        choosing.choose(_Module(), Decided(Mesh([("data", 8)]), points(4), Plan()), IDEAL)


def _refused(_):
    raise PEER_FAILED.error(way="xla", reason="RET_CHECK")


@pytest.mark.parametrize("seed", range(30))
def test_nothing_is_ever_above_plain_and_no_more_is_compiled_than_allowed(monkeypatch, seed):
    rng = random.Random(seed)
    count, most = rng.randint(1, 60), rng.randint(1, 40)
    effects = {k: (rng.randint(-40, 25), rng.randint(-9, 7)) for k in range(count) if rng.random() < 0.5}
    kept, found, formula = chosen(monkeypatch, count, effects, most=most)
    assert formula.compiled == found.compiled <= most
    assert found.pinned == formula.of([point for point in points(count) if point.spot.op in kept])
    assert found.pinned.bytes_received <= PLAIN.bytes_received
    assert found.pinned.temporaries <= PLAIN.temporaries
