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
# The plan is the same on every machine, so its seconds are a shipped profile's; their ratio carries over.
sed -n 's/.*a step, \(.*\) than the no-recompute plan.*/  predicted: \1 than the plan that recomputes nothing/p' "$out/plan.txt"
echo "== training on one batch, three steps each"
# shellcheck disable=SC2086
"$plimsoll" run $model --steps 3 --json > "$out/keep_all.json"
"$plimsoll" run "$out/plan.json" --steps 3 --trace "$out/run.jsonl" --json > "$out/budget.json"
echo "== and two steps each under measurement, which are slower"
# shellcheck disable=SC2086
"$plimsoll" run $model --steps 2 --measure --json > "$out/keep_all_measured.json"
"$plimsoll" run "$out/plan.json" --steps 2 --measure --json > "$out/budget_measured.json"
"$plimsoll" view "$out/plan.json" "$out/run.jsonl" -o "$out/report.html" > /dev/null
python3 - "$out" <<'PY'
import json
import sys

out = sys.argv[1]
plan, keep_all, budget, keep_all_measured, budget_measured = (
    json.load(open(f"{out}/{name}.json")) for name in ("keep_all_plan", "keep_all", "budget", "keep_all_measured", "budget_measured"))
rows = [("none", plan["baseline_bytes"], None, None), ("in place", plan["inplace_bytes"], None, None),
        ("sharing", keep_all["planned_peak_bytes"], keep_all, keep_all_measured), ("budget", budget["planned_peak_bytes"], budget, budget_measured)]
print(f"\n{'':10}{'planned peak':>16}{'measured peak':>16}{'step':>11}   losses")
for name, planned, run, measured in rows:
    line = f"{name:10}{planned:>16,}"
    if run:
        line += f"{measured['peak_bytes']:>16,}{min(run['step_seconds']) * 1e3:>8.0f} ms   " + "  ".join(f"{loss:.6f}" for loss in run["losses"])
    print(line)
same = keep_all["losses"] == budget["losses"]
# What libraries allocate beside the arena: small objects of oneDNN and OpenMP, some KiB in all.
ALLOWANCE = 64 << 10
kept = True
for name, measured in (("sharing", keep_all_measured), ("budget", budget_measured)):
    if not measured["measured"]:
        print(f"{name}: not measured: {measured['not_measured']}")
        kept = False
        continue
    touched, outside, planned = measured["touched_bytes"], measured["outside_bytes"], measured["planned_peak_bytes"]
    kept = kept and touched <= planned and outside <= ALLOWANCE and measured["losses"] == keep_all["losses"][:2]
    print(f"{name}: {touched:,} bytes of the arena were written, {planned - touched:,} fewer than planned; {outside:,} bytes were alive outside it")
print(f"losses {'are bit-equal' if same else 'DIFFER'}; the measured runs {'kept' if kept else 'did NOT keep'} to their plans")
falls = keep_all["losses"][-1] < keep_all["losses"][0]
print(f"the loss {'falls' if falls else 'does NOT fall'}")
print(f"\nThe report: {out}/report.html (open it in a browser; it needs no network)")
sys.exit(0 if same and kept and falls else 1)
PY
