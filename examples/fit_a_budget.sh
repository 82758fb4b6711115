#!/bin/sh
# From "it does not fit" to a report: what uses memory, a plan within a budget, a run, a picture.
set -eu
plimsoll=${1:-build/release/plimsoll}
out=$(mktemp -d)
trap 'rm -r "$out"' EXIT
"$plimsoll" memory resnet18 --batch 8 --image 64
"$plimsoll" plan resnet18 --batch 8 --image 64 --budget 98% -o "$out/plan.json"
"$plimsoll" check "$out/plan.json"
"$plimsoll" run "$out/plan.json" --steps 2
"$plimsoll" explain "$out/plan.json" --at peak | head -12
