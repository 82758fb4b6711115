#!/usr/bin/env python3
"""The example with networkx where there is one, and its sentence where there is none."""
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

EXAMPLE, LIBRARY = sys.argv[1:3]


def run(**environment):
    return subprocess.run([sys.executable, EXAMPLE, LIBRARY], capture_output=True, text=True, env=os.environ | environment)


with tempfile.TemporaryDirectory() as folder:
    (pathlib.Path(folder) / "networkx.py").write_text("raise ImportError('none')")
    without = run(PYTHONPATH=folder)
    assert without.returncode == 1 and "networkx is missing" in without.stderr and "Traceback" not in without.stderr, without
if importlib.util.find_spec("networkx"):
    done = run()
    assert done.returncode == 0, done.stderr
    assert "again layer" in done.stdout, done.stdout
else:
    print("networkx is not installed: only the sentence was tested")
