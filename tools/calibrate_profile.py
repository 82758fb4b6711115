#!/usr/bin/env python3
"""The shipped profile of this kind of machine, measured: its rates, and the share of the roofline that operators reach.

  python3 tools/calibrate_profile.py [--plimsoll build/release/plimsoll] [--rounds N]

Profiles some built-in models, training and inference, and prints what goes into cpu_of_two_cores() in
src/plimsoll/schedule/device_profile.cpp: medians of the rates, and for each operator its efficiency over the seconds of all models. Run it on an idle machine; nothing but Python's standard library is needed. The models of
`make bench-exports` are not among them: that bench says how well the estimates carry over."""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

MODELS = [
    ["resnet50", "--batch", "8"], ["mobilenet", "--batch", "8"], ["densenet121", "--batch", "4"], ["vgg16", "--batch", "2"],
    ["unet", "--batch", "1", "--image", "128"], ["gpt2", "--batch", "1", "--seq", "256", "--layers", "4"],
    ["bert", "--batch", "2", "--seq", "128", "--layers", "4"], ["whisper-small", "--batch", "1", "--layers", "2"], ["lstm", "--batch", "16", "--seq", "8"],
    ["resnet50", "--batch", "1", "--infer"], ["mobilenet", "--batch", "1", "--infer"], ["gpt2", "--batch", "1", "--seq", "128", "--infer"],
]


def profile(program, model):
    """The profile, and (operator, seconds, efficiency) for each operator of the model."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        out = subprocess.run([program, "profile", *model, "-o", file.name], capture_output=True, text=True)
        if out.returncode != 0:
            sys.exit(f"{' '.join(model)}: exit code {out.returncode}\n{out.stderr}")
        found = json.loads(pathlib.Path(file.name).read_text())
    rows = re.findall(r"^  ([\w.]+) +\d+ +\d+ +\d+ +([\d.]+) +(\d+) %$", out.stdout, re.M)
    return found, [(op, float(seconds), float(percent) / 100) for op, seconds, percent in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plimsoll", default="build/release/plimsoll")
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    seen, shares = [], {}
    for _ in range(options.rounds):
        for model in MODELS:
            print(f"profiling {' '.join(model)}", file=sys.stderr)
            found, operators = profile(options.plimsoll, model)
            seen.append(found)
            for op, seconds, share in operators:
                shares.setdefault(op, []).append((share, seconds))
    median = lambda read: statistics.median(read(one) for one in seen)
    for dtype in seen[0]["operations_per_second"]:
        print(f"{dtype:26} {median(lambda one: one['operations_per_second'][dtype]):.3g}")
    print(f"{'memory_bytes_per_second':26} {median(lambda one: one['memory_bytes_per_second']):.3g}")
    print(f"{'cache':26} {seen[0]['cache']['bytes']} at {median(lambda one: one['cache']['bytes_per_second']):.3g}")
    print(f"{'launch_seconds':26} {median(lambda one: one['launch_seconds']):.3g}")
    for key in ("copies", "disk"):
        print(f"{key:26}", *(f"{median(lambda one: one[key][rate]):.3g}" for rate in ("out_bytes_per_second", "in_bytes_per_second", "latency_seconds")))
    print(f"{'copy_tax':26} {median(lambda one: one['copy_tax']):.2f}")
    print(f"{'codecs':26}", *(f"{median(lambda one: one['codecs'][rate]):.3g}" for rate in ("encode_bytes_per_second", "decode_bytes_per_second")))
    for op, values in sorted(shares.items()):
        all_seconds = sum(seconds for _, seconds in values)
        if all_seconds > 0:
            mean = sum(share * seconds for share, seconds in values) / all_seconds
            print(f'      {{"{op}", {mean:.2f}}},  // {min(values)[0]:.2f} to {max(values)[0]:.2f} in {len(values)} models, {all_seconds:.4f} s')


if __name__ == "__main__":
    main()
