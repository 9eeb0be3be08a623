"""``exits.py STATUS COMMAND...``: succeeds where the command ends with STATUS and shows no traceback.

STATUS "any" is any failure that is not a crash. What the command prints is passed on.
"""

import subprocess
import sys

wanted, *command = sys.argv[1:]
run = subprocess.run(command, stderr=subprocess.PIPE)
sys.stderr.buffer.write(run.stderr)
sys.stderr.flush()
failure = ""
if b"Traceback (most recent call last)" in run.stderr:
    failure = "the command showed a Python traceback"
elif wanted == "any" and not 1 <= run.returncode <= 127:
    failure = f"the command should fail, but ended with status {run.returncode}"
elif wanted != "any" and run.returncode != int(wanted):
    failure = f"the command should end with status {wanted}, but ended with {run.returncode}"
if failure:
    print(f"exits.py: {failure}", file=sys.stderr)
    sys.exit(1)
