"""Checkpoints above 4 GiB: written by us and read by numpy, and read back by us.

    big_archive_test.py PROGRAM FOLDER        needs numpy, 10 GB of disk and of memory
"""

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

try:
    import numpy
except ImportError:
    sys.exit("numpy is missing: tools/install_python.sh installs tools/python_slow.txt")

PROGRAM, FOLDER = str(Path(sys.argv[1]).resolve()), Path(sys.argv[2])
NEEDED = 10 * 2**30
# One member of 4.06 GiB, and members behind it whose place does not fit 32 bits.
MODEL = ["run", "mlp", "--infer", "--depth", "3", "--width", "33000", "--batch", "1", "--steps", "1", "--json"]


def plimsoll(*words):
    done = subprocess.run([PROGRAM, *words], cwd=FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


shutil.rmtree(FOLDER, ignore_errors=True)
FOLDER.mkdir(parents=True)
if shutil.disk_usage(FOLDER).free < NEEDED or os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < NEEDED:
    sys.exit(f"a checkpoint above 4 GiB needs {NEEDED >> 30} GiB of disk and of memory: {FOLDER} or this machine has less")
try:
    ran = plimsoll(*MODEL, "--save", "big.npz")
    writer = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    assert (FOLDER / "big.npz").stat().st_size > 2**32, (FOLDER / "big.npz").stat().st_size
    assert writer < ran["peak_bytes"] + 2**29, f"{writer} bytes to run and save a model of {ran['peak_bytes']}: the file was built in memory"
    with numpy.load(FOLDER / "big.npz") as arrays:
        sizes = {name: arrays[name].nbytes for name in arrays.files}  # numpy verifies the checksums
        assert max(sizes.values()) > 2**32, sizes
        assert numpy.isfinite(arrays[max(sizes, key=sizes.get)][::1000]).all()
        assert arrays["plimsoll.steps"] == 1
    plimsoll(*MODEL, "--weights", "big.npz")
    print(f"{len(sizes)} arrays, {sum(sizes.values())} bytes; {writer} bytes resident while saving")
finally:
    shutil.rmtree(FOLDER)
