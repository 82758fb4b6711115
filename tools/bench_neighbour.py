#!/usr/bin/env python3
"""What a busy neighbour costs: a planned training step alone, beside one busy process of the lowest priority (nice 19), and beside
one of the same priority.

  python3 tools/bench_neighbour.py [--plimsoll build/release/plimsoll] [--rounds N] [--json]

Two plans of a small gpt2 within a budget: one that recomputes, and one that also swaps and encodes, whose copies run on a thread of
their own. The cases take turns, round after round; the figure is the median of their steps over all rounds, and its ratio to the
median alone. Nothing but Python's standard library is needed. With N cores a neighbour of the same priority is entitled to its share:
a step that takes (N + 1) / N as long loses nothing beyond it where every core is busy."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

MODEL = ["gpt2", "--layers", "4", "--batch", "4", "--seq", "128", "--optimizer", "sgd"]
PLANS = {"recompute": ["--budget", "88%"], "recompute, swap, encode": ["--budget", "70%", "--techniques", "all"]}
NEIGHBOURS = {"alone": None, "niced": 19, "equal": 0}
BUSY = [sys.executable, "-c", "while True: pass"]


def steps(program, plan, nice):
    """The seconds of the steps of one run, without the first, beside a neighbour of that niceness."""
    busy = None if nice is None else subprocess.Popen(BUSY, preexec_fn=lambda: os.nice(nice))
    try:
        out = subprocess.run([program, "run", plan, "--steps", "6", "--json"], capture_output=True, text=True)
    finally:
        if busy:
            busy.kill()
            busy.wait()
    if out.returncode != 0:
        sys.exit(f"{plan}: exit code {out.returncode}\n{out.stderr}")
    return json.loads(out.stdout)["step_seconds"][1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plimsoll", default="build/release/plimsoll")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    if not options.json:
        print(f"{'plan':26}{'alone':>10}{'niced':>10}{'ratio':>7}{'equal':>10}{'ratio':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for name, how in PLANS.items():
            plan = pathlib.Path(folder) / "plan.json"
            command = [options.plimsoll, "plan", *MODEL, *how, "--device", "cpu", "--deterministic", "-o", plan]
            made = subprocess.run(command, capture_output=True, text=True)
            if made.returncode != 0:
                sys.exit(f"{' '.join(map(str, command))}: exit code {made.returncode}\n{made.stderr}")
            seen = {case: [] for case in NEIGHBOURS}
            for _ in range(options.rounds):
                for case, nice in NEIGHBOURS.items():
                    seen[case] += steps(options.plimsoll, plan, nice)
            middle = {case: statistics.median(times) for case, times in seen.items()}
            ratios = {case: middle[case] / middle["alone"] for case in NEIGHBOURS}
            rows.append({"plan": name, "step_seconds": seen, "ratios": ratios})
            if not options.json:
                print(f"{name:26}{1e3 * middle['alone']:7.0f} ms{1e3 * middle['niced']:7.0f} ms{ratios['niced']:7.2f}"
                      f"{1e3 * middle['equal']:7.0f} ms{ratios['equal']:7.2f}", flush=True)
    if options.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
