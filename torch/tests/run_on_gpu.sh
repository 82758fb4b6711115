#!/usr/bin/env bash
# Every check and measurement of the plug-in that needs a GPU, in under six minutes.
#   needs: python with PyTorch 2.11 or newer, g++, and build/cuda/torch/libplimsoll_torch.so (or
#   PLIMSOLL_TORCH_LIBRARY naming it). Prints a compact summary; exit 1 when a check fails.
cd "$(dirname "$0")"
python=${PYTHON:-python3}
status=0
section() { printf '\n== %s (%ss)\n' "$1" "$SECONDS"; }

section "behaviours"
for allocator in native plimsoll; do
  timeout 90 "$python" behaviours.py "$allocator" 2>/tmp/plimsoll_behaviours.err || { status=1; tail -15 /tmp/plimsoll_behaviours.err; }
done

section "same losses"
for work in gpt2 resnet50; do
  native=$(timeout 60 "$python" workloads.py native $work 5 2>/tmp/plimsoll_native.err) || { status=1; tail -3 /tmp/plimsoll_native.err; }
  ours=$(timeout 60 "$python" workloads.py plimsoll $work 5 2>/tmp/plimsoll_ours.err) || { status=1; tail -5 /tmp/plimsoll_ours.err; }
  NATIVE=$native OURS=$ours "$python" - <<'PY' || status=1
import json, os, sys
a, b = json.loads(os.environ["NATIVE"]), json.loads(os.environ["OURS"])
same = a["losses"] == b["losses"]
print(f"  {a['work']}: losses {'equal' if same else 'DIFFER'} {b['losses'][-1]:.6f}; native reserved/allocated "
      f"{a['reserved'] / a['allocated']:.4f}, ours {b['reserved'] / b['allocated']:.4f}")
sys.exit(0 if same else 1)
PY
done

section "changing lengths, 60 steps, median of 5"
rm -f /tmp/plimsoll_varlen.jsonl
for turn in 1 2 3 4 5; do
  for allocator in native expandable plimsoll; do
    [ $SECONDS -gt 300 ] && break
    timeout 60 "$python" workloads.py $allocator varlen 60 >>/tmp/plimsoll_varlen.jsonl 2>/tmp/plimsoll_varlen.err || { status=1; tail -3 /tmp/plimsoll_varlen.err; }
  done
done
"$python" - <<'PY' || status=1
import json, statistics
runs = {}
for line in open("/tmp/plimsoll_varlen.jsonl"):
    run = json.loads(line)
    runs.setdefault(run["allocator"], []).append(run)
median = {name: statistics.median(r["seconds"] for r in group) for name, group in runs.items()}
for name, group in runs.items():
    worst = max(r["reserved"] / r["allocated"] for r in group)
    print(f"  {name:11} {median[name]:.3f} s of {len(group)}, reserved/allocated {worst:.4f}, "
          f"allocated {group[0]['allocated'] >> 20} MiB, reserved {group[0]['reserved'] >> 20} MiB, "
          f"moved {group[0]['remapped']}, device allocations {group[0]['device']}")
best = min(median["native"], median["expandable"])
print(f"  time ratio {median['plimsoll'] / best:.4f} (bar 1.03), memory bar 1.01")
PY

section "speed from C++, same process"
timeout 100 "$python" allocator_speed.py 2>/tmp/plimsoll_speed.err || { status=1; tail -5 /tmp/plimsoll_speed.err; }
section "done, status $status"
exit $status
