#!/usr/bin/env python3
"""Two ranks with one core each: buckets against one sum a tensor, and against PyTorch's DistributedDataParallel.

    bench_ranks.py PLIMSOLL [--cable [RATE]] [--ddp PYTHON] [--models resnet50,gpt2] [--steps N] [--repeat N]

Prints for every model the median step and what of it no computation hides (from traces), once with buckets and once with
--bucket-bytes 1 --sparse-as-dense: one sum for each tensor, when it is whole. Beside it stands what no order of sending could
have hidden: the bytes of a step at the rate of the link, less what is computed after the first gradient is there. The rate is
that of a step of an mlp with one example, in which there is little else. --repeat runs everything so often, in turn, and prints
medians and the least and the most. --cable puts the ranks into two network namespaces (as root), RATE such as 2gbit limits it. --ddp times the
same models with gloo in another Python that has torch, torchvision and transformers, and compares resident memory, too.
Nothing is asserted: times belong to the machine.
"""
import argparse
import collections
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

COLLECTIVES = {"all_reduce", "all_gather", "scatter_sums", "own_part", "gather_update", "gather_weights"}
MODELS = {"resnet50": ["resnet50", "--batch", "4", "--image", "112"],
          "gpt2": ["gpt2", "--layers", "2", "--batch", "2", "--seq", "128", "--dropout", "0"],
          "resnet50-small": ["resnet50", "--batch", "2", "--image", "64"],  # these two are not timed with --ddp
          "gpt2-small": ["gpt2", "--layers", "2", "--batch", "1", "--seq", "64", "--dropout", "0"]}
RATE = ["mlp", "--batch", "1", "--width", "2048", "--steps", "8"]  # for the rate of the link: 80 MB a step
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
DDP = r"""
import sys, time, resource, torch, torch.distributed as dist
model, steps = sys.argv[1], int(sys.argv[2])
torch.set_num_threads(1); dist.init_process_group("gloo"); torch.manual_seed(1)
if model == "resnet50":
    import torchvision
    net = torchvision.models.resnet50().to(memory_format=torch.channels_last)
    x = torch.randn(4, 3, 112, 112).contiguous(memory_format=torch.channels_last); y = torch.randint(0, 1000, (4,))
    loss = lambda m: torch.nn.functional.cross_entropy(m(x), y)
else:
    from transformers import GPT2Config, GPT2LMHeadModel
    net = GPT2LMHeadModel(GPT2Config(n_layer=2, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0))
    t = torch.randint(0, 50257, (2, 128))
    loss = lambda m: m(input_ids=t, labels=t).loss
m = torch.nn.parallel.DistributedDataParallel(net, gradient_as_bucket_view=True)
o = torch.optim.AdamW(net.parameters(), foreach=True)
took = []
for _ in range(steps):
    begin = time.perf_counter(); o.zero_grad(); l = loss(m); l.backward(); o.step(); l.item(); took.append(time.perf_counter() - begin)
if dist.get_rank() == 0: print("DDP", sorted(took[1:])[len(took) // 2 - 1], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
dist.destroy_process_group()
"""


def length(spans):
    out, end = 0, -math.inf
    for begin, stop in sorted(spans):
        out += max(0, stop - max(begin, end))
        end = max(end, stop)
    return out


def spans(path):
    """What ran in each step but the first: (start, end, operator), in nanoseconds."""
    events = [json.loads(line) for line in open(path)]
    ran = [(e["start"], e["end"], e["name"].rsplit("/", 1)[-1]) for e in events if e.get("kind") == "operator"]
    steps = math.gcd(*collections.Counter(e["name"] for e in events if e.get("kind") == "operator").values())
    size = len(ran) // steps
    return [ran[step * size:(step + 1) * size] for step in range(min(1, steps - 1), steps)]


