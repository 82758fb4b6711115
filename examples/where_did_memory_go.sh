#!/bin/sh
# From a recording to an answer: record a run, see it, ask what is alive, compare it with another run.
set -eu
plimsoll=${1:-build/release/plimsoll}
out=$(mktemp -d)
trap 'rm -r "$out"' EXIT
"$plimsoll" run mlp --steps 1 --trace "$out/planned.jsonl"
"$plimsoll" run mlp --steps 1 --executor on-demand --trace "$out/on_demand.jsonl"
"$plimsoll" view "$out/planned.jsonl" -o "$out/report.html" --svg "$out/timeline.svg"
"$plimsoll" explain "$out/on_demand.jsonl" --at peak --rows 3
"$plimsoll" diff "$out/planned.jsonl" "$out/on_demand.jsonl"
"$plimsoll" replay "$out/on_demand.jsonl" --allocator all
