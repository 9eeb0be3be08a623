"""Profiles by name and from files, and what is said of files that hold none."""

import json

import pytest

from shardpass.cost.machine import switched
from shardpass.cost.profiles import from_json, read_profile, to_json
from shardpass.diagnostics import ShardpassError
from shardpass.redistribute import plan_redistribution

PLAIN = {"name": "mine", "latency": 1e-5, "bandwidth": 2e9, "copies": 3e9}


@pytest.mark.parametrize("blocks", [(), ((8, 1e-6, 1e11),), ((4, 0.0, 1e12), (64, 1e-6, 1e11))])
def test_machines_of_switches_are_read_as_they_are_written(blocks):
    machine = switched("mine", 1e-5, 2e9, 3e9, blocks=blocks, flops=1e12, about="a test", runs=1e7, cuts_by_slices=True)
    assert from_json(json.loads(json.dumps(to_json(machine))), "") == machine


def test_a_file_is_a_profile(tmp_path):
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({**PLAIN, "fit": "a note"}))
    assert read_profile(str(file)) == switched("mine", 1e-5, 2e9, 3e9, flops=6.4e12)
    file.write_text(json.dumps({"latency": 0, "bandwidth": 1, "copies": 1, "blocks": [{"devices": 8, **PLAIN}]}))
    assert read_profile(str(file)) == switched("mine", 0.0, 1.0, 1.0, blocks=((8, 1e-5, 2e9),), flops=6.4e12)


def test_a_file_decides_as_its_numbers_do(tmp_path):
    """Steps that cost nothing and bytes that cost much, and the other way round."""
    sides = "{mesh['a'=4,'b'=4], [{'a','b'}, {}]}", "{mesh['a'=4,'b'=4], [{'b'}, {'a'}]}"
    steps = {}
    for latency, bandwidth in ((0, 1), (1, 1e15)):
        file = tmp_path / f"{latency}.json"
        file.write_text(json.dumps({"latency": latency, "bandwidth": bandwidth, "copies": 1e18}))
        plan = plan_redistribution((64, 64), "f32", *sides, machine=str(file))
        steps[latency] = len(plan.steps)
        assert plan.profile == str(latency)
        assert plan.seconds == pytest.approx(latency * len(plan.steps) + plan.bytes_received / bandwidth, rel=1e-3)
    assert steps[1] < steps[0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "Expecting property name"),
        ("[]", "it is not a JSON object"),
        (json.dumps({**PLAIN, "latency": "fast"}), "the profile has no number 'latency'"),
        (json.dumps({**PLAIN, "latency": True}), "the profile has no number 'latency'"),
        (json.dumps({**PLAIN, "latency": float("nan")}), "the profile has no number 'latency'"),
        (json.dumps({**PLAIN, "bandwidth": 0}), "'bandwidth' of the profile is 0, which is not above 0"),
        (json.dumps({**PLAIN, "latency": -1}), "'latency' of the profile is -1, which is not from 0 up"),
        (
            json.dumps({**PLAIN, "latency": 10**300}),
            "'latency' of the profile is a number of 301 digits, which is too large",
        ),
        (json.dumps({**PLAIN, "latency": float("inf")}), "'latency' of the profile is inf, which is too large"),
        (json.dumps({**PLAIN, "bandwidth": 5e-324}), "is 5e-324, which is too small: a number is from 1e-50 to 1e+50"),
        (
            json.dumps({**PLAIN, "blocks": [{"devices": float("inf"), **PLAIN}]}),
            "of blocks[0] is inf, which is too large",
        ),
        (json.dumps({**PLAIN, "blocks": {}}), "blocks must be a list"),
        (json.dumps({**PLAIN, "axes": {"x": PLAIN}}), "links by mesh axis are read no longer"),
        (json.dumps({**PLAIN, "blocks": [{"devices": 2.5, **PLAIN}]}), "the devices of blocks must be whole numbers"),
        (json.dumps({**PLAIN, "blocks": [{"devices": n, **PLAIN} for n in (8, 4)]}), "the smallest first"),
        ("\udcff", "codec can't decode"),
    ],
)
def test_what_is_wrong_with_a_file(tmp_path, text, reason):
    file = tmp_path / "bad.json"
    file.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ShardpassError, match="SP414") as caught:
        read_profile(str(file))
    assert f"{file} cannot be read as a cost profile: " in caught.value.diagnostics[0].message
    assert reason in caught.value.diagnostics[0].message


def test_a_rate_may_be_infinite(tmp_path):
    """As that of copies in the profile ``paper``; the time of a plan is finite."""
    file = tmp_path / "free.json"
    file.write_text(json.dumps({**PLAIN, "copies": float("inf")}))
    assert read_profile(str(file)).memory_bandwidth == float("inf")
    plan = plan_redistribution((8,), "f32", "{devices=[4]<=[4]}", "{replicated}", machine=str(file))
    assert 0 < plan.seconds < 1


def test_a_file_that_does_not_exist(tmp_path):
    with pytest.raises(ShardpassError, match="No such file"):
        read_profile(str(tmp_path / "nothing.json"))


def test_a_file_that_changes_is_read_again(tmp_path):
    file = tmp_path / "p.json"
    for latency in (1, 22, 333):
        file.write_text(json.dumps({**PLAIN, "latency": latency}))
        assert read_profile(str(file)).links[0].latency == latency
