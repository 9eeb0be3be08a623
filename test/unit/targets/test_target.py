"""Targets by their names, and the compilers that are missing."""

import pytest

from shardpass.cost.machine import MACHINES
from shardpass.diagnostics import ShardpassError
from shardpass.targets import versions
from shardpass.targets.machine import installed_on, target_on
from shardpass.targets.target import CHIPS, chip, cpu, parse_target


@pytest.mark.parametrize(
    ("text", "platform", "devices", "machine", "canonical"),
    [
        ("v5e:16x16", "tpu", 256, "v5e", "v5e:16x16"),
        ("v5p:2x2x4", "tpu", 16, "v5p", "v5p:2x2x4"),
        (" V6E:4X4 ", "tpu", 16, "v6e", "v6e:4x4"),
        ("h100:8", "cuda", 8, "h100", "h100:8"),
        ("h100:1x8", "cuda", 8, "h100", "h100:8"),
        ("h100:4x8", "cuda", 32, "h100", "h100:4x8"),
        ("h100:16", "cuda", 16, "h100", "h100:2x8"),
        ("h100:2x4", "cuda", 8, "h100", "h100:2x4"),
        ("cpu:8", "cpu", 8, "cpu", "cpu:8"),
    ],
)
def test_a_target_is_a_chip_and_sizes(text, platform, devices, machine, canonical):
    target = parse_target(text)
    assert (target.platform, target.devices, target.machine, str(target)) == (platform, devices, machine, canonical)
    assert parse_target(str(target)) == target


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("v5e", "a chip, a colon and sizes"),
        ("v5e:", "a chip, a colon and sizes"),
        ("v5e:4x", "a chip, a colon and sizes"),
        ("h10:8", "did you mean h100"),
        ("v5e:16", "2 sizes, not 1"),
        ("v5p:4x4", "3 sizes, not 2"),
        ("cpu:2x4", "one size, not 2"),
        ("h100:12", "hosts have 8 cards, which do not divide 12"),
        ("h100:0", "1 to 65,536"),
        ("v5e:1000x1000", "1 to 65,536"),
        (8, "a chip, a colon and sizes"),
        (None, "a chip, a colon and sizes"),
    ],
)
def test_any_other_text_is_an_error_with_a_reason(text, words):
    with pytest.raises(ShardpassError, match=words) as raised:
        parse_target(text)
    assert raised.value.diagnostics[0].code == "SP908"


@pytest.mark.parametrize(
    ("machine", "devices", "name"),
    [
        ("v5e", 8, "v5e:2x4"),
        ("v5e", 256, "v5e:16x16"),
        ("v5p", 4, "v5p:2x2x1"),
        ("v5p", 16, "v5p:2x2x4"),
        ("v5p", 128, "v5p:4x4x8"),
        ("h100", 6, "h100:6"),
        ("h100", 16, "h100:2x8"),
        ("h100", 12, "h100:2x6"),
        ("h100", 9, None),
        ("v5e", 12, None),
        ("v5e", 1, None),
        ("mi300x", 8, None),
        ("cpu", 8, None),
        ("cluster.toml", 8, None),
    ],
)
def test_a_machine_has_a_target_of_so_many_devices(machine, devices, name):
    target = target_on(machine, devices)
    assert target == (None if name is None else parse_target(name))


def test_each_chip_has_a_machine_of_prices():
    assert {chip(name).machine for name in CHIPS} <= set(MACHINES)


def test_a_missing_compiler_is_an_error_that_names_the_extra(monkeypatch):
    monkeypatch.setattr(versions, "_present", lambda package: package not in ("libtpu", "jax-cuda13-pjrt"))
    for text, missing, extra in (("v5e:2x4", "libtpu", "tpu"), ("h100:8", "jax-cuda13-pjrt", "gpu")):
        assert not versions.is_installed(parse_target(text))
        with pytest.raises(ShardpassError) as raised:
            versions.compiler_version(parse_target(text))
        error = raised.value.diagnostics[0]
        assert error.code == "SP909"
        assert missing in error.message
        assert f"'shardpass[{extra}]'" in str(error)
    assert versions.compiler_version(cpu(8)).startswith("jaxlib ")


def test_a_named_machine_means_its_compiler_where_that_is_installed(monkeypatch):
    monkeypatch.setattr("shardpass.targets.versions._present", lambda package: package == "libtpu")
    assert str(installed_on("v5e", 8)) == "v5e:2x4"
    assert installed_on("h100", 8) is installed_on("cpu", 8) is installed_on(None, 8) is None
