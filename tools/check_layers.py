#!/usr/bin/env python3
"""Compares every #include between modules with tools/layers.txt, and checks that the table has no cycle."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
allowed = {}
for line in (root / "tools/layers.txt").read_text().splitlines():
    if line and not line.startswith("#"):
        module, _, rest = line.partition(":")
        allowed[module] = set(rest.split())

problems = []
placed = set()
for module, below in allowed.items():
    for other in below - placed - set(allowed):
        problems.append(f"layers.txt: {module} names the unknown module {other}")
    placed.add(module)

state = {}


def visit(module):
    if state.get(module) == "open":
        problems.append(f"layers.txt: {module} is part of a cycle")
        return
    if module not in state:
        state[module] = "open"
        for other in allowed.get(module, ()):
            visit(other)
        state[module] = "done"


for module in allowed:
    visit(module)

include = re.compile(r'^\s*#\s*include\s+"plimsoll/(\w+)/')
source = root / "src/plimsoll"
count = 0
for path in sorted(source.rglob("*")):
    if path.suffix not in {".h", ".cpp", ".cu", ".cuh"}:
        continue
    module = path.relative_to(source).parts[0]
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = include.match(line)
        if match:
            count += 1
            other = match.group(1)
            if other not in {module, "base"} | allowed.get(module, set()):
                problems.append(f"{path.relative_to(root)}:{number}: {module} may not include {other}")

for problem in problems:
    print(problem, file=sys.stderr)
print(f"{count} includes between modules checked, {len(problems)} problem(s)")
sys.exit(1 if problems else 0)
