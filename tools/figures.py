#!/usr/bin/env python3
"""Reruns the commands behind every figure of README.md and docs/, and rewrites their tables.

    tools/figures.py [NAME ...] [--build build/release] [--python PYTHON] [--quick] [--list] [--check]

A table of figures stands between two comments:

    <!-- figures:NAME COMMAND -->
    | model | Plimsoll |
    |---|---|
    | alexnet | **1,035 MiB** |

    *2026-11-16: how often it was measured, and what the spread is.*
    <!-- end -->

SECTIONS below says what each is made of. Without NAMEs all are rerun that can be here: some want a Python with torch or
onnxruntime (--python), some a GPU or problems that are not in this repository, and some were measured by hand to choose between
designs. Those that cannot be rerun keep their text and their date, and that is said. --quick leaves out what takes minutes or a quiet machine. A file is written after each section.

--check (what `ctest -R figures` runs) measures nothing: every section is there, every table is in the form this script would
write, cell by cell, has its date, and no table with figures stands in these pages outside the comments. Standard
library only.
"""
import argparse
import datetime
import json
import math
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = re.compile(r"<!-- figures:(\S+) (.+) -->"), "<!-- end -->"
NUMBER = r"[+−]?[\d,]+(\.\d+)?"
UNIT = r"( ?(MiB|GiB|MB|GB|ms|s|ns|%|×))?"
FIGURE = re.compile(rf"{NUMBER}{UNIT}( \({NUMBER} to {NUMBER}\))?|–")


class Wrong(Exception):
    """A block that is not in the form this script writes."""


class Missing(Exception):
    """What a section needs is not here."""


class Block:
    """A table or a printed text between its comments. `figures` are the columns that hold numbers, `ours` those printed bold."""

    def __init__(self, section, rows, date, remark, text=None):
        self.section, self.rows, self.date, self.remark, self.text = section, rows, date, remark, text

    def render(self):
        section = self.section
        lines = [f"<!-- figures:{section.name} {section.command} -->"]
        if section.columns:
            lines += ["| " + " | ".join(section.columns) + " |", "|" + "---|" * len(section.columns)]
            for row in self.rows:
                lines.append("| " + " | ".join(f"**{cell}**" if i in section.ours and cell != "–" else cell for i, cell in enumerate(row)) + " |")
        else:
            lines += ["```", *self.text.splitlines(), "```"]
        return "\n".join([*lines, "", f"*{self.date}: {self.remark}*", END])

    @staticmethod
    def parse(section, text):
        lines = text.split("\n")
        begin = BEGIN.fullmatch(lines[0])
        if not begin or begin[1] != section.name:
            raise Wrong(f"does not begin with <!-- figures:{section.name} … -->")
        if begin[2] != section.command:
            raise Wrong(f"its command is '{begin[2]}', the script runs '{section.command}'")
        note = re.fullmatch(r"\*(\d{4}-\d\d-\d\d): (.+)\*", lines[-2]) if len(lines) > 3 else None
        if lines[-1] != END or not note:
            raise Wrong("does not end with a line *DATE: remark* and <!-- end -->")
        datetime.date.fromisoformat(note[1])
        body = lines[1:-3]
        if not section.columns:
            return Block(section, [], note[1], note[2], "\n".join(body[1:-1]))
        rows = [[cell.strip().removeprefix("**").removesuffix("**") for cell in line.strip("|").split("|")] for line in body[2:]]
        for row in rows:
            if len(row) != len(section.columns):
                raise Wrong(f"a row of {len(row)} cells under {len(section.columns)} columns: {row}")
            for i in section.figures:
                if not FIGURE.fullmatch(row[i]):
                    raise Wrong(f"'{row[i]}' in column '{section.columns[i]}' is no figure")
        if not rows:
            raise Wrong("no rows")
        return Block(section, rows, note[1], note[2])


