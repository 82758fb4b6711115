#!/usr/bin/env python3
"""The bars of the host allocator: its workloads under every allocator there is, taking turns.

    bench/malloc/bench.py build/release [--runs 5] [--only churn-128,handoff] [--any-load] [--rivals glibc,tcmalloc]
                         [--allocator mimalloc3=/path/libmimalloc.so] [--python a-python-with-torch]

Rivals are those of Debian that are installed (libjemalloc2, libtcmalloc-minimal4, libmimalloc2.0) and those
named with --allocator. One-thread rows compare CPU seconds (user + system, medians); two-thread rows compare wall
seconds by the median of the ratios within a round. Before every run the program waits until other work uses less
than 12 % of the machine: a loaded machine hides contention. Peak resident memory is the most that was seen.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

LIBRARIES = "/usr/lib/x86_64-linux-gnu/"
DEBIAN = {"jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4", "mimalloc2": "libmimalloc.so.2.0"}
OURS = "plimsoll"

# name: (arguments of malloc_work, what is compared, bar). `tight`: also <= 1.1 x the live bytes.
ROWS = {
    "churn-128": ("churn 128 8 2000", "cpu", "tight"),
    "churn-32": ("churn 32 16 3000", "cpu", "tight"),
    "buffers": ("buffers 2000", "cpu", "frugal"),
    "growth": ("growth 20", "cpu", "frugal"),
    "bignum": ("bignum 4000000", "cpu", "tie"),
    "cubes": ("cubes 300", "cpu", "tie"),
    "bursts": ("bursts 4000000", "cpu", "tie"),
    "pareto": ("pareto 20000000", "cpu", "tie"),
    "batches": ("batches 1 80", "cpu", "tie"),
    "queue-60": ("queue 40000000 60", "cpu", "tie"),
    "queue-1k": ("queue 40000000 1000", "cpu", "tie"),
    "queue-100k": ("queue 8000000 100000", "cpu", "tie"),
    "trees-9": ("trees 20000 9", "cpu", "tie"),
    "trees-17": ("trees 60 17", "cpu", "tie"),
    "server-1": ("server 1 60", "cpu", "tie"),
    "stress-1": ("stress 1 500", "cpu", "tie"),
    "server-2": ("server 2 80", "wall", "threads"),
    "handoff-2": ("handoff 2 400000", "wall", "threads"),
    "batches-2": ("batches 2 50", "wall", "threads"),
    "swaps-2": ("swaps 2 200", "wall", "threads"),
    "stress-2": ("stress 2 400", "wall", "threads"),
}


def busy_ticks():
    fields = [int(x) for x in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    return sum(fields) - fields[3] - fields[4], sum(fields)


def wait_until_idle(deadline=600):
    """Waits until less than 12 % of the machine was busy for half a second."""
    end = time.monotonic() + deadline
    while time.monotonic() < end:
        before = busy_ticks()
        time.sleep(0.5)
        after = busy_ticks()
        if (after[0] - before[0]) < 0.12 * (after[1] - before[1]):
            return
    sys.exit("bench.py: the machine was never idle for ten minutes; --any-load measures all the same")


def launch(build, library, command):
    with tempfile.NamedTemporaryFile("r") as out:
        line = subprocess.run([f"{build}/bin/malloc_launch", library, out.name, *command],
                              check=True, capture_output=True, text=True).stdout.split()
        text = out.read()
    used = dict(zip(line[::2], map(float, line[1::2])))
    if used["status"] != 0:
        return None
    result = {"cpu": used["user"] + used["system"], "wall": used["wall"], "rss": used["rss"] * 1024}
    for row in text.splitlines():
        if row.startswith(("live ", "step ")):
            result[row.split()[0]] = float(row.split()[1])
    return result


def measure(build, allocators, command, runs, gate):
    seen = {name: [] for name in allocators}
    for _ in range(runs):
        for name, library in allocators.items():
            if gate:
                wait_until_idle()
            result = launch(build, library, command)
            if result is None:
                print(f"  {name}: failed", file=sys.stderr)
            else:
                seen[name].append(result)
    return {name: results for name, results in seen.items() if len(results) == runs}


def ratio(ours, rival, key):
    """Time against a rival's: of medians for CPU time, the median within rounds for wall time."""
    if key == "wall":
        return statistics.median(a[key] / b[key] for a, b in zip(ours, rival))
    return statistics.median(a[key] for a in ours) / statistics.median(b[key] for b in rival)


def rss(results):
    return max(r["rss"] for r in results)


