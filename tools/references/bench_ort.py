#!/usr/bin/env python3
"""Times one inference of built-in models, written as ONNX, and of .onnx files, in onnxruntime and here, two threads each.

  python3 tools/references/bench_ort.py build/release/plimsoll [--rounds N] [--json] [model | file.onnx ...]

Needs onnxruntime and numpy. The rivals take turns: a round is 5 inferences of one, then 5 of the other, each after
one that is not counted, and the next round begins with the other one. The figure is the median over all rounds (6, unless
told), beside it the least and the most of the ratios of single rounds."""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

MODELS = {"resnet50": [], "mobilenet": [], "bert": ["--seq", "128"], "gpt2": ["--seq", "128"]}
RUNS = 5  # of a round, after one to warm up


class OnnxRuntime:
    def __init__(self, path):
        import numpy as np
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = 2, 1
        # Threads that wait by spinning would take the cores from the rival whose turn it is.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.feeds = {v.name: np.ones(v.shape, np.int64 if "int" in v.type else np.float32) for v in self.session.get_inputs()}

    def times(self):
        out = []
        for _ in range(RUNS + 1):
            start = time.perf_counter()
            self.session.run(None, self.feeds)
            out.append(time.perf_counter() - start)
        return out[1:]


class Plimsoll:
    def __init__(self, program, path):
        self.command = [program, "run", path, "--steps", str(RUNS + 1), "--threads", "2", "--json"]

    def times(self):
        text = subprocess.run(self.command, check=True, capture_output=True).stdout
        return json.loads(text)["step_seconds"][1:]


def take_turns(rivals, rounds):
    """By rival, by round: the median seconds of its turn. Whoever was last begins the next round."""
    medians = [[] for _ in rivals]
    for turn in range(rounds):
        order = range(len(rivals)) if turn % 2 == 0 else reversed(range(len(rivals)))
        for rival in order:
            medians[rival].append(statistics.median(rivals[rival].times()))
    return medians


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    if not options.json:
        print(f"{'model':24}{'onnxruntime':>14}{'plimsoll':>14}{'ratio':>8}   rounds")
    with tempfile.TemporaryDirectory() as folder:
        for model in options.models or MODELS:
            path = pathlib.Path(model)
            if path.suffix != ".onnx":
                path = pathlib.Path(folder) / f"{model}.onnx"
                subprocess.run([options.program, "graph", model, "--infer", "--batch", "1", *MODELS.get(model, []), "-o", path],
                               check=True, stdout=subprocess.DEVNULL)
            theirs, ours = take_turns([OnnxRuntime(path), Plimsoll(options.program, path)], options.rounds)
            ratios = [b / a for a, b in zip(theirs, ours)]
            a, b = statistics.median(theirs), statistics.median(ours)
            rows.append({"model": path.stem, "onnxruntime_seconds": a, "plimsoll_seconds": b, "ratios": ratios})
            if not options.json:
                print(f"{path.stem:24}{a * 1e3:11.1f} ms{b * 1e3:11.1f} ms{b / a:8.2f}   {min(ratios):.2f} to {max(ratios):.2f}", flush=True)
    if options.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