class Section:
    def __init__(self, name, file, command, columns, measure, texts=1, ours=(), quick=False):
        self.name, self.file, self.command, self.columns, self.measure = name, SOURCE / file, command, columns, measure
        self.figures = range(texts, len(columns))  # the first `texts` columns are words
        self.ours, self.quick = ours, quick

    def pattern(self):
        return re.compile(rf"<!-- figures:{self.name} .*?{END}", re.S)

    def read(self):
        found = self.pattern().findall(self.file.read_text())
        if len(found) != 1:
            raise Wrong(f"{len(found)} blocks called {self.name}, expected one")
        return found[0]

    def write(self, block):
        text = block.render()
        Block.parse(self, text)  # what is written can be read
        whole = self.file.read_text()
        self.file.write_text(self.pattern().sub(lambda _: text, whole))


# --- running commands ---------------------------------------------------------------------------------------------------------

class Here:
    """This machine: where programs are, and what they answer."""

    def __init__(self, build, python):
        self.build, self.python = (SOURCE / build).resolve(), python
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="plimsoll_figures_"))

    def run(self, command, **how):
        done = subprocess.run([str(word) for word in command], cwd=SOURCE, capture_output=True, text=True, **how)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))}: exit {done.returncode}: {(done.stderr or done.stdout)[-400:]}")
        return done.stdout

    def plimsoll(self, *words):
        return self.run([self.program("plimsoll"), *words])

    def json(self, *words):
        return json.loads(self.plimsoll(*words, "--json"))

    def program(self, name):
        path = self.build / name
        if not path.exists():
            raise Missing(f"{path} is not built (make build)")
        return path

    def need_module(self, module):
        if subprocess.run([self.python, "-c", f"import {module}"], capture_output=True).returncode != 0:
            raise Missing(f"{self.python} has no {module}; give PYTHON=a-python-that-has-it")
        return self.python


def mib(count):
    return f"{count / 2**20:,.0f} MiB"


def gb(count):
    return f"{count / 1e9:.1f} GB"


def digits(value, count=2):
    """So many digits that count, never in powers of ten."""
    return f"{value:.{max(0, count - 1 - math.floor(math.log10(abs(value))))}f}" if value else "0"


def signed(percent):
    return f"{percent:+.1f} %".replace("-", "−")


def spread(values, form="{:.2f}", middle=statistics.median):
    """'0.92 (0.90 to 0.97)': the median, the least and the most."""
    return f"{form.format(middle(values))} ({form.format(min(values))} to {form.format(max(values))})".replace("-", "−")


# --- the sections -------------------------------------------------------------------------------------------------------------

# Peak allocated of a training step by PyTorch 2.11 on an H200: fused AdamW, fp32 weights, TF32 products, no dropout, tied heads, SDPA; the lowest of
# eager, compiled, both channels-last and with a CUDA graph. Measured in mid-November 2026 with bare training loops, and on 2026-11-16 again by
# tools/bench_torch_gpu.py: 1,239, 2,974, 21,000, 4,448, 9,443, 7,097 and 23,277 MiB. The lower of the two stands here; gpt2's compiled step holds
# one more copy of the logits in the second, for a reason not known. whisper compiled: 23,449.
BYTES = [("alexnet", "128", [], 1237, "compiled"), ("resnet50", "32", [], 2974, "compiled"), ("resnet50", "256", [], 20984, "compiled"),
         ("resnet101", "32", [], 4445, "compiled"), ("gpt2", "8 × 1,024", ["--seq", 1024], 7897, "compiled"),
         ("bert", "16 × 512", ["--seq", 512], 7098, "compiled"), ("whisper-small", "16", [], 23247, "eager")]


