"""What processes say to each other, with the others played: which devices, which program, and how they part."""

import json
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from shardpass.diagnostics import ShardpassError
from shardpass.ir.context import parse_module
from shardpass.runtime import processes
from shardpass.runtime.process_environment import ADDRESS, COUNT, INDEX
from shardpass.runtime.processes import agree, agreed, fingerprint, first_of_each, join, leave, processes_of


def devices(*indices):
    return [SimpleNamespace(id=k, process_index=index) for k, index in enumerate(indices)]


def test_processes_come_in_order_each_once():
    assert processes_of(devices(9, 17, 1, 9, 0)) == (0, 1, 9, 17)
    assert processes_of([]) == ()


@pytest.mark.parametrize(
    ("owners", "needed", "expected"),
    [
        ((0, 0, 0, 0), 2, [0, 1]),
        ((0, 0, 1, 1), 2, [0, 2]),
        ((1, 0, 1, 0), 2, [1, 0]),  # by process, whatever the order of the devices
        ((0, 0, 1, 1), 4, [0, 1, 2, 3]),
        ((1, 0, 1, 0), 4, [0, 1, 2, 3]),  # all of them: as they are
        ((0, 0, 0, 1, 1, 1), 4, [0, 1, 3, 4]),
    ],
)
def test_each_process_gives_as_many_devices(owners, needed, expected):
    assert [device.id for device in first_of_each(devices(*owners), needed)] == expected


def test_what_processes_cannot_share_is_refused():
    with pytest.raises(ShardpassError) as error:
        first_of_each(devices(0, 0, 1, 1), 3)
    assert error.value.code == "SP563"


@pytest.fixture
def others(monkeypatch):
    """What the other processes answer to a topic; the topics that this one asked for."""
    said = SimpleNamespace(answers=lambda mine: [mine], topics=[])

    def exchange(topic, who, mine, asked, patience):
        assert (who, patience) == ("0", processes.PATIENCE)
        said.topics.append((topic, tuple(asked)))
        return said.answers(mine)

    monkeypatch.setattr(processes.jax_private, "exchange", exchange)
    monkeypatch.setattr(processes, "_turns", type(processes._turns)())
    return said


def with_answer(index, text, versions=None):
    def answers(mine):
        return [mine, json.dumps([index, text, versions or json.loads(mine)[2]])]

    return answers


def test_equal_programs_agree_and_each_turn_has_a_topic_of_its_own(others):
    others.answers = with_answer(3, "abc")
    agree("jit_step", (0, 3), "abc")
    agree("jit_step", (0, 3), "abc")
    agree("jit_other", (0, 3), "abc")
    assert len({topic for topic, _ in others.topics}) == 3
    assert {asked for _, asked in others.topics} == {(0, 3)}


def test_programs_that_differ_are_named_with_their_processes(others):
    others.answers = with_answer(3, "def")
    with pytest.raises(ShardpassError, match=r"process 0 has abc; process 3 has def") as error:
        agree("jit_step", (0, 3), "abc")
    assert error.value.code == "SP560"
    assert jax.__version__ not in error.value.args[0]


def test_other_versions_are_told_where_they_are_the_reason(others):
    others.answers = with_answer(3, "def", "jax 0.1")
    with pytest.raises(
        ShardpassError, match=rf"process 0 has abc \(jax {jax.__version__}.*process 3 has def \(jax 0.1\)"
    ):
        agree("jit_step", (0, 3), "abc")


def test_a_process_that_does_not_come_is_told_after_patience(others):
    def late(mine):
        raise RuntimeError("DEADLINE_EXCEEDED: task 3\n did not come [type.googleapis.com/x] more")

    others.answers = late
    with pytest.raises(ShardpassError, match="task 3 did not come") as error:
        agree("jit_step", (0, 3), "abc")
    assert error.value.code == "SP561"
    assert "googleapis" not in str(error.value)
    assert str(processes.PATIENCE) in str(error.value)


TEXT = "module @step attributes {jax.a = 1 : i32} { func.func @main() { return } }"


def test_a_module_is_known_without_its_places():
    here, there, other = (
        parse_module(TEXT, "here.mlir"),
        parse_module("\n\n" + TEXT, "there.mlir"),
        parse_module(TEXT.replace("1", "2")),
    )
    assert fingerprint(here) == fingerprint(there) != fingerprint(other)


def test_one_process_asks_nobody(others):
    assert agreed(parse_module(TEXT), devices(0, 0), lambda: ("made", 7)) == ("made", 7)
    assert not others.topics


