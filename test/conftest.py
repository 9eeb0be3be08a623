"""Twelve virtual CPU devices for every test, set before JAX makes its backend: enough for 8 and for 2x2x3.

Programs are small ones that stand for large ones: they are decided for the machine ``ideal``, also in the commands that
tests start.

Python processes start as forks (support/fork_server.py), sweeps and combinations of parameters are drawn
(support/daily.py, support/drawn_tests.py), and the slowest tests are listed (support/shares.py).

Ctrl-C works: a shell that starts the tests in the background has it ignored in them, and in all that they start.
"""

import gc
import os
import signal

import jax
import pytest
from hypothesis import settings
from support import daily, fork_server

pytest_plugins = ["support.drawn_tests", "support.shares"]

signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ["SHARDPASS_MACHINE"] = "ideal"
os.environ["XLA_FLAGS"] = daily.xla_flags()
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 12)

# A test that counts seconds fails on a machine that is busy.
settings.register_profile("shardpass", deadline=None)
settings.load_profile("shardpass")
daily.seed()
fork_server.install()


@pytest.fixture(autouse=True)
def _processes(request):
    """Lets a test that is marked so start its processes as usual."""
    fork_server.server.enabled = request.node.get_closest_marker("fresh_process") is None
    yield
    fork_server.server.enabled = True


gc.disable()


def pytest_collection_finish():
    """Collects garbage of tests alone: modules and the list of tests live as long as the session."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000, 20, 20)


def pytest_unconfigure():
    """Ends the server of forks."""
    fork_server.server.close()
