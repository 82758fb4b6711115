#!/usr/bin/env python3
"""Runs every command shown in README.md and docs/.

    documents_test.py PLIMSOLL SOURCE_FOLDER WORK_FOLDER [--slow] [--only FILE | --except FILE]

A fenced block of language `sh` is run line by line in a scratch folder of its document that holds the files
the text speaks of (plan.json, snapshot.pickle.gz, model.onnx, ...). A word behind the language says where a
block runs: `slow` with --slow only, `torch` where python has it, `cuda` where there is a GPU, `mpi` where
it was built. Of `make` and
`ctest`, which would run this test again, only the names are checked.
"""
import gzip
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import time
import zipfile

PROGRAM, SOURCE, WORK = (pathlib.Path(text).resolve() for text in sys.argv[1:4])
sys.path.insert(0, str(SOURCE / "tests/running"))
import npz_files  # noqa: E402
PREPARED = WORK / "prepared"  # copied for every document
SLOW = "--slow" in sys.argv


def commands(path):
    """(marks, command) for every command of the document's sh blocks."""
    for marks, body in re.findall(r"^```sh([^\n]*)\n(.*?)^```", path.read_text(), re.M | re.S):
        for line in body.replace("\\\n", " ").splitlines():
            if line.strip() and not line.startswith("#"):
                yield marks.split(), line


def npz(path, name, shape):
    """An array of ones as NumPy would save it."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    count = 1
    for size in shape:
        count *= size
    content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<f", 1) * count
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name + ".npy", content)


def chain(length):
    """A network of `length` layers and its backward pass: each gradient reads the result of its layer."""
    forward = [{"name": f"f{i}", "seconds": 0.001, "bytes": 1 << 20, "inputs": [f"f{i - 1}"] if i else []} for i in range(length)]
    backward = [{"name": f"b{i}", "seconds": 0.002, "bytes": 1 << 20, "inputs": [f"f{i}"] + ([f"b{i + 1}"] if i + 1 < length else [])} for i in reversed(range(length))]
    nodes = forward + backward
    return {"nodes": nodes, "order": [node["name"] for node in nodes]}


def plimsoll(folder, *arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def prepare(folder):
    """The files that documents speak of."""
    folder.mkdir(parents=True)
    shutil.copy(SOURCE / "tests/corpus/packing/A.1048576.csv", folder / "problem.csv")
    (folder / "graph.json").write_text(json.dumps(chain(6)))
    plimsoll(folder, "plan", "mlp", "-o", "plan.json")
    plimsoll(folder, "run", "mlp", "--steps", 1, "--trace", "run.jsonl")
    plimsoll(folder, "convert", "run.jsonl", "-o", "snapshot.pickle")
    (folder / "snapshot.pickle.gz").write_bytes(gzip.compress((folder / "snapshot.pickle").read_bytes()))
    for name in ("before.json", "after.json", "main.json", "branch.json"):
        shutil.copy(folder / "plan.json", folder / name)
    plimsoll(folder, "graph", "mlp", "--infer", "--batch", 8, "-o", "model.onnx")
    plimsoll(folder, "graph", "mlp", "--infer", "-o", "model.graph")
    shape = next(line for line in plimsoll(folder, "graph", "model.onnx").splitlines() if " input " in line)
    npz(folder / "in.npz", re.search(r'"([^"]+)"', shape).group(1), [int(size) for size in re.search(r"\[([\d,]+)\]", shape).group(1).split(",")])
    examples = {"images": ("<f4", (10, 1, 28, 28), [i % 255 / 255 for i in range(7840)]), "labels": ("<i8", (10,), list(range(10)))}
    (folder / "shards").mkdir()
    for name in ("train.npz", "shards/a.npz", "shards/b.npz"):
        npz_files.save(folder / name, **examples)
    (folder / "train.py").write_text("import torch\nx = torch.ones(8, 8, device='cuda' if torch.cuda.is_available() else 'cpu')\nprint((x @ x).sum())\n")
    (folder / "bin").mkdir()
    (folder / "bin/plimsoll").symlink_to(PROGRAM)
    (folder / "build").mkdir()
    (folder / "build/release").symlink_to(PROGRAM.parent)
    for name in ("tests", "tools", "examples", "torch", "bench"):
        (folder / name).symlink_to(SOURCE / name)


def has_torch():
    return subprocess.run(["python3", "-c", "import torch; torch.cuda"], cwd="/", capture_output=True).returncode == 0


def left_out(marks, line):
    """Why a command is not run here, or nothing."""
    if "slow" in marks and not SLOW:
        return "slow"
    if "cuda" in marks and not shutil.which("nvidia-smi"):
        return "no GPU"
    if "mpi" in marks and not (PROGRAM.parent / "libplimsoll_mpi.so").exists():
        return "built without MPI"
    if "torch" in marks and not has_torch():
        return "no torch"
    return None


SHOWN = set()


def shown_before(line):
    """A command that another document shows too and that leaves no file behind is run once."""
    words = line.split("#")[0].split()
    again = tuple(words) in SHOWN and not {"-o", ">", "--trace", "--save", "--svg"} & set(words)
    SHOWN.add(tuple(words))
    return "run before" if again else None


def known_target(line):
    """`make X` and `ctest -R X` name something that is there."""
    words = line.split("#")[0].split()
    if words[0] == "make":
        return all(subprocess.run(["make", "-n", word], cwd=SOURCE, capture_output=True).returncode == 0 for word in words[1:] if "=" not in word)
    listed = subprocess.run(line.split("#")[0] + " -N", shell=True, cwd=PROGRAM.parent.parent.parent, capture_output=True, text=True)
    return "Total Tests: 0" not in listed.stdout and listed.returncode == 0


def run_document(path, folder):
    environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "NO_COLOR": "1"}
    failed, count = [], 0
    for marks, line in commands(path):
        reason = left_out(marks, line) or shown_before(line)
        if reason:
            print(f"  left out ({reason}): {line}")
            continue
        if not folder.exists():
            if not PREPARED.exists():
                prepare(PREPARED)
            shutil.copytree(PREPARED, folder, symlinks=True)
        count += 1
        begin = time.monotonic()
        if line.split()[0] in ("make", "ctest"):
            problem = "" if known_target(line) else "there is no such target"
        else:
            done = subprocess.run(["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True)
            problem = "" if done.returncode == 0 else f"exit {done.returncode}: {done.stderr[-500:]}"
        print(f"  {time.monotonic() - begin:5.1f} s  {line}" + (f"\n      FAILED {problem}" if problem else ""), flush=True)
        if problem:
            failed.append(line)
    return count, failed


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    documents = [SOURCE / "README.md", SOURCE / "CONTRIBUTING.md", *sorted((SOURCE / "docs").rglob("*.md")), *sorted((SOURCE / "torch").rglob("*.md"))]
    if "--only" in sys.argv:
        documents = [SOURCE / sys.argv[sys.argv.index("--only") + 1]]
    if "--except" in sys.argv:
        documents.remove(SOURCE / sys.argv[sys.argv.index("--except") + 1])
    total, failures = 0, []
    for path in documents:
        if not path.exists() or not list(commands(path)):
            continue
        print(path.relative_to(SOURCE))
        count, failed = run_document(path, WORK / path.stem)
        total += count
        failures += [f"{path.relative_to(SOURCE)}: {line}" for line in failed]
    print(f"{total} commands run, {len(failures)} failed")
    for failure in failures:
        print("FAILED", failure)
    return 1 if failures or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
