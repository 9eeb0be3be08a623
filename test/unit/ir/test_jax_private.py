"""What shardpass leans on in JAX's private parts. A failure here names what moved; mend shardpass/ir/jax_private.py."""

import inspect
import io
import weakref

import jax
import numpy as np
import pytest

from shardpass.ir import jax_private

VERSION = f"jax {jax.__version__}"


def test_context():
    with jax_private.make_ir_context():
        from jaxlib.mlir import ir

        ir.Module.parse("module { func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> } }")


def test_compile_and_execute():
    """jaxlib.xla_client's CompileOptions, DeviceAssignment; jaxlib._jax.DeviceList; execute_sharded."""
    text = """module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
      func.func public @main(%x: tensor<3xf32> {mhlo.sharding = "{manual}"})
          -> (tensor<3xf32> {mhlo.sharding = "{manual}"}) {
        %0 = stablehlo.negate %x : tensor<3xf32>
        return %0 : tensor<3xf32>
      }
    }"""
    devices = jax.devices()[:2]
    loaded = jax_private.compile_and_load(text, devices)
    sharding = jax.sharding.NamedSharding(jax.sharding.Mesh(np.array(devices), ("d",)), jax.sharding.PartitionSpec("d"))
    x = jax.device_put(np.arange(6, dtype=np.float32), sharding)
    results = jax_private.execute(loaded, [x])
    assert [np.asarray(tile).tolist() for tile in results[0]] == [[0, -1, -2], [-3, -4, -5]], VERSION
    for method in ("hlo_modules", "get_compiled_memory_stats"):
        assert hasattr(loaded, method), f"LoadedExecutable.{method} is gone in {VERSION}"
    arguments, results = jax_private.boundary_shardings(loaded)
    assert arguments == results == ["{manual}"], f"{arguments} -> {results} in {VERSION}"


def test_tracing():
    seen = []
    jax.jit(lambda: seen.append(jax_private.tracing()))()
    assert seen == [True]
    assert not jax_private.tracing()


def test_refusals_are_runtime_errors():
    with pytest.raises(RuntimeError):
        jax_private.compile_and_load("this is no module", jax.devices()[:1])


def test_hlo_text_of_mlir():
    table = "%0 = stablehlo.constant dense<[7, 8, 9]> : tensor<3xi32>"
    text = f"func.func @main() -> tensor<3xi32> {{ {table} return %0 : tensor<3xi32> }}"
    with jax_private.make_ir_context():
        from jaxlib.mlir import ir

        buffer = io.BytesIO()
        ir.Module.parse(text).operation.write_bytecode(buffer)
    assert "constant({7, 8, 9})" in jax_private.mlir_to_hlo_text(buffer.getvalue()), VERSION


def test_compile_hook():
    parameters = list(inspect.signature(jax_private.compile_hook()).parameters)
    expected = ["backend", "computation", "devices", "compile_options", "host_callbacks", "executable_devices"]
    assert parameters[:6] == expected, f"compile_or_get_cached takes {parameters} in {VERSION}"


def test_compile_hook_sees_every_compile():
    original, seen = jax_private.compile_hook(), []

    def watching(*args, **kwargs):
        seen.append(args[1])
        return original(*args, **kwargs)

    jax_private.set_compile_hook(watching)
    try:
        assert jax.jit(lambda x: x * 17 + 4)(2.0) == 38
    finally:
        jax_private.set_compile_hook(original)
    assert len(seen) >= 1, f"jax.jit no longer compiles through compile_or_get_cached in {VERSION}"
    assert any("stablehlo.multiply" in str(module) for module in seen)


def test_custom_partitioning():
    """The registry of callbacks, by key, and the two functions that XLA calls with one."""
    from jax._src import custom_partitioning as custom

    assert isinstance(custom._sharding_callbacks, weakref.WeakValueDictionary), VERSION
    partition = list(inspect.signature(custom._custom_partitioning_partition).parameters)
    assert partition == ["arg_shapes", "arg_shardings", "result_shape", "result_sharding", "backend_string"], VERSION
    infer = list(inspect.signature(custom._custom_partitioning_infer_sharding_from_operands).parameters)
    assert infer == ["arg_shapes", "arg_shardings", "result_shape", "backend_string"], VERSION
    with pytest.raises(KeyError):
        jax_private.call_partition("no key", [], [], [], [])


def test_reference_interpreter():
    """jaxlib.mlir._mlir_libs._stablehlo: eval_module, and the dialect with interpreter.run_parallel."""
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _stablehlo

    from shardpass.ir.context import make_context

    context = make_context()
    _stablehlo.register_interpreter_dialect(context)
    text = """module {
      func.func private @device(%x: tensor<2xi32>) -> tensor<2xi32> {
        %0 = stablehlo.negate %x : tensor<2xi32>
        return %0 : tensor<2xi32>
      }
      func.func @main(%x: tensor<2xi32>, %y: tensor<2xi32>) -> (tensor<2xi32>, tensor<2xi32>) {
        %0:2 = "interpreter.run_parallel"(%x, %y) <{programs = [[@device, @device]]}>
          : (tensor<2xi32>, tensor<2xi32>) -> (tensor<2xi32>, tensor<2xi32>)
        return %0#0, %0#1 : tensor<2xi32>, tensor<2xi32>
      }
    }"""
    with context:
        module = ir.Module.parse(text)
        arguments = [ir.DenseElementsAttr.get(np.array(row, np.int32)) for row in ([1, 2], [3, 4])]
        results = [np.array(result).tolist() for result in _stablehlo.eval_module(module, arguments)]
    assert results == [[-1, -2], [-3, -4]], VERSION


def test_distributed_client():
    """What wait_for_processes and exchange call; test/integration/test_processes.py runs them."""
    from jax._src import distributed
    from jaxlib import _jax

    assert hasattr(distributed.global_state, "client"), f"jax._src.distributed.global_state.client moved in {VERSION}"
    for method in ("wait_at_barrier", "key_value_set", "key_value_dir_get"):
        assert hasattr(_jax.DistributedRuntimeClient, method), f"DistributedRuntimeClient.{method} is gone in {VERSION}"


def test_equations_and_their_frames():
    def step(x):
        return jax.lax.scan(lambda carry, _: (carry * 2, None), x, length=3)[0]

    found = {one.primitive.name: one for one in jax_private.equations(jax.make_jaxpr(step)(1.0))}
    assert {"scan", "mul"} <= found.keys()
    frames = [one for one in jax_private.frames_of(found["mul"]) if one[0] == __file__]
    assert frames[0][1] == "<lambda>"
    line, _, start, end = frames[0][2]
    with open(__file__) as file:
        assert file.read().splitlines()[line - 1][start:end] == "carry * 2"


def test_the_call_that_is_being_compiled():
    calls = []
    original = jax_private.compile_hook()

    def compile(*arguments, **keywords):
        calls.append(jax_private.call_being_compiled())
        return original(*arguments, **keywords)

    jax_private.set_compile_hook(compile)
    try:
        step = jax.jit(lambda x, *, y: x * y)
        step(np.float32(3), y=np.float32(5))
        step.lower(np.float32(3), y=np.ones(2, np.float32)).compile()
    finally:
        jax_private.set_compile_hook(original)
    (jitted, arguments, keywords), lowered = calls
    assert jitted.trace(*arguments, **keywords).jaxpr.out_avals[0].shape == ()
    assert (arguments, keywords) == ((3,), {"y": 5})
    assert lowered is None


def test_the_free_variables_of_automatic_regions():
    assert jax_private.automatic_wrapper().co_freevars == ("axes_", "fun", "out_sharding")
