#!/bin/sh
# What `make run` does: plans and trains a real model under a budget, prints before and after, writes the
# report. MODEL and BUDGET may be set in the environment.
set -eu
plimsoll=$1
model=${MODEL:-resnet50 --batch 16 --image 160}
budget=${BUDGET:-50%}
out=${OUT_DIR:-out}
mkdir -p "$out"

echo "== the plan: $model"
# shellcheck disable=SC2086
"$plimsoll" plan $model
echo
echo "== within $budget of that"
# shellcheck disable=SC2086
"$plimsoll" plan $model --budget "$budget" --deterministic -o "$out/plan.json" > "$out/plan.txt"
sed -n '/budget/,/predicted/p' "$out/plan.txt"
echo
echo "== training, three steps each"
# shellcheck disable=SC2086
"$plimsoll" run $model --steps 3 --json > "$out/keep_all.json"
"$plimsoll" run "$out/plan.json" --steps 3 --trace "$out/run.jsonl" --json > "$out/budget.json"
python3 - "$out" <<'PY'
import json
import sys

out = sys.argv[1]
runs = [(name, json.load(open(f"{out}/{file}.json"))) for name, file in (("keep all", "keep_all"), ("budget", "budget"))]
print(f"{'':10}{'planned peak':>16}{'measured peak':>16}{'step':>10}   losses")
for name, run in runs:
    step = min(run["step_seconds"])
    losses = "  ".join(f"{loss:.6f}" for loss in run["losses"])
    print(f"{name:10}{run['planned_peak_bytes']:>16,}{run['peak_bytes']:>16,}{step * 1e3:>7.0f} ms   {losses}")
same = runs[0][1]["losses"] == runs[1][1]["losses"]
exact = all(run["planned_peak_bytes"] == run["peak_bytes"] for _, run in runs)
print(f"losses {'are bit-equal' if same else 'DIFFER'}; measured peaks {'are' if exact else 'are NOT'} the planned ones, to the byte")
sys.exit(0 if same and exact else 1)
PY
"$plimsoll" view "$out/plan.json" "$out/run.jsonl" -o "$out/report.html" > /dev/null
echo
echo "The report: $out/report.html (open it in a browser; it needs no network)"
