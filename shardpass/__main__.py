"""``python -m shardpass``: the command ``shardpass``, which imports packages that import this one."""

import runpy

if __name__ == "__main__":
    runpy.run_module("shardpass.cli.shardpass", run_name="__main__")
