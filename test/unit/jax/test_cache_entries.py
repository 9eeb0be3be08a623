"""Which partitioned programs are kept in JAX's compilation cache, and when one is found (shardpass/jax/cache.py)."""

import hashlib
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.lru_cache import LRUCache
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass.jax as spj
from shardpass.ir import jax_private
from shardpass.jax import cache, hook
from shardpass.ops import register_custom_call, registry
from shardpass.ops.families import custom_call

MESH = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("a", "b"))
X = jax.ShapeDtypeStruct((16, 16), jnp.float32, sharding=NamedSharding(MESH, P("a", "b")))


class Folder(dict):
    """Stands in for JAX's cache."""

    def put(self, key, data):
        self[key] = data


@pytest.fixture(autouse=True)
def folder(monkeypatch):
    """A cache in which any program is kept, however quick; no third party says anything of ops."""
    registry.table()  # what is loaded while the tables are copies would be missing later
    found = Folder()
    monkeypatch.setattr(jax_private, "cache_on_disk", lambda backend: found)
    for module in (registry, custom_call):
        monkeypatch.setattr(module, "_of_others", set())
        name = "_table" if module is registry else "_targets"
        monkeypatch.setattr(module, name, dict(getattr(module, name)))
    before = jax.config.jax_persistent_cache_min_compile_time_secs
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    yield found
    jax.config.update("jax_persistent_cache_min_compile_time_secs", before)


def lowered(function=lambda x: jnp.tanh(x @ x).sum(axis=0)):
    jax.clear_caches()
    return jax.jit(function).lower(X)


def compiled(function=lambda x: jnp.tanh(x @ x).sum(axis=0), **way):
    with spj.use(strict=True):
        return lowered(function).compile()


def entry_of(program, passes="these", machine="ideal"):
    return cache.entry_of(None, program.compiler_ir(), passes, machine)


def key_of(program, passes="these", machine="ideal"):
    return entry_of(program, passes, machine)._key


def texts(module):
    """Without locations, and with them. MLIR's bytecode forgets the last column of a place from column 0 on."""
    plain, located = (module.operation.get_asm(enable_debug_info=located) for located in (False, True))
    return [plain, re.sub(r":0 to :\d+", ":0", located)]


@pytest.mark.usefixtures("shardy")
def test_what_is_found_is_what_was_kept_to_the_last_location(folder):
    program = lowered().compiler_ir()
    entry = cache.entry_of(None, program, "these", "ideal")
    fresh, signature = hook.partitioned(program, shardy=True, machine="ideal", entry=entry)
    entry.keep(1.0)
    assert list(folder) == [entry._key]
    again = cache.entry_of(None, program, "these", "ideal")
    found, same = hook.partitioned(program, shardy=True, machine="ideal", entry=again)
    assert (texts(found), same) == (texts(fresh), signature)
    assert texts(fresh)[0] != texts(fresh)[1]


def test_a_program_is_partitioned_once(folder, monkeypatch):
    compiled()
    assert [key.partition("-shardpass-")[0] for key in folder] == ["jit__lambda"]
    monkeypatch.setattr(hook, "run_steps", None)  # whoever calls it fails
    compiled()


def test_other_programs_and_passes_have_other_keys(monkeypatch):
    key = key_of(lowered())
    assert key_of(lowered()) == key
    assert key_of(lowered(lambda x: jnp.tanh(x @ x.T).sum(axis=0))) != key
    assert key_of(lowered(), "others") != key
    assert key_of(lowered(), machine="h100") != key
    monkeypatch.setattr(cache, "_package", lambda: ("another version of this package",))
    assert key_of(lowered()) != key


def test_a_line_moved_is_the_same_program_unless_jax_is_told_otherwise():
    moved = eval(compile("\n\n" + "lambda x: jnp.tanh(x @ x).sum(axis=0)", __file__, "eval"), globals())
    moved.__qualname__ = "<lambda>"
    assert key_of(lowered()) == key_of(lowered(moved))
    jax.config.update("jax_compilation_cache_include_metadata_in_key", True)
    try:
        assert key_of(lowered()) != key_of(lowered(moved))
    finally:
        jax.config.update("jax_compilation_cache_include_metadata_in_key", False)