def verdict(seen, key, bar):
    ours = seen[OURS]
    rivals = {name: results for name, results in seen.items() if name != OURS}
    if not rivals:
        return True, ""
    best = min(rivals, key=lambda name: statistics.median(r[key] for r in rivals[name]))
    time_ratio = ratio(ours, rivals[best], key)
    memory = rss(ours)
    live = max(r.get("live", 0) for r in ours)
    text = f"{time_ratio:.2f} x {best}"
    if bar == "tight":
        text += f", {memory / live:.3f} x live"
        return time_ratio <= 0.9 and memory <= 1.1 * live, text
    if bar == "frugal":
        text += f", {memory / rss(rivals[best]):.2f} x its memory"
        return time_ratio <= 1.0 and memory <= rss(rivals[best]), text
    worst = memory > max(rss(results) for results in rivals.values())
    if bar == "threads":
        text += f" ({1 / time_ratio:.2f} of its speed)" + (", the most memory of all" if worst else "")
        return time_ratio <= 1 / 0.9 and not worst, text
    text += ", the most memory of all" if worst else ""
    return time_ratio <= 1.03 and not worst, text


def show(name, seen, key, bar):
    reached, text = verdict(seen, key, bar)
    print(f"{name:10} {'reached' if reached else 'MISSED '} {text}")
    live = max(r.get("live", 0) for r in seen[OURS])
    if live:
        print(f"{'':12}{'live':12}{'':8}{live / 1e6:9.1f} MB")
    for allocator, results in seen.items():
        values = sorted(r[key] for r in results)
        print(f"{'':12}{allocator:12}{statistics.median(values):7.3f} s{rss(results) / 1e6:8.1f} MB   ({values[0]:.3f}-{values[-1]:.3f})")
    sys.stdout.flush()
    return {"row": name, "reached": reached, "text": text, "unit": key, "runs": seen}


def torch_row(build, allocators, python, runs, gate):
    """ResNet-18, batch 8, trained by PyTorch on the CPU: step time at most 0.97 x glibc's, memory at most glibc's."""
    script = str(pathlib.Path(__file__).with_name("torch_step.py"))
    seen = measure(build, allocators, [python, script], runs, gate)
    step = {name: statistics.median(r["step"] for r in results) for name, results in seen.items()}
    ours, theirs = step[OURS], step["glibc"]
    memory = rss(seen[OURS]) / rss(seen["glibc"])
    reached = ours <= 0.97 * theirs and memory <= 1
    text = f"step {ours / theirs:.3f} x glibc, {memory:.3f} x its memory"
    print(f"{'torch':10} {'reached' if reached else 'MISSED '} {text}")
    for name in seen:
        print(f"{'':12}{name:12}{step[name]:7.3f} s{rss(seen[name]) / 1e6:8.1f} MB")
    return {"row": "torch", "reached": reached, "text": text, "unit": "step", "runs": seen}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="the build folder, as build/release")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="", help="rows, separated by commas; `torch` is one")
    parser.add_argument("--rivals", default="", help="only these, separated by commas; all of them without it")
    parser.add_argument("--allocator", action="append", default=[], metavar="NAME=PATH", help="a rival built elsewhere")
    parser.add_argument("--any-load", action="store_true", help="do not wait until the machine is idle")
    parser.add_argument("--python", help="a Python that has torch and torchvision, for the row `torch`")
    parser.add_argument("--json", metavar="FILE", help="every run, for later")
    options = parser.parse_args()

    allocators = {"glibc": "-"}
    for name, file in DEBIAN.items():
        if pathlib.Path(LIBRARIES + file).exists():
            allocators[name] = LIBRARIES + file
    for pair in options.allocator:
        name, _, path = pair.partition("=")
        allocators[name] = path
    if options.rivals:
        unknown = set(options.rivals.split(",")) - set(allocators)
        if unknown:
            sys.exit(f"bench.py: no rival {', '.join(sorted(unknown))}; there are {', '.join(allocators)}")
        allocators = {name: allocators[name] for name in options.rivals.split(",")}
    ours = pathlib.Path(options.build, "libplimsoll_malloc.so").resolve()
    allocators[OURS] = str(ours)

    only = options.only.split(",") if options.only else list(ROWS) + (["torch"] if options.python else [])
    table = []
    for name in only:
        if name == "torch":
            table.append(torch_row(options.build, allocators, options.python, options.runs, not options.any_load))
            continue
        arguments, key, bar = ROWS[name]
        command = [f"{options.build}/bin/malloc_work", *arguments.split()]
        table.append(show(name, measure(options.build, allocators, command, options.runs, not options.any_load), key, bar))
    print(f"{sum(row['reached'] for row in table)} of {len(table)} bars reached")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(table, indent=1))


main()
