#!/bin/sh
# What `make run` does: plans and trains a real model under a budget, prints before and after, writes the
# report. MODEL and BUDGET may be set in the environment.
set -eu
plimsoll=$1
model=${MODEL:-resnet50 --batch 16 --image 160}
budget=${BUDGET:-50%}
out=${OUT_DIR:-out}
mkdir -p "$out"

echo "== planning $model, then within $budget of that"
# shellcheck disable=SC2086
"$plimsoll" plan $model --json > "$out/keep_all_plan.json"
# shellcheck disable=SC2086
"$plimsoll" plan $model --budget "$budget" --deterministic -o "$out/plan.json" > "$out/plan.txt"
sed -n '/predicted/p' "$out/plan.txt"
echo "== training on one batch, three steps each"
# shellcheck disable=SC2086
"$plimsoll" run $model --steps 3 --json > "$out/keep_all.json"
"$plimsoll" run "$out/plan.json" --steps 3 --trace "$out/run.jsonl" --json > "$out/budget.json"
"$plimsoll" view "$out/plan.json" "$out/run.jsonl" -o "$out/report.html" > /dev/null
python3 - "$out" <<'PY'
import json
import sys

out = sys.argv[1]
plan, keep_all, budget = (json.load(open(f"{out}/{name}.json")) for name in ("keep_all_plan", "keep_all", "budget"))
rows = [("none", plan["baseline_bytes"], None), ("in place", plan["inplace_bytes"], None), ("sharing", keep_all["planned_peak_bytes"], keep_all),
        ("budget", budget["planned_peak_bytes"], budget)]
print(f"\n{'':10}{'planned peak':>16}{'measured peak':>16}{'step':>11}   losses")
for name, planned, run in rows:
    line = f"{name:10}{planned:>16,}"
    if run:
        line += f"{run['peak_bytes']:>16,}{min(run['step_seconds']) * 1e3:>8.0f} ms   " + "  ".join(f"{loss:.6f}" for loss in run["losses"])
    print(line)
same = keep_all["losses"] == budget["losses"]
exact = all(run["planned_peak_bytes"] == run["peak_bytes"] for run in (keep_all, budget))
print(f"losses {'are bit-equal' if same else 'DIFFER'}; measured peaks {'are' if exact else 'are NOT'} the planned ones, to the byte")
print(f"\nThe report: {out}/report.html (open it in a browser; it needs no network)")
falls = keep_all["losses"][-1] < keep_all["losses"][0]
print(f"the loss {'falls' if falls else 'does NOT fall'}")
sys.exit(0 if same and exact and falls else 1)
PY