def exposed(path):
    """Milliseconds of a step in which nothing is computed and a collective runs: the median of all steps but the first."""
    found = [length([r[:2] for r in part]) - length([r[:2] for r in part if r[2] not in COLLECTIVES]) for part in spans(path)]
    return sorted(found)[len(found) // 2] / 1e6


def hideable(path):
    """Milliseconds that are computed after the first gradients are sent, the median of all steps but the first."""
    found = []
    for part in spans(path):
        sums = [r[0] for r in part if r[2] in COLLECTIVES and r[1] - r[0] > 1e6]  # not the number that is the loss
        first = min(sums) if sums else math.inf
        found.append(length([(max(r[0], first), r[1]) for r in part if r[2] not in COLLECTIVES and r[1] > first]))
    return sorted(found)[len(found) // 2] / 1e6


def median(told):
    return sorted(told["step_seconds"][1:])[len(told["step_seconds"]) // 2 - 1]


class Cable:
    """Two network namespaces and what starts a rank in the other one."""

    def __init__(self, folder, rate):
        self.spaces = [f"bench{os.getpid()}{end}" for end in "ab"]
        near, far = self.spaces
        for words in ([["netns", "add", near], ["netns", "add", far],
                       ["link", "add", "cable", "netns", near, "type", "veth", "peer", "name", "cable", "netns", far]] +
                      [["-n", space, *rest] for space, number in ((near, 1), (far, 2)) for rest in
                       (["addr", "add", f"10.98.0.{number}/24", "dev", "cable"], ["link", "set", "lo", "up"], ["link", "set", "cable", "up"])]):
            subprocess.run(["ip", *words], check=True)
        for space in self.spaces if rate else []:
            subprocess.run(["ip", "netns", "exec", space, "tc", "qdisc", "add", "dev", "cable", "root", "tbf", "rate", rate, "burst", "256kb",
                            "latency", "50ms"], check=True)
        agent = folder / "agent.sh"
        agent.write_text(f'#!/bin/sh\nshift\nexec ip netns exec {far} unshare --uts sh -c "hostname far; $*"\n')
        agent.chmod(0o755)
        self.words = ["ip", "netns", "exec", near, "unshare", "--uts", "sh", "-c", 'hostname near; exec "$@"', "sh", *MPIRUN, "--host",
                      "10.98.0.1,10.98.0.2", "--mca", "plm_rsh_agent", str(agent), "--mca", "btl", "tcp,self", "--mca", "oob_tcp_if_include",
                      "cable", "--mca", "btl_tcp_if_include", "cable"]

    def close(self):
        for space in self.spaces:
            subprocess.run(["ip", "netns", "del", space], check=False)


HOWS = {"buckets": [], "one sum a tensor": ["--bucket-bytes", "1", "--sparse-as-dense"]}


def probe_rate(begin, environment):
    done = subprocess.run([*begin, *RATE, "--threads", "1", "--bucket-bytes", "1GiB", "--json"], capture_output=True, text=True, env=environment, check=True)
    told = json.loads(done.stdout)
    return told["wire_bytes"] / told["communication_seconds"]


def run_ranks(begin, model, how, steps, folder, environment, rate):
    done = subprocess.run([*begin, *MODELS[model], "--threads", "1", "--steps", str(steps), "--trace", str(folder / "t.jsonl"), "--json", *HOWS[how]],
                          capture_output=True, text=True, env=environment, check=True)
    told = json.loads(done.stdout)
    traces = [folder / f"t.{rank}.jsonl" for rank in (0, 1)]
    sent = 1e3 * told["wire_bytes"] / rate
    return {"step ms": 1e3 * median(told), "first step ms": 1e3 * told["step_seconds"][0], "not hidden ms": max(map(exposed, traces)),
            "cannot be hidden ms": max(0, sent - max(map(hideable, traces))), "sent alone ms": sent, "messages": told["messages"],
            "resident MiB": max(map(int, re.findall(r"RSS (\d+)", done.stderr))) >> 10}


def run_ddp(python, model, steps, folder, environment):
    script = folder / "ddp.py"
    script.write_text(DDP)
    done = subprocess.run([python, "-m", "torch.distributed.run", "--nproc_per_node=2", script, model, str(steps)],
                          capture_output=True, text=True, env=environment, check=True)
    _, step, resident = re.search(r"(DDP) (\S+) (\d+)", done.stdout).groups()
    return {"step ms": 1e3 * float(step), "resident MiB": int(resident) >> 10}


def shown(name, numbers):
    numbers = sorted(numbers)
    middle = f"{name} {numbers[len(numbers) // 2]:.0f}"
    return middle if numbers[0] == numbers[-1] else f"{middle} ({numbers[0]:.0f} to {numbers[-1]:.0f})"


def main():
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("plimsoll")
    parse.add_argument("--cable", nargs="?", const="", default=None)
    parse.add_argument("--ddp")
    parse.add_argument("--models", default="resnet50,gpt2")
    parse.add_argument("--steps", type=int, default=6)
    parse.add_argument("--repeat", type=int, default=1)
    given = parse.parse_args()
    program = os.path.abspath(given.plimsoll)
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cable = Cable(folder, given.cable) if given.cable is not None else None
        try:
            begin = [*(cable.words if cable else MPIRUN), "-n", "2", "/usr/bin/time", "-f", "RSS %M", program, "run"]
            rate = probe_rate(begin, environment)
            print(f"the link: {rate / 1e6:.0f} MB/s", flush=True)
            for model in given.models.split(","):
                rows = collections.defaultdict(list)
                for turn in range(given.repeat):
                    for how in [*HOWS, *(["DistributedDataParallel"] if given.ddp and not model.endswith("-small") else [])]:
                        rows[how].append(run_ranks(begin, model, how, given.steps, folder, environment, rate) if how in HOWS
                                         else run_ddp(given.ddp, model, given.steps, folder, environment))
                        print(f"{turn + 1} of {given.repeat}: {model}, {how}: step {rows[how][-1]['step ms']:.0f} ms", file=sys.stderr, flush=True)
                for how, found in rows.items():
                    print(f"{model}, {how}: " + ", ".join(shown(name, [row[name] for row in found]) for name in found[0]), flush=True)
        finally:
            if cable:
                cable.close()


if __name__ == "__main__":
    sys.exit(main())
