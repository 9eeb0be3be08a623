"""``command.py SECONDS NAME ARGUMENT...``: runs shardpass-NAME, killed by a signal after so many seconds."""

import importlib
import signal
import sys

seconds, name, *arguments = sys.argv[1:]
signal.alarm(int(seconds))
sys.argv = [f"shardpass-{name}", *arguments]
sys.exit(importlib.import_module(f"shardpass.cli.{name.replace('-', '_')}").main())
