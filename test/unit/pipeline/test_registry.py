"""Passes by name: what a pass must be, and what happens to one that is not."""

from dataclasses import dataclass

import pytest

import shardpass.pipeline.registry as registry
from shardpass.diagnostics import ShardpassError
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.named import NAMED
from shardpass.pipeline.resolve import near_names


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))


def make(name="test-made", summary="made", **fields):
    body = {"__annotations__": {k: t for k, (t, _) in fields.items()}, **{k: v for k, (_, v) in fields.items()}}
    cls = type("Made", (ModulePass,), {**body, "name": name, "summary": summary, "run": lambda self, module: None})
    return dataclass(frozen=True)(cls)


def test_registered_passes_are_found_and_listed():
    cls = registry.register(make())
    assert registry.find("test-made") is cls
    assert "test-made" in registry.names()
    assert registry.find("test-other") is None


def test_every_named_pipeline_consists_of_known_passes():
    for text in NAMED.values():
        for name in text.split(","):
            assert name in ("canonicalize", "cse") or registry.find(name) is not None


@pytest.mark.parametrize("name", ["", "Upper", "two words", "under_score", "-dash"])
def test_a_bad_name_is_refused(name):
    with pytest.raises(TypeError, match="name"):
        registry.register(make(name))


def test_a_pass_needs_a_summary():
    with pytest.raises(TypeError, match="summary"):
        registry.register(make(summary=""))


def test_an_option_of_another_type_is_refused():
    with pytest.raises(TypeError, match="must be a bool, int, float or str"):
        registry.register(make(shape=(tuple, ())))


def test_two_passes_of_one_name_are_refused():
    registry.register(make())
    other = make()
    other.__qualname__ = "Other"
    with pytest.raises(ValueError, match="two passes are called test-made"):
        registry.register(other)


def test_a_plugin_that_cannot_be_imported_is_a_diagnostic(monkeypatch):
    monkeypatch.setattr(registry, "_plugins", lambda: {"test-lost": "no_such_module:Pass", "test-odd": "json:loads"})
    for name, reason in (("test-lost", "ModuleNotFoundError"), ("test-odd", "is not a ModulePass")):
        with pytest.raises(ShardpassError, match=reason) as caught:
            registry.find(name)
        assert caught.value.code == "SP104"


def test_a_plugin_cannot_take_the_name_of_our_own(monkeypatch):
    monkeypatch.setattr(registry, "_plugins", lambda: {"shardpass-import": "json:loads"})
    assert registry.find("shardpass-import").__module__ == "shardpass.passes.import_"


@pytest.mark.parametrize(
    ("slip", "meant"),
    [("partitoin", "partition"), ("redistribute", "shardpass-redistribute"), ("canonicalise", "canonicalize")],
)
def test_near_names(slip, meant):
    assert near_names(slip)[0] == meant


def test_nothing_is_near_to_nonsense():
    assert near_names("qqqqqqqq") == ()
