"""Stands for a tool that tests may not call by its bare name: which one would run depends on the machine."""

import sys

sys.exit(f"test/lit: '{sys.argv[1]}' is not one of the commands that lit.cfg.py provides")
