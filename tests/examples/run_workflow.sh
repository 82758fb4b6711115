#!/bin/sh
# Runs the commands of memory_test_in_ci.yml that are ours, first against a baseline that is met, then against one that
# is not: the workflow must fail exactly then.
set -eu
plimsoll=$(realpath "${1:-build/release/plimsoll}")
workflow=$(realpath "$(dirname "$0")/../../examples/memory_test_in_ci.yml")
out=$(mktemp -d)
trap 'rm -r "$out"' EXIT
cd "$out"
mkdir -p build/release
ln -s "$plimsoll" build/release/plimsoll
sed -n 's|^ *- run: \(build/release/plimsoll .*\)|\1|p' "$workflow" > commands
test "$(wc -l < commands)" -eq 3
build/release/plimsoll plan resnet50 --batch 32 -o baseline.json > plan.txt
sh -e commands
build/release/plimsoll plan resnet50 --batch 24 -o baseline.json > plan.txt
code=0
sh -e commands > grown.txt || code=$?
test "$code" -eq 4
