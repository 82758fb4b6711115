#!/usr/bin/env python3
"""Fuzzes every parser: each fuzz target for some minutes, from seeds that the program itself and the tests' files give.

  python3 tools/fuzz.py [--fuzzers build/fuzz/bin] [--plimsoll build/release/plimsoll] [--seconds 600] [--runs N] [--jobs N]
      [--only NAME,...] [--work DIR] [--seeds-only] [--json]

Needs the fuzz preset built (`make fuzz` does it). What a target finds stays in DIR/NAME/found with the command that repeats it; the
corpus it grew stays in DIR/NAME/corpus, so that the next run goes on from there. The exit status is 1 where a target found something,
or did not run."""
import argparse
import concurrent.futures
import glob
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ONNX = "/usr/share/libonnx-testdata/data"
MLP = ["mlp", "--batch", "2", "--width", "8"]
GPT2 = ["gpt2", "--layers", "2", "--seq", "64", "--batch", "4", "--width", "64", "--vocab", "100"]
DAG = {"nodes": [{"name": "a", "bytes": 8, "seconds": 1}, {"name": "b", "inputs": ["a"], "bytes": 4, "seconds": 2, "scratch": 1},
                 {"name": "c", "inputs": ["a", "b"], "bytes": 2, "seconds": 1, "keep": True}], "order": ["a", "b", "c"]}

FORMS = ["fp16", "bf16", "fp8", "int8", "q8_0", "q4_0", "q4_k", "nf4", "coo", "csr", "bitmask", "2:4", "bf16-lossless", "archive", "ternary"]

# Inputs of some targets are kept short: what is parsed stands at the beginning, and ten times as many are tried in the same time.
LONGEST = {"safetensors_fuzz": 1024}
VERDICTS = ROOT / "src/plimsoll/store/testdata/safetensors_verdicts.txt"  # a hostile file a line: what is wrong, verdict, bytes

# For each target: files of the tests, and commands of the program whose output file ({}) is a seed.
FILES = {
    "onnx_fuzz": ["tests/onnx/exports/*.onnx", f"{ONNX}/node/*/model.onnx"],
    "npz_fuzz": ["tests/onnx/exports/*.npz", "src/plimsoll/store/testdata/*.npz"],
    "safetensors_fuzz": ["src/plimsoll/store/testdata/*.safetensors"],
    "weights_fuzz": ["src/plimsoll/store/testdata/*"],
    "snapshot_fuzz": ["src/plimsoll/trace/testdata/*.pickle.gz"],
    "packing_csv_fuzz": ["tests/corpus/packing/*.csv"],
}
MADE = {
    "plan_file_fuzz": [["plan", *MLP, "-o", "{}"], ["plan", *GPT2, "--budget", "70%", "-o", "{}"], ["plan", *MLP, "--infer", "-o", "{}"]],
    "sweep_fuzz": [["plan", *MLP, "--sweep", "--json"]],
    "trace_lines_fuzz": [["run", *MLP, "--trace", "{}"]],
    "packing_json_fuzz": [["pack", f"{ROOT}/tests/corpus/packing/input.12.csv", "-o", "{}"]],
    "graph_text_fuzz": [["graph", *MLP], ["graph", *MLP, "--train"]],
    "json_fuzz": [["memory", *MLP, "--json"]],
    "plan_set_index_fuzz": [["plan", "mlp", "--width", "8", "--sizes", "batch=1..3", "-o", "{}"]],
    "profile_fuzz": [["profile", "-o", "{}"]],
    "schedule_file_fuzz": [["plan", "--dag", "{dag}", "-o", "{}"]],
    "weights_fuzz": [["weights", f"{ROOT}/src/plimsoll/store/testdata/types.safetensors", "-o", "{}.plim"]]
                    + [["weights", f"{ROOT}/src/plimsoll/store/testdata/blocks.npz", "--form", form, "-o", "{}.plim"] for form in FORMS],
}


