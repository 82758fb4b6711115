#!/usr/bin/env python3
"""Compares every #include between rooms with tools/layers.txt, and checks that the table has no cycle."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
allowed = {}
for line in (root / "tools/layers.txt").read_text().splitlines():
    if line and not line.startswith("#"):
        room, _, rest = line.partition(":")
        allowed[room] = set(rest.split())

problems = []
placed = set()
for room, below in allowed.items():
    for other in below - placed - set(allowed):
        problems.append(f"layers.txt: {room} names the unknown room {other}")
    placed.add(room)

state = {}


def visit(room):
    if state.get(room) == "open":
        problems.append(f"layers.txt: {room} is part of a cycle")
        return
    if room not in state:
        state[room] = "open"
        for other in allowed.get(room, ()):
            visit(other)
        state[room] = "done"


for room in allowed:
    visit(room)

include = re.compile(r'^\s*#\s*include\s+"plimsoll/(\w+)/')
source = root / "src/plimsoll"
count = 0
for path in sorted(source.rglob("*")):
    if path.suffix not in {".h", ".cpp", ".cu", ".cuh"}:
        continue
    room = path.relative_to(source).parts[0]
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = include.match(line)
        if match:
            count += 1
            other = match.group(1)
            if other not in {room, "base"} | allowed.get(room, set()):
                problems.append(f"{path.relative_to(root)}:{number}: {room} may not include {other}")

for problem in problems:
    print(problem, file=sys.stderr)
print(f"{count} includes between rooms checked, {len(problems)} problem(s)")
sys.exit(1 if problems else 0)