def test_devices_that_are_only_described_are_of_no_process(others, monkeypatch):
    client = type("CompileOnlyPyClient", (), {})
    monkeypatch.setattr(processes.jax_private._jax, "CompileOnlyPyClient", client)
    described = [SimpleNamespace(id=k, process_index=k, client=client()) for k in range(2)]
    assert agreed(parse_module(TEXT), described, lambda: ("made", 7)) == ("made", 7)
    assert not others.topics


def test_several_agree_on_what_was_made(others):
    made = parse_module(TEXT)
    others.answers = with_answer(1, fingerprint(made))
    assert agreed(made, devices(0, 1), lambda: (made, 7)) == (made, 7)
    ((topic, asked),) = others.topics
    assert asked == (0, 1)
    assert "step" in topic
    others.answers = with_answer(1, "none (SP301)")
    with pytest.raises(ShardpassError) as error:
        agreed(made, devices(0, 1), lambda: (made, 7))
    assert error.value.code == "SP560"


@pytest.mark.parametrize(("theirs", "expected"), [("none (ValueError)", ValueError), ("abc", ShardpassError)])
def test_an_error_is_raised_where_all_have_it(others, theirs, expected):
    def make():
        raise ValueError("no")

    others.answers = with_answer(1, theirs)
    with pytest.raises(expected):
        agreed(parse_module(TEXT), devices(0, 1), make)


def test_this_process_alone_joins_nobody(monkeypatch):
    for name in (ADDRESS, COUNT, INDEX):
        monkeypatch.delenv(name, raising=False)
    assert not join()
    assert not join(processes=1, process=0)
    leave(0)
    leave(1)  # not joined: nothing to leave


@pytest.mark.parametrize(
    ("given", "environment"),
    [
        ({"processes": 2, "process": 0}, {}),
        ({"coordinator": "here:1", "processes": 2}, {}),
        ({"coordinator": "here:1", "processes": 2, "process": 2}, {}),
        ({"coordinator": "here:1", "processes": 2, "process": -1}, {}),
        ({"coordinator": "here:1"}, {COUNT: "two", INDEX: "0"}),
        ({"coordinator": "here:1"}, {COUNT: "2", INDEX: "first"}),
        ({}, {COUNT: "2", INDEX: "0"}),
    ],
)
def test_numbers_that_are_missing_or_wrong(given, environment, monkeypatch):
    for name in (ADDRESS, COUNT, INDEX):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ShardpassError) as error:
        join(**given)
    assert error.value.code == "SP564"


@pytest.fixture
def leaving(monkeypatch):
    """What happens as this process, the first of several, leaves them; ``meets``: how it waits for the others."""
    seen = SimpleNamespace(meets=lambda: None, done=[], now=0.0)

    def wait(topic, seconds):
        seen.done.append(("wait", topic))
        assert seconds > 0
        seen.meets()

    monkeypatch.setattr(processes.jax.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(processes.jax_private, "wait_for_processes", wait)
    monkeypatch.setattr(processes.time, "monotonic", lambda: seen.now)
    monkeypatch.setattr(processes.time, "sleep", lambda seconds: seen.done.append(("sleep", seconds > 0)))
    monkeypatch.setattr(processes.os, "_exit", lambda status: seen.done.append(("exit", status)))
    return seen


def test_one_that_leaves_meets_the_others_and_the_first_goes_last(leaving):
    leave(3)
    assert leaving.done == [("wait", "shardpass/leave"), ("sleep", True), ("exit", 3)]


def test_one_that_is_not_the_first_goes_at_once(leaving, monkeypatch):
    monkeypatch.setattr(processes.jax, "process_index", lambda: 1)
    leave(3)
    assert leaving.done == [("wait", "shardpass/leave"), ("exit", 3)]


@pytest.mark.parametrize(("waited", "sleeps"), [(0.1, True), (2.9, False)])
def test_one_that_nobody_meets_lets_their_end_be_seen(leaving, waited, sleeps):
    def meets():
        leaving.now += waited
        raise RuntimeError("barrier timed out")

    leaving.meets = meets
    leave(1)
    assert leaving.done == [("wait", "shardpass/leave"), ("sleep", sleeps), ("exit", 1)]


def test_all_is_well_and_none_leaves(leaving):
    leave(0)
    assert leaving.done == []


def test_an_array_of_which_this_process_holds_a_part_is_brought_whole(monkeypatch):
    """Of one device in this process, as it is where each has one: there is no second piece to look at."""

    class Held(SimpleNamespace):
        is_fully_addressable = False

    whole = jax.device_put(np.arange(6), jax.devices()[0])
    held = Held(whole=whole)
    monkeypatch.setattr(processes, "everywhere", lambda array, part: part(array.whole))
    monkeypatch.setattr(processes.jax, "Array", Held)
    np.testing.assert_array_equal(processes.whole_value(held), np.arange(6))
    np.testing.assert_array_equal(processes.whole_value(np.arange(3)), np.arange(3))