def make_seeds(name, program, folder):
    """Copies and makes the seeds of a target."""
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in FILES.get(name, []):
        for path in sorted(glob.glob(pattern if pattern.startswith("/") else str(ROOT / pattern))):
            data = pathlib.Path(path).read_bytes()
            data = gzip.decompress(data) if path.endswith(".gz") else data
            if len(data) <= 1 << 20:
                (folder / path.strip("/").replace("/", "_")).write_bytes(data)
    if name == "safetensors_fuzz":
        for number, line in enumerate(VERDICTS.read_text().splitlines()):
            (folder / f"hostile{number}").write_bytes(bytes.fromhex(line.split("\t")[2]))
    dag = folder.parent / "dag.json"
    dag.write_text(json.dumps(DAG))
    if name == "dag_file_fuzz":
        shutil.copy(dag, folder)
    for number, command in enumerate(MADE.get(name, [])):
        file = folder / f"made{number}"
        filled = [word.replace("{dag}", str(dag)).replace("{}", str(file)) for word in command]
        out = subprocess.run([program, *filled], capture_output=True)
        if out.returncode != 0:
            sys.exit(f"fuzz: no seed for {name}: {' '.join(filled)}: {out.stderr.decode(errors='replace').strip()}")
        if not any(str(file) in word for word in filled):
            file.write_bytes(out.stdout)


def fuzz(options, name):
    """One row: how many inputs ran, how many edges they covered, what was found."""
    work = options.work / name
    found, corpus = work / "found", work / "corpus"
    found.mkdir(parents=True, exist_ok=True)
    corpus.mkdir(exist_ok=True)
    begin = time.monotonic()
    until = f"-runs={options.runs}" if options.runs else f"-max_total_time={options.seconds}"
    longest = [f"-max_len={LONGEST[name]}"] if name in LONGEST else []
    command = [str(options.fuzzers / name), until, *longest, "-rss_limit_mb=2048", "-timeout=20", "-print_final_stats=1",
               f"-artifact_prefix={found}/", str(corpus), str(work / "seeds")]
    out = subprocess.run(command, capture_output=True, text=True, errors="replace")
    (work / "log").write_text(out.stderr)
    runs = re.search(r"stat::number_of_executed_units:\s*(\d+)", out.stderr)
    covered = re.findall(r"\bcov: (\d+)", out.stderr)
    return {"target": name, "seconds": round(time.monotonic() - begin), "runs": int(runs[1]) if runs else 0,
            "covered": int(covered[-1]) if covered else 0, "found": sorted(str(file) for file in found.iterdir()), "exit": out.returncode}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fuzzers", type=pathlib.Path, default=ROOT / "build/fuzz/bin")
    parser.add_argument("--plimsoll", default=str(ROOT / "build/release/plimsoll"))
    parser.add_argument("--seconds", type=int, default=600, help="for each target")
    parser.add_argument("--runs", type=int, help="inputs for each target, however long they take")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="targets at once")
    parser.add_argument("--only", default="", help="these targets, instead of all")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build/fuzz/work")
    parser.add_argument("--seeds-only", action="store_true", help="make the seeds and stop")
    parser.add_argument("--json", action="store_true", help="one row a line")
    options = parser.parse_args()
    names = sorted(path.stem for path in (ROOT / "fuzz").glob("*_fuzz.cpp"))
    wanted = options.only.split(",") if options.only else names
    if unknown := set(wanted) - set(names):
        sys.exit(f"fuzz: no target {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    for name in wanted:
        make_seeds(name, options.plimsoll, options.work / name / "seeds")
    if options.seeds_only:
        return 0
    failed = 0
    if not options.json:
        print(f"{'target':24}{'seconds':>8}{'runs':>14}{'covered':>9}  found")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(lambda name: fuzz(options, name), wanted):
            failed += row["exit"] != 0 or bool(row["found"]) or row["runs"] == 0
            what = ", ".join(row["found"]) or ("nothing" if row["exit"] == 0 else f"exit status {row['exit']}, see its log")
            print(json.dumps(row) if options.json else f"{row['target']:24}{row['seconds']:>8}{row['runs']:>14,}{row['covered']:>9,}  {what}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