def bytes_of_a_step(here):
    rows, unproven = [], []
    for model, batch, sizes, theirs, mode in BYTES:
        plan = here.json("plan", model, "--batch", batch.split(" ")[0], *sizes)
        ours = plan["arena_bytes"]
        unproven += [] if plan["status"] == "optimal" else [f"{model} {batch}"]
        rows.append([model, batch, mode, mib(plan["baseline_bytes"]), mib(ours), f"{theirs:,} MiB", signed(100 * (ours / 2**20 / theirs - 1))])
    proof = "every arena proven optimal for its schedule" if not unproven else f"all arenas but {', '.join(unproven)} proven optimal"
    return rows, f"ours are exact for one instruction set and number of threads, {proof}; PyTorch's are the lowest measured, mid-November 2026 (`tools/bench_torch_gpu.py`)."


def steps_against_torch(here):
    out = json.loads(here.run([here.need_module("torch"), "tools/bench_torch.py", "--plimsoll", here.program("plimsoll"), "--json"]).splitlines()[-1])
    rows = []
    for (name, size), answer in zip((("resnet50", "batch 8"), ("alexnet", "batch 32"), ("gpt2", "1 × 256"), ("bert", "2 × 128")), out.values()):
        times = {mode: min(ms) for mode, ms in answer["milliseconds"].items()}
        ours = times.pop("plimsoll")
        mode = min(times, key=times.get)
        peaks = dict(answer["peak_mib"])
        our_peak = peaks.pop("plimsoll")
        rows.append([name, size, mode, f"{times[mode]:,.0f} ms", f"{ours:,.0f} ms", spread(answer["ratios"]), f"{min(peaks.values()):,.0f} MiB", f"{our_peak:,.0f} MiB"])
    version = here.run([here.python, "-c", "import torch; print(torch.__version__.split('+')[0])"]).strip()
    return rows, f"PyTorch {version}; times are the fastest steps of 5 rounds, ratios the median of the rounds (least to most)."


def inference_against_ort(here):
    python = here.need_module("onnxruntime")
    rows = [[row["model"], f"{1e3 * row['onnxruntime_seconds']:,.1f} ms", f"{1e3 * row['plimsoll_seconds']:,.1f} ms", spread(row["ratios"])]
            for row in json.loads(here.run([python, "tools/references/bench_ort.py", here.program("plimsoll"), "--json"]).splitlines()[-1])]
    version = here.run([python, "-c", "import onnxruntime; print(onnxruntime.__version__)"]).strip()
    return rows, f"onnxruntime {version}; medians of 6 rounds in turn (least to most of the ratios)."


RUNS_OF_BARS = 10


def steps_within_budgets(here):
    line = re.compile(r"^  (no budget|\d+%) +([\d.]+ \w+) +([\d.]+)ms +(-?[\d.]+)% +[\d.]+% +([\d.]+)ms +([+-][\d.]+)%", re.M)
    rows = []
    for model, size in (("gpt2", "2 × 256, Adam, all remedies"), ("resnet50", "batch 16, recompute and encode")):
        seen = {}
        for _ in range(RUNS_OF_BARS):
            for budget, arena, ms, slower, _, off in line.findall(here.run([here.program("bin/run_bench"), 1, model])):
                seen.setdefault(budget, []).append((arena, float(ms), float(slower), float(off)))
        for budget, runs in seen.items():
            ms, slower, off = ([run[i] for run in runs] for i in (1, 2, 3))
            if len(runs) < RUNS_OF_BARS:
                raise RuntimeError(f"{model} at {budget}: a plan was found in {len(runs)} of {RUNS_OF_BARS} runs")
            rows.append([model, size, "none" if budget == "no budget" else budget.replace("%", " %"), runs[-1][0], spread(ms, "{:,.0f}"), "–" if budget == "keep all" else spread(slower, "{:+.1f}"), spread(off, "{:+.1f}")])
    return rows, f"medians of {RUNS_OF_BARS} runs (least to most), each of which times the operators, plans and runs two steps of every plan; off is measured against predicted."


ENCODED = (("vgg16", 4), ("alexnet", 32), ("resnet50", 8), ("resnet101", 4))


