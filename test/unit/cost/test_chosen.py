"""The machine that a user says: by name, file or object, by the environment, and what is told of others."""

import os
from dataclasses import replace

import pytest

from shardpass.cost.chosen import VARIABLE, chosen, content_text, identity, machine_text, named_machine
from shardpass.cost.links import Switch
from shardpass.cost.machine import FOLDER, MACHINES, find_machine
from shardpass.diagnostics import ShardpassError

LAB = """name = "lab"
memory = 16e9
memory_bandwidth = 1e12

[flops]
f32 = 1e13

[[links]]
kind = "switch"
devices = 4
latency = 5e-6
bandwidth = 100e9

[[links]]
kind = "switch"
latency = 20e-6
bandwidth = 10e9
"""


@pytest.fixture
def lab(tmp_path):
    file = tmp_path / "lab.toml"
    file.write_text(LAB)
    return file


def refused(said):
    with pytest.raises(ShardpassError) as caught:
        machine_text(said)
    (told,) = caught.value.diagnostics
    return told


def test_without_a_word_the_environment_says_the_machine(monkeypatch):
    monkeypatch.setenv(VARIABLE, "v5p")
    assert machine_text() == machine_text("") == "v5p"
    assert chosen().name == "v5p"
    assert machine_text("a100") == "a100"
    monkeypatch.delenv(VARIABLE)
    assert machine_text() == "h100"


def test_a_wrong_environment_is_named(monkeypatch):
    monkeypatch.setenv(VARIABLE, "abacus")
    told = refused(None)
    assert (told.code, told.message) == ("SP901", "there is no machine 'abacus' (SHARDPASS_MACHINE)")


def test_a_file_is_a_machine_by_its_path(lab):
    for said in (lab, str(lab)):
        assert machine_text(said) == str(lab)
        assert chosen(said).links == (Switch(4, 5e-6, 100e9), Switch(None, 20e-6, 10e9))
    lab.write_text(LAB.replace("20e-6", "0.25"))
    assert chosen(lab).links[1].latency == 0.25


def test_an_object_is_a_machine_by_its_name_and_content():
    h100 = find_machine("h100")
    assert machine_text(h100) == "h100"
    other = replace(h100, memory=1e9)
    text = machine_text(other)
    assert text.startswith("h100@")
    assert text != machine_text(replace(h100, memory=2e9))
    assert named_machine(text) == other == chosen(other)


def test_the_text_of_content_is_that_of_a_file_and_changes_with_it(lab):
    first = content_text(lab)
    assert named_machine(first) == chosen(lab)
    assert first == identity(chosen(lab))
    lab.write_text(LAB.replace("16e9", "32e9"))
    assert content_text(lab) != first
    assert content_text("v6e") == "v6e"


def test_an_object_of_another_process_is_told_so():
    told = refused("lab@0123456789ab")
    assert told.code == "SP907"
    assert "machine=FILE.toml" in told.remedy


@pytest.mark.parametrize(("said", "near"), [("H100", "h100"), ("tpu-v5p", "v5p"), ("mi300", "mi300x")])
def test_the_nearest_name_is_told(said, near):
    told = refused(said)
    assert told.code == "SP901"
    assert told.remedy.startswith(f"did you mean {near}? ")
    assert all(name in told.remedy for name in MACHINES)


class Loud:
    """Raises whatever is asked of it."""

    def __eq__(self, other):
        raise RuntimeError

    def __repr__(self):
        raise RuntimeError

    __hash__ = None


@pytest.mark.parametrize("said", [7, b"h100", ["h100"], Loud(), "\ud800", "no\0file.toml"])
def test_strange_machines_are_refused(said):
    assert refused(said).code in ("SP901", "SP902")


@pytest.mark.parametrize(
    ("edit", "place", "words"),
    [
        (("name = ", "name : "), ":1:6", "expected '='"),
        (('kind = "switch"\ndevices', 'kind = "switch\ndevices'), ":9:15", "illegal character"),
        (("16e9", "16e9e"), ":2:14", "expected newline"),
    ],
)
def test_what_is_no_toml_has_its_place(lab, edit, place, words):
    lab.write_text(LAB.replace(*edit, 1))
    told = refused(lab)
    assert told.code == "SP902"
    assert str(told.place) == f"{lab}{place}"
    assert words in told.message


