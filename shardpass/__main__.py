"""``python -m shardpass``: the command ``shardpass``."""

from shardpass.cli.shardpass import main

if __name__ == "__main__":
    raise SystemExit(main())