def lossless_encodings(here):
    rows = []
    for model, batch in ENCODED:
        file = here.folder / f"{model}.json"
        plan = here.json("plan", model, "--batch", batch, "--checkpointing", "encode", "-o", file)
        forms = here.json("run", file, "--steps", 2)["encodings"].values()
        planned, plain = plan["held_bytes"], plan["held_fp32_bytes"]
        taken = planned - sum(form["planned_bytes"] for form in forms) + sum(form["encoded_bytes"] + form["overflow_bytes"] for form in forms)
        rows.append([model, str(batch), mib(plain), mib(planned), mib(taken), f"{plain / planned:.2f} ×", f"{plain / taken:.2f} ×", mib(sum(form["overflow_bytes"] for form in forms))])
    return rows, "exact for the seed: fresh weights, synthetic data, second step; the plan assumes 45 % zeros after ReLU."


LOSSY = ["gpt2", "--layers", 4, "--batch", 2, "--seq", 128, "--optimizer", "adam", "--dropout", 0]


def lossy_encodings(here):
    file = here.folder / "lossy.json"
    exact = here.json("run", *LOSSY, "--steps", 5)["losses"][-1]
    rows = []
    for form in ("fp16", "bf16", "fp8", "int8"):
        plan = here.json("plan", *LOSSY, "--checkpointing", "encode", "--lossy", form, "-o", file)
        run = here.json("run", file, "--steps", 5)
        error = next(iter(run["encoding_error"].values()))
        rows.append([form, f"{plan['held_fp32_bytes'] / plan['held_bytes']:.2f} ×", digits(error["max"]), f"{digits(100 * error['relative_rms'])} %", f"{run['losses'][-1]:.5f}", f"{exact:.5f}"])
    return rows, "exact for the seed; every activation of the forward pass is stored in the form. Errors are those of the first step, in units of the values and of their root mean square."


def classic_figure(here):
    runs = [here.json("plan", "resnet", "--depth", 1000, "--batch", 32, "--figure", "--deadline", "10s")["figure"] for _ in range(3)]
    rows = []
    for points in zip(*runs):
        sizes, slower = ([point[key] for point in points] for key in ("feature_map_bytes", "overhead"))
        fixed = min(sizes) == max(sizes) and min(slower) == max(slower)
        rows.append([points[0]["name"], gb(sizes[0]) if fixed else spread([size / 1e9 for size in sizes], "{:.1f}"), "–" if max(slower) == 0 else
                     signed(100 * slower[0]) if fixed else spread([100 * part for part in slower], "{:+.1f}")])
    return rows, "three runs; the last row searches by the clock and depends on the machine: median (least to most), GB and %."


def generated_graphs(here):
    line = re.compile(r"^(\S+) +n=(\d+) +budget (\d+) +of (\d+) +known +(-?[\d.]+)%  ours +(-?[\d.]+)%  bound +(-?[\d.]+)%  first +-?[\d.]+% in ([\d.]+)s", re.M)
    rows = []
    for name, title, proven in (("unet2", "U-net", True), ("unet3", "U-net", True), ("resnet333", "resnet", False), ("transformer100", "transformer", False), ("network1000", "random layered", False)):
        given = here.run([here.program("bin/fit_bench"), 4, name]).split("-- the order may change")[0]
        for _, nodes, budget, peak, known, ours, bound, first in line.findall(given):
            rows.append([title, f"{int(nodes):,}", f"{100 * int(budget) / int(peak):.0f} %", f"{known} %" if proven else "–", f"{ours} %", f"{bound} %", f"{float(first):.3f} s"])
    return rows, "one run, 4 s a plan on two threads; optima of the given order by integer programming."


