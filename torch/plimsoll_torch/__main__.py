"""python -m plimsoll_torch script.py ARGS: the script, with PyTorch on Plimsoll's allocator."""
import runpy
import sys

import plimsoll_torch

if len(sys.argv) < 2:
    sys.exit("usage: python -m plimsoll_torch script.py [arguments]")
plimsoll_torch.use_allocator()
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
