"""Where ``use()`` holds: threads, tasks of asyncio, nested blocks; and its pipeline."""

import asyncio
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass.jax as spj
from shardpass.diagnostics import ShardpassError
from shardpass.jax import scope

ROWS = NamedSharding(Mesh(np.array(jax.devices()[:4]), ("x",)), P("x"))


def mode() -> str:
    """In short: what holds here."""
    now = scope.current()
    return ("strict" if now.strict else "on") if now.active else "off"


@pytest.fixture(autouse=True)
def nothing_stays():
    assert mode() == "off"
    yield
    assert mode() == "off"


def test_nested_blocks() -> None:
    with spj.use():
        with spj.use(strict=True):
            assert mode() == "strict"
        assert mode() == "on"


def test_each_task_has_its_own() -> None:
    """Two tasks and one without a block, in turns at each await; the one that entered first leaves first."""
    seen: list[tuple[str, str]] = []

    async def first() -> None:
        with spj.use():
            for _ in range(2):
                seen.append(("first", mode()))
                await asyncio.sleep(0)
        for _ in range(3):
            seen.append(("first", mode()))
            await asyncio.sleep(0)

    async def second() -> None:
        with spj.use(strict=True):
            for _ in range(4):
                seen.append(("second", mode()))
                await asyncio.sleep(0)
        seen.append(("second", mode()))

    async def third() -> None:
        for _ in range(5):
            seen.append(("third", mode()))
            await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(first(), second(), third())
        assert mode() == "off"

    asyncio.run(main())
    names = [name for name, _ in seen]
    assert names[:6] == ["first", "second", "third"] * 2  # they did run in turns
    by_name = {name: [what for who, what in seen if who == name] for name in names}
    assert by_name == {"first": ["on"] * 2 + ["off"] * 3, "second": ["strict"] * 4 + ["off"], "third": ["off"] * 5}


def test_a_loop_that_runs_when_the_first_block_is_entered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The step of the task that enters it was begun by asyncio as it was before."""
    original = getattr(asyncio.Handle._run, "__wrapped__", asyncio.Handle._run)
    monkeypatch.setattr(asyncio.Handle, "_run", original)
    scope._follow_asyncio.cache_clear()
    seen = []

    async def holds() -> None:
        with spj.use():
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            seen.append(mode())

    async def other() -> None:
        seen.append(mode())
        await asyncio.sleep(0)
        seen.append(mode())

    async def main() -> None:
        await asyncio.gather(holds(), other())

    asyncio.run(main())
    assert seen == ["off", "off", "on"]


def test_a_task_starts_with_what_holds_where_it_is_made() -> None:
    async def told() -> str:
        await asyncio.sleep(0)
        return mode()

    async def main() -> list[str]:
        before = asyncio.create_task(told())
        with spj.use():
            inside = asyncio.create_task(told())
            nested = await asyncio.gather(told(), asyncio.wait_for(told(), 10))
        return [await before, await inside, *nested, mode()]

    assert asyncio.run(main()) == ["off", "on", "on", "on", "off"]


def test_a_loop_inside_of_a_block() -> None:
    async def main() -> str:
        await asyncio.sleep(0)
        with spj.use(strict=True):
            await asyncio.sleep(0)
        return mode()

    with spj.use():
        assert asyncio.run(main()) == "on"
        assert mode() == "on"


def test_a_block_that_another_task_ends() -> None:
    """Python has each task its own variables, so none can take back what another has set."""

    async def holds():
        with spj.use():
            yield mode()

    async def main() -> None:
        generator = holds()
        assert await asyncio.create_task(anext(generator)) == "on"
        assert mode() == "off"
        await generator.aclose()
        assert mode() == "off"

    asyncio.run(main())


def test_threads_have_their_own() -> None:
    seen = []

    def work() -> None:
        seen.append(mode())
        with spj.use(strict=True):
            seen.append(mode())
        seen.append(mode())

    async def main() -> None:
        with spj.use():
            await asyncio.to_thread(work)  # with a copy of this context
            seen.append(mode())
        await asyncio.to_thread(work)

    asyncio.run(main())
    assert seen == ["off", "strict", "off", "on", "off", "strict", "off"]
    with spj.use():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert mode() == "on"


def test_programs_follow() -> None:
    """What a task compiles outside of its own block is XLA's, though another task is inside of one."""
    f, g = jax.jit(lambda x: jnp.tanh(x).sum(0)), jax.jit(lambda x: jnp.cos(x).sum(0))
    x = jax.device_put(np.ones((8, 4), np.float32), ROWS)
    counts = []

    def called(function) -> None:
        function(x).block_until_ready()
        counts.append(spj.stats()["partitioned"] - before)

    async def inside() -> None:
        with spj.use(strict=True):
            called(f)
            await asyncio.sleep(0)
            called(f)

    async def outside() -> None:
        called(f)
        called(g)

    async def main() -> None:
        await asyncio.gather(inside(), outside())

    before = spj.stats()["partitioned"]
    asyncio.run(main())
    assert counts == [1, 1, 1, 1]
    assert (f._cache_size(), g._cache_size()) == (2, 1)


def test_another_pipeline() -> None:
    f = jax.jit(lambda x: x.max(0))
    for first in range(4):
        x = np.arange(8, dtype=np.float32)[:, None].repeat(64, 1)
        x[2 * first] = np.nan
        with spj.use(strict=True, pipeline="partition{nan=exact}"):
            assert np.isnan(np.asarray(f(jax.device_put(x, ROWS)))).all()


def test_a_pipeline_that_there_is_not() -> None:
    with (
        pytest.raises(ShardpassError, match=r"has no option 'nun' \[SP106\]"),
        spj.use(pipeline="partition{nun=exact}"),
    ):
        pytest.fail("nothing may run here")