# By graph of Moccasin's folder `data`: budgets in percent, and the optimum of its order where an integer program proved one.
PUBLISHED = [("VGG16", "Checkmate VGG16", {90: 1.97}), ("VGG19", "Checkmate VGG19", {90: 0.10, 80: 2.76}), ("vgg_unet", "Checkmate U-Net", {90: 1.13, 80: 1.98, 60: 4.45}),
             ("fcn_8_vgg", "Checkmate FCN8", {90: None, 80: None}), ("segnet", "Checkmate SegNet", {90: None, 80: None, 60: None}),
             ("MobileNet", "Checkmate MobileNet", {80: None, 60: None}), ("ResNet50", "Checkmate ResNet50", {90: None, 80: None, 60: None}),
             ("random_layered_n100_", "random layered, 100", {90: 0.79, 80: 2.30}), ("random_layered_n250_", "random layered, 250", {90: None, 80: None}),
             ("random_layered_n500_", "random layered, 500", {90: None, 80: None})]


def published_graphs(here):
    folder = pathlib.Path(os.environ.get("PLIMSOLL_MOCCASIN", "nowhere"))
    if not folder.is_dir():
        raise Missing("PLIMSOLL_MOCCASIN names no folder (`data` of GitHub haoming-codes/moccasin; GPL, not in this repository)")
    rows = []
    for prefix, title, budgets in PUBLISHED:
        file = next(path for path in sorted(folder.glob(f"{prefix}*.json")) if not path.name.endswith("_test_nx.json"))
        for budget, optimum in budgets.items():
            given, free = (here.json("plan", "--dag", file, "--budget", f"{budget}%", "--order", order, "--deadline", "10s") for order in ("given", "search"))
            rows.append([title, f"{budget} %", "–" if optimum is None else f"{optimum:.2f} %", *(f"{round(100 * x, 2) + 0.0:.2f} %" for x in (given["overhead"], given["lower_bound_overhead"], free["overhead"]))])
    return rows, "one run, 10 s a plan; optima of the given order by integer programming, where one was found."


def packer(here):
    bars = here.program("bin/pack_bench")
    totals = [float(seconds) for _ in range(3) for seconds in re.findall(r"^seed \d+: ([\d.]+) s in all", here.run([bars, "hard"]), re.M)]
    line = re.compile(r"^(.{28}) +(\d+) buffers  height +(\d+)  \+ *([\d.]+) %  (\S+) .* ([\d.]+) s$", re.M)
    minimal = [row for row in line.findall(here.run([bars, "minimize"])) if row[0].strip().endswith("minimize")][:6]
    proven = sum(row[4] == "optimal" for row in minimal)
    million = {row[0].split(",")[0].strip(): row for row in line.findall(here.run([bars, "million"]))}
    rows = [["MiniMalloc's A to F at 1 MiB, all six", "10 seeds, 3 times", spread(totals, "{:.2f}"), "–"],
            [f"smallest heights of A to F, {proven} of 6 proven", "seed 1", f"{sum(float(row[5]) for row in minimal):.2f}", f"{max(float(row[3]) for row in minimal):.2f} %"]]
    rows += [[f"a million {name} buffers", "seed 7", f"{float(million[key][5]):.2f}", f"{float(million[key][3]):.2f} %"] for name, key in (("training-like", "training"), ("random", "random"))]
    return rows, "one thread, CPU seconds with the final check."


def allocator_on_a_gpu(here):
    if not shutil.which("nvidia-smi"):
        raise Missing("there is no GPU")
    library = SOURCE / "build/cuda/torch/libplimsoll_torch.so"
    if not library.exists():
        raise Missing(f"{library} is not built (cmake --preset cuda)")
    out = here.run(["bash", "torch/tests/run_on_gpu.sh"], env={**os.environ, "PYTHON": here.need_module("torch")})
    held = dict(re.findall(r"^  (native|expandable|plimsoll) .*?reserved/allocated ([\d.]+)", out, re.M))
    seconds = {name: float(text) for name, text in re.findall(r"^  (native|expandable|plimsoll) +([\d.]+) s of", out, re.M)}
    best = min(seconds["native"], seconds["expandable"])
    names = (("PyTorch's own", "native"), ("with expandable segments", "expandable"), ("Plimsoll", "plimsoll"))
    return [[title, f"{float(held[name]):.3f} ×", f"{seconds[name] / best:.3f} ×"] for title, name in names], "H200; the worst of 5 runs for memory, medians of 5 for time."