def test_the_package_is_known_by_its_files(tmp_path, monkeypatch):
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "one.py").write_text("a = 1")
    monkeypatch.setattr(cache, "PACKAGE", tmp_path)
    cache._package.cache_clear()
    try:
        before = cache._package()
        (tmp_path / "part" / "__pycache__").mkdir()
        (tmp_path / "part" / "__pycache__" / "one.pyc").write_text("made by Python")
        cache._package.cache_clear()
        assert cache._package() == before
        (tmp_path / "part" / "one.py").write_text("a = 2")
        cache._package.cache_clear()
        assert cache._package() != before
    finally:
        cache._package.cache_clear()


def test_functions_of_the_user_are_called_each_time(folder):
    """Their addresses are in the program; XLA's partitioner is not asked."""
    halves = custom_partitioning(lambda x: x / 2)
    halves.def_partition(
        partition=lambda mesh, args, result: (mesh, lambda x: x / 2, result.sharding, (args[0].sharding,)),
        infer_sharding_from_operands=lambda mesh, args, result: args[0].sharding,
        sharding_rule="i j -> i j",
    )
    told = []
    for function in (
        halves,
        lambda x: jax.pure_callback(np.asarray, X, x),
        lambda x: (jax.debug.callback(told.append, x.sum()), x)[1],
        lambda x: (jax.debug.inspect_array_sharding(x @ x, callback=told.append), x)[1],
    ):
        assert entry_of(lowered(function)) is None
    compiled(halves)
    assert not folder


def test_rules_of_others_are_asked_each_time():
    call = jax.ffi.ffi_call("rows.normalize", jax.ShapeDtypeStruct(X.shape, X.dtype))
    assert entry_of(lowered(call)) is not None  # computed whole, whoever asks
    register_custom_call("rows.normalize", "i j -> i j")
    assert entry_of(lowered(call)) is None
    assert entry_of(lowered()) is not None
    registry.define("stablehlo.tanh", lambda op: None)
    assert entry_of(lowered()) is None


def test_our_own_definitions_are_none_of_others():
    registry.table()
    assert not registry.ops_of_others()
    assert not custom_call.targets_of_others()


def test_another_pipeline_is_run_each_time(folder):
    spj.partition(lambda x: x @ x, mesh=MESH, pipeline="import,propagate,partition").lower(X).compile()
    assert not folder


def test_quick_programs_are_not_kept(folder):
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 1e6)
    compiled()
    assert not folder


def test_a_folder_that_cannot_be_used_does_not_matter(folder, monkeypatch):
    def fail(self, *given):
        raise OSError("no such device")

    monkeypatch.setattr(Folder, "get", fail)
    monkeypatch.setattr(Folder, "put", fail)
    compiled()
    assert not folder


def test_what_was_not_written_to_its_end_is_not_taken(folder):
    compiled()
    ((key, data),) = folder.items()
    for torn in (b"", data[:10], data[:-1], data[:40] + b"\0" + data[41:]):
        folder[key] = torn
        compiled()


def hashed(data):
    return hashlib.sha256(data).digest() + data


UNREADABLE = {
    "nothing": lambda data: b"",
    "no hash": lambda data: data[32:],
    "no program": lambda data: hashed(b"what is no program"),
    "a part": lambda data: hashed(data[32:-200]),
    "another version's": lambda data: hashed(data[32:36] + b"\xff" + data[37:]),  # 127, behind the magic number
    "a program of nothing": lambda data: hashed(b"module {}"),
    "not partitioned": lambda data: hashed(lowered().compiler_ir().operation.get_asm(binary=True)),
}


@pytest.mark.parametrize("change", UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_is_written_anew(tmp_path, monkeypatch, change):
    """JAX's own cache leaves entries alone that there are."""
    monkeypatch.setattr(jax_private, "cache_on_disk", lambda backend: LRUCache(str(tmp_path), max_size=-1))
    compiled()
    (entry,) = tmp_path.glob("*-shardpass-*")
    entry.write_bytes(change(entry.read_bytes()))
    compiled()
    monkeypatch.setattr(hook, "run_steps", None)  # whoever calls it fails
    compiled()