@pytest.mark.parametrize(
    ("edit", "field", "value"),
    [
        (('name = "lab"', "name = 7"), "name", "7"),
        (("memory = 16e9\n", ""), "memory", "missing"),
        (("16e9", "-1"), "memory", "-1"),
        (("16e9", "true"), "memory", "True"),
        (("16e9", "nan"), "memory", "nan"),
        (("16e9", '"16 GiB"'), "memory", "16 GiB"),
        (("1e12", "1" + "0" * 400), "memory_bandwidth", "1000"),
        (("[flops]\nf32 = 1e13", "flops = 3"), "flops", "3"),
        (("f32 = 1e13", ""), "flops", "missing"),
        (("f32 =", "float32 ="), "flops.float32", "1"),
        (("f32 = 1e13", "f32 = 0"), "flops.f32", "0"),
        (("[[links]]", "[[wires]]"), "links", "missing"),
        (('"switch"', '"string"'), "links[0].kind", "string"),
        (("latency = 5e-6\n", ""), "links[0].latency", "missing"),
        (("latency = 20e-6", "latency = -1"), "links[1].latency", "-1"),
        (("devices = 4", "devices = 4.5"), "links[0].devices", "4.5"),
        (("devices = 4\n", ""), "links[0].devices", "missing"),
        (("latency = 20e-6", "latency = 20e-6\ndevices = 8"), "links[1].devices", "8"),
        (("bandwidth = 10e9", "bandwith = 10e9"), "links[1].bandwith", "10"),
        (("[flops]", "beside = 3\n[flops]"), "beside", "3"),
        (("[flops]", "beside = { gather = 3 }\n[flops]"), "beside", "{'gather': 3}"),
        (("[flops]", "beside = { all_gather = -1 }\n[flops]"), "beside.all_gather", "-1"),
        (("[flops]", "[local]\nruns = false\n[flops]"), "local.runs", "False"),
        (("[flops]", "[local]\nwalks = 3\n[flops]"), "local.walks", "3"),
        (("[flops]", "[local]\nfloats_as_bits = 1\n[flops]"), "local.floats_as_bits", "1"),
        (("[flops]", '[[sources]]\nof = "all"\n[flops]'), "sources[0]", "{'of'"),
    ],
)
def test_each_field_that_is_wrong_is_named_with_its_value(lab, edit, field, value):
    assert edit[0] in LAB
    lab.write_text(LAB.replace(*edit) if edit[0] == "[[links]]" else LAB.replace(*edit, 1))
    told = refused(lab)
    assert (told.code, told.place.file) == ("SP903", str(lab))
    assert told.message.startswith(f"{field} of the machine is {value}")
    assert told.remedy


def test_links_that_do_not_grow_are_refused(lab):
    middle = '[[links]]\nkind = "direct"\ndevices = 4\nlatency = 1e-6\nbandwidth = 1e9\n\n'
    lab.write_text(LAB.replace("[[links]]", f"{middle}[[links]]", 1))
    assert refused(lab).message.startswith("links[1].devices of the machine is 4: the link before joins 4")


def test_other_files_that_are_no_machines(tmp_path):
    for name, data in (("latin.toml", b'name = "\xe9"'), ("deep.toml", b"a = " + b"[" * 5000)):
        (tmp_path / name).write_bytes(data)
        assert refused(tmp_path / name).code == "SP902"
    assert refused(tmp_path / "absent.toml").message.endswith("No such file or directory")
    os.mkfifo(tmp_path / "pipe.toml")
    for path in (tmp_path, tmp_path / "pipe.toml", "/dev/zero"):
        assert refused(str(path)).message.endswith("it is no regular file")


@pytest.mark.parametrize("name", MACHINES)
def test_the_machines_of_shardpass_pass_as_those_of_users(name, tmp_path):
    assert chosen(str(FOLDER / f"{name}.toml")) == find_machine(name)