def demo(here):
    out = here.run(["sh", "tools/demo.sh", here.program("plimsoll")], env={**os.environ, "OUT_DIR": str(here.folder / "out")})
    table = out[out.index("              planned peak") if "              planned peak" in out else out.index("\n\n") + 2:out.rindex("\n\nThe report")]
    return re.sub(r" +\d+ ms(?=   )|(?<=measured peak) +step", "", table), "the bytes of the first three rows are exact for one instruction set and number of threads; losses for the seed."


def by_hand(here):
    raise Missing("measured by hand, to choose between designs")


SECTIONS = [
    Section("demo", "docs/benchmarks.md", "make run", [], demo),
    Section("bytes", "README.md", "plimsoll plan MODEL --batch N --json", ["model", "batch", "PyTorch's mode", "every tensor its own", "Plimsoll", "PyTorch's best", "difference"], bytes_of_a_step, texts=3, ours=(4,), quick=True),
    Section("torch", "docs/benchmarks.md", "make bench-torch PYTHON=a-python-with-torch", ["model", "size", "PyTorch's mode", "PyTorch's best", "Plimsoll", "ratio", "lowest peak of PyTorch", "ours"], steps_against_torch, texts=3, ours=(4, 7)),
    Section("budget", "docs/benchmarks.md", "build/release/bin/run_bench 1 MODEL", ["model", "how", "budget", "arena", "step, ms", "slower, %", "off, %"], steps_within_budgets, texts=3, ours=(5,)),
    Section("packer", "docs/benchmarks.md", "build/release/bin/pack_bench hard minimize million", ["problem", "seeds", "seconds", "above the bound"], packer, texts=2, ours=(2,), quick=True),
    Section("allocator", "docs/benchmarks.md", "bash torch/tests/run_on_gpu.sh", ["allocator", "reserved, of the live peak", "time"], allocator_on_a_gpu),
    Section("onnxruntime", "docs/benchmarks.md", "make bench-ort PYTHON=a-python-with-onnxruntime", ["model", "onnxruntime", "Plimsoll", "ratio"], inference_against_ort, ours=(2,)),
    Section("encodings", "docs/benchmarks.md", "plimsoll plan MODEL --batch N --checkpointing encode -o plan.json && plimsoll run plan.json --steps 2 --json", ["model", "batch", "in fp32", "planned", "in the run", "planned ratio", "measured ratio", "did not fit"], lossless_encodings, ours=(6,), quick=True),
    Section("lossy", "docs/benchmarks.md", "plimsoll plan " + " ".join(map(str, LOSSY)) + " --checkpointing encode --lossy FORM -o plan.json && plimsoll run plan.json --steps 5 --json", ["form", "smaller", "largest error", "rms error", "loss after 5 steps", "without"], lossy_encodings, quick=True),
    Section("thousand", "docs/benchmarks.md", "plimsoll plan resnet --depth 1000 --batch 32 --figure --deadline 10s", ["strategy", "feature maps", "time"], classic_figure),
    Section("graphs", "docs/benchmarks.md", "build/release/bin/fit_bench 4 NAME", ["graph", "nodes", "budget", "proven optimum", "ours", "lower bound", "first plan"], generated_graphs, ours=(4,)),
    Section("published", "docs/benchmarks.md", "PLIMSOLL_MOCCASIN=moccasin/data tools/figures.py published", ["graph", "budget", "proven optimum", "ours", "lower bound", "order free"], published_graphs, ours=(3,)),
    Section("hard", "docs/benchmarks.md", "build/release/bin/hard_bench 5 FAMILY 101 102 1", ["graph", "budget", "seed", "before", "now"], by_hand, texts=5),
    Section("replay", "docs/benchmarks.md", "plimsoll replay FILE --allocator all", ["trace", "plimsoll", "PyTorch default", "expandable segments"], by_hand, texts=4),
    Section("recorded", "docs/benchmarks.md", "python bench/trace/record_traces.py FOLDER && plimsoll replay FOLDER/NAME.jsonl.gz", ["trace", "live", "without shared slabs", "with"], by_hand, texts=4),
    Section("slabs", "docs/benchmarks.md", "bash torch/tests/run_on_gpu.sh", ["1/n of what is held / of a request", "reserved over live", "map calls", "H200: reserved / allocated, time"], by_hand, texts=4),
    Section("snapshots", "docs/benchmarks.md", "build/release/bin/snapshot_bench make FILE 1000000000 FRAMES && build/release/bin/snapshot_bench read FILE", ["file", "events", "CPU time", "anonymous memory"], by_hand, texts=4),
    Section("allocations", "docs/benchmarks.md", "build/release/bin/torch_bench", ["work", "ns"], by_hand, texts=2),
    Section("operations", "docs/benchmarks.md", "plimsoll replay FILE --json", ["snapshot", "operations", "map calls", "ns per operation", "ns per event"], by_hand, texts=5),
    Section("stacks", "docs/benchmarks.md", "build/release/bin/torch_bench && plimsoll replay FILE", ["free blocks kept per size", "replace one of 64 / 512 / 2048", "512 small ones", "ResNet-50 snapshot"], by_hand, texts=4),
]


