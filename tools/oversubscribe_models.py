#!/usr/bin/env python3
"""The curves of docs/oversubscription.md: six models in less and less memory, by every policy.

    tools/oversubscribe_models.py build/release/plimsoll -o docs/images --device cuda --tf32
    tools/oversubscribe_models.py build/release/plimsoll -o /tmp --models mlp --factors 1.5 --policies planned

Of each model it runs `plimsoll oversubscribe MODEL`, writes MODEL's curve as oversubscribe-MODEL.svg
and its numbers as oversubscribe-MODEL.json, and memory per kernel over time (`plimsoll view MODEL`) as
memory-MODEL.svg. Prints one Markdown table of slowdowns, with the bound in parentheses, and how far
predictions were off. With --seconds it stops before a model for which no time is left.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

SIZES = {
    "alexnet": {"--batch": 128},
    "resnet50": {"--batch": 32},
    "resnet101": {"--batch": 32},
    "gpt2": {"--batch": 8, "--seq": 1024},
    "bert": {"--batch": 16, "--seq": 512},
    "whisper-small": {"--batch": 16},
}


def sizes_of(model):
    return [str(word) for pair in SIZES.get(model, {}).items() for word in pair]


def cell(points, policy, factor):
    for point in points:
        if point["policy"] != policy or abs(point["factor"] - factor) > 1e-9:
            continue
        return "–" if "refused" in point else f"{point['slowdown']:.2f} ({point['bound']:.2f})"
    return ""


def table(curves):
    factors = sorted({point["factor"] for curve in curves for point in curve["points"]})
    out = ["| model, policy | " + " | ".join(f"{factor:g}" for factor in factors) + " |",
           "|---|" + "---|" * len(factors)]
    for curve in curves:
        for policy in dict.fromkeys(point["policy"] for point in curve["points"]):
            cells = [cell(curve["points"], policy, factor) for factor in factors]
            out.append(f"| {curve['model']}, {policy} | " + " | ".join(cells) + " |")
    return "\n".join(out)


def predictions(curves):
    out = []
    for curve in curves:
        for point in curve["points"]:
            if point.get("predicted_seconds", 0) > 0:
                out.append(f"{curve['model']} {point['factor']:g}: {1e3 * point['step_seconds']:.2f} ms, "
                           f"{point['step_seconds'] / point['predicted_seconds']:.3f} of what was predicted")
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, help="a folder")
    parser.add_argument("--models", default=",".join(SIZES))
    parser.add_argument("--factors", default="1.5,2,3")
    parser.add_argument("--policies", default="demand,prefetch,pre-evict,belady,planned")
    parser.add_argument("--deadline", default="3s")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for all of it")
    options, device = parser.parse_known_args()
    options.output.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + options.seconds
    curves = []
    for model in options.models.split(","):
        left = end - time.monotonic()
        if left < 5:
            print(f"{model}: no time left", file=sys.stderr)
            continue
        name = options.output / f"oversubscribe-{model}"
        limit = None if left == float("inf") else left
        sizes = sizes_of(model)
        try:
            done = subprocess.run(
                [options.program, "oversubscribe", model, *sizes, *device, "--factors", options.factors, "--policies",
                 options.policies, "--deadline", options.deadline, "--svg", f"{name}.svg", "--json"],
                stdout=subprocess.PIPE, timeout=limit, text=True, check=False)
        except subprocess.TimeoutExpired:
            print(f"{model}: not done in the time left", file=sys.stderr)
            continue
        if done.returncode != 0:
            print(f"{model}: exit code {done.returncode}", file=sys.stderr)
            continue
        name.with_suffix(".json").write_text(done.stdout)
        curves.append(json.loads(done.stdout))
        subprocess.run([options.program, "view", model, *sizes, "--svg", str(options.output / f"memory-{model}.svg")],
                       stdout=subprocess.DEVNULL, timeout=60, check=False)
    print(table(curves))
    print(predictions(curves))
    return 0 if curves else 1


if __name__ == "__main__":
    sys.exit(main())