# --- the command line ---------------------------------------------------------------------------------------------------------

def tables_outside(text):
    """Rows with figures in tables that no section writes."""
    outside = re.sub(rf"<!-- figures:.*?{END}", "", text, flags=re.S)
    return [line for line in outside.splitlines() if line.startswith("|") and re.search(r"\d", line)]


def check():
    problems = []
    for section in SECTIONS:
        try:
            text = section.read()
            if Block.parse(section, text).render() != text:
                raise Wrong("is not what the script would write")
        except Wrong as wrong:
            problems.append(f"{section.file.relative_to(SOURCE)}, {section.name}: {wrong}")
    for file in sorted({section.file for section in SECTIONS}):
        known = {section.name for section in SECTIONS if section.file == file}
        problems += [f"{file.name}: no section is called {name}" for name, _ in BEGIN.findall(file.read_text()) if name not in known]
        problems += [f"{file.name}: a table of figures that no section writes: {line}" for line in tables_outside(file.read_text())]
    return problems


def rerun(sections, here):
    failed = 0
    for section in sections:
        before = Block.parse(section, section.read())
        print(f"{section.name}: {section.command}", flush=True)
        try:
            answer, remark = section.measure(here)
        except Missing as missing:
            print(f"  left as measured on {before.date}: {missing}")
            continue
        except (RuntimeError, KeyError, IndexError, ValueError, OSError) as problem:
            failed += 1
            print(f"  FAILED, left as measured on {before.date}: {problem}")
            continue
        rows, text = (answer, None) if section.columns else ([], answer)
        block = Block(section, rows, datetime.date.today().isoformat(), remark, text)
        section.write(block)
        print(block.render())
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], formatter_class=argparse.RawDescriptionHelpFormatter, epilog=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--python", default=sys.executable, help="a Python with torch and onnxruntime")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    known = {section.name: section for section in SECTIONS}
    for name in options.names:
        if name not in known:
            sys.exit(f"figures.py: '{name}' is no section; they are {', '.join(known)}")
    if options.check:
        problems = check()
        print("\n".join(problems) or f"{len(SECTIONS)} sections are in the form that tools/figures.py writes")
        return 1 if problems else 0
    if options.list:
        for section in SECTIONS:
            print(f"{section.name:12} {Block.parse(section, section.read()).date}  {section.file.relative_to(SOURCE)}{'  quick' if section.quick else ''}\n{'':14}{section.command}")
        return 0
    wanted = [known[name] for name in options.names] or [section for section in SECTIONS if section.quick or not options.quick]
    here = Here(options.build, options.python)
    try:
        return 1 if rerun(wanted, here) else 0
    finally:
        shutil.rmtree(here.folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
