#!/usr/bin/env python3
"""Ranks that are processes, as a user of the program starts them, and what happens when one fails.

    ranks_test.py PLIMSOLL WORK_FOLDER MPIRUN OPTION... [--slow]

OPTIONs are given to mpirun. Losses are compared with one process that has all examples; messages are counted by
Open MPI's own monitoring, not by the program. The slow tests kill a rank at ten random moments, and put ranks into
network namespaces whose link is slow, delays packets, loses some, and is cut.
"""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

SLOW = "--slow" in sys.argv
PROGRAM = os.path.abspath(sys.argv[1])
WORK = pathlib.Path(sys.argv[2]).resolve()
MPIRUN = [word for word in sys.argv[3:] if word != "--slow"]
MLP = ["mlp", "--batch", "8", "--threads", "1"]
BOOKKEEPING = 64 << 10  # bytes outside the arena that belong to no tensor
WITHIN = 10  # seconds, from a fault to the end of all ranks

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored where this runs under nohup


def ranks_of(launcher):
    """The processes of the ranks, by rank, once they run steps."""
    found = {}
    for folder in pathlib.Path("/proc").iterdir():
        try:
            words = (folder / "environ").read_bytes().split(b"\0")
            program = os.readlink(folder / "exe")
        except (OSError, PermissionError):
            continue
        if program != PROGRAM or f"RANKS_TEST={launcher}".encode() not in words:
            continue
        for word in words:
            if word.startswith(b"OMPI_COMM_WORLD_RANK="):
                found[int(word.split(b"=")[1])] = int(folder.name)
    return found


class Ranks(unittest.TestCase):
    def setUp(self):
        self.folder = WORK / self.id().split(".")[-1]
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.mark = f"{os.getpid()}.{random.getrandbits(40)}"
        self.environment = dict(os.environ, RANKS_TEST=self.mark, OMP_NUM_THREADS="1")

    def call(self, words):
        return subprocess.run(list(map(str, words)), cwd=self.folder, env=self.environment, capture_output=True,
                              text=True, timeout=120)

    def told(self, *words):
        result = self.call([PROGRAM, "run", *words, "--json"])
        self.assertEqual(result.returncode, 0, (words, result.stderr))
        return json.loads(result.stdout)

    def same(self, a, b, tolerance=1e-5):
        self.assertEqual(len(a), len(b))
        for x, y in zip(a, b):
            self.assertAlmostEqual(x, y, delta=tolerance * max(1, abs(x)))

    def begun(self, *words, starter=()):
        """A run of many steps that has begun."""
        run = subprocess.Popen([*starter, PROGRAM, "run", *MLP, "--steps", "1000000", *words], cwd=self.folder,
                               env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(run.kill)
        for _ in range(3):
            self.assertIn("step", run.stdout.readline())
        return run

    def ends_within(self, run, wanted):
        start = time.monotonic()
        out, errors = run.communicate(timeout=60)
        seconds = time.monotonic() - start
        self.assertLess(seconds, WITHIN, errors)
        self.assertNotEqual(run.returncode, 0)
        said = [line for line in errors.splitlines() if line.startswith("plimsoll:")]
        self.assertEqual(len(said), 1, errors)
        self.assertRegex(said[0], wanted)
        self.assertEqual(ranks_of(self.mark), {})

    def test_two_and_four_ranks_train_as_one(self):
        joined = self.told("mlp", "--batch", 16, "--steps", 5, "--threads", 1)
        for ranks in (2, 4):
            told = self.told("mlp", "--batch", 16 // ranks, "--steps", 5, "--ranks", ranks)
            self.same(told["losses"], joined["losses"])
            self.assertEqual(told["ranks"], ranks)
            self.assertEqual(told["start_messages"], 2)
            self.assertEqual(len(told["peak_bytes_by_rank"]), ranks)
            self.assertLessEqual(max(told["peak_bytes_by_rank"]), told["planned_peak_bytes"])

    def test_batch_norm_takes_the_examples_of_all_ranks_when_asked(self):
        joined = self.told("resnet18", "--image", 32, "--batch", 8, "--steps", 2, "--threads", 1)["losses"]
        ranks = ["resnet18", "--image", 32, "--batch", 4, "--steps", 2, "--ranks", 2]
        self.same(self.told(*ranks, "--sync-batch-norm")["losses"], joined, 1e-4)
        self.assertGreater(abs(self.told(*ranks)["losses"][0] - joined[0]), 1e-4 * joined[0])

    def test_fp64_agrees_to_ten_digits(self):
        joined = self.told("mlp", "--batch", 4, "--width", 32, "--steps", 3, "--dtype", "fp64", "--threads", 1)
        told = self.told("mlp", "--batch", 2, "--width", 32, "--steps", 3, "--dtype", "fp64", "--ranks", 2)
        self.same(told["losses"], joined["losses"], 1e-10)

    def test_under_mpirun(self):
        result = self.call([*MPIRUN, "-n", 2, PROGRAM, "run", *MLP, "--json"])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout)["ranks"], 2)

    def test_srun_without_mpi_is_named(self):
        self.environment["SLURM_STEP_NUM_TASKS"] = "2"
        result = self.call([PROGRAM, "run", *MLP, "--ranks", 2])
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("srun --mpi=pmix", result.stderr)
        alone = self.call([PROGRAM, "run", *MLP, "--steps", 1])
        self.assertEqual(alone.returncode, 0, alone.stderr)
        self.assertIn("srun started 2 tasks without MPI", alone.stderr)
        # with MPI's own variables they are ranks
        told = self.call([*MPIRUN, "-n", 2, "-x", "SLURM_STEP_NUM_TASKS", PROGRAM, "run", *MLP, "--steps", 1, "--json"])
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertEqual(json.loads(told.stdout)["ranks"], 2)

    def test_fixed_order_gives_the_same_bits_whatever_the_buckets(self):
        a = self.told(*MLP, "--ranks", 3, "--bucket-bytes", 1)
        b = self.told(*MLP, "--ranks", 3, "--reduction", "fixed", "--bucket-bytes", "1GiB")
        self.same(self.told(*MLP, "--ranks", 3, "--reduction", "any")["losses"], b["losses"])
        self.assertEqual(a["losses"], b["losses"])
        self.assertEqual(b["messages"], 1)
        self.assertGreater(a["messages"], 4)

    def test_a_budget_is_kept_by_every_rank(self):
        told = self.told("resnet18", "--batch", 16, "--image", 64, "--optimizer", "sgd", "--budget", "85%", "--steps", 1,
                         "--ranks", 2, "--device", "cpu", "--deadline", "1s", "--measure")
        self.assertLessEqual(told["planned_peak_bytes"], told["budget_bytes"])
        for peak in told["peak_bytes_by_rank"]:
            self.assertLessEqual(peak, told["budget_bytes"])

    def test_traces_are_each_ranks_own(self):
        self.told(*MLP, "--ranks", 2, "--steps", 1, "--trace", "run.jsonl")
        for rank in (0, 1):
            self.assertIn("all_reduce", (self.folder / f"run.{rank}.jsonl").read_text())

    def test_checkpoints_resume_with_the_same_losses(self):
        whole = self.told(*MLP, "--ranks", 2, "--steps", 4, "--data", "fresh")
        self.told(*MLP, "--ranks", 2, "--steps", 2, "--data", "fresh", "--save", "w.npz")
        rest = self.told(*MLP, "--ranks", 2, "--steps", 2, "--data", "fresh", "--resume", "w.npz")
        self.assertEqual(rest["losses"], whole["losses"][2:])

    def test_shared_state_trains_as_whole_state_in_what_was_planned(self):
        small = ["gpt2", "--layers", 2, "--width", 64, "--vocab", 500, "--seq", 32, "--dropout", 0, "--batch", 2]
        whole = self.told(*small, "--ranks", 2, "--steps", 3)
        before = whole["planned_peak_bytes"]
        for shard in ("optimizer", "optimizer,gradients", "optimizer,gradients,weights"):
            told = self.told(*small, "--ranks", 2, "--steps", 3, "--shard", shard, "--measure")
            self.same(told["losses"], whole["losses"])
            self.assertTrue(told["measured"])
            self.assertLessEqual(told["outside_bytes"], BOOKKEEPING, shard)
            for peak in told["peak_bytes_by_rank"]:
                self.assertLessEqual(peak, told["planned_peak_bytes"] + BOOKKEEPING, shard)
            self.assertLess(told["planned_peak_bytes"], before)
            # what is scattered and gathered is what an all_reduce sends; weights are gathered twice
            self.assertLess(told["wire_bytes"], 1.01 * whole["wire_bytes"] * (2.01 if "weights" in shard else 1))

    def test_checkpoints_of_shared_state_are_whole(self):
        whole = self.told(*MLP, "--ranks", 2, "--steps", 4, "--data", "fresh")
        for shard in ("optimizer,gradients", "optimizer,gradients,weights"):
            self.told(*MLP, "--ranks", 2, "--steps", 2, "--data", "fresh", "--shard", shard, "--save", "w.npz")
            for how in (["--shard", shard], ["--shard", "optimizer"], []):
                rest = self.told(*MLP, "--ranks", 2, "--steps", 2, "--data", "fresh", "--resume", "w.npz", *how)
                self.same(rest["losses"], whole["losses"][2:])
            other = self.told("mlp", "--batch", 4, "--ranks", 4, "--steps", 2, "--data", "fresh", "--resume", "w.npz",
                              "--shard", shard)
            self.same(other["losses"], whole["losses"][2:])

    def test_a_large_tensor_is_shared_in_pieces(self):
        small = ["gpt2", "--layers", 1, "--width", 64, "--vocab", 500, "--seq", 16, "--dropout", 0, "--batch", 2, "--data", "fresh"]
        whole = self.told(*small, "--ranks", 2, "--steps", 4)
        for how in (["--shard", "optimizer,gradients"], ["--shard", "optimizer,gradients,weights"],
                    ["--shard", "optimizer,gradients", "--amp", "bf16"]):
            cut = [*how, "--ranks", 2, "--bucket-bytes", "16KiB"]
            told = self.told(*small, *cut, "--steps", 4, "--measure", "--trace", "run.jsonl")
            self.same(told["losses"], whole["losses"], 0.05 if "--amp" in how else 1e-5)
            self.assertGreaterEqual((self.folder / "run.0.jsonl").read_text().count("transformer/gather_grad"), 4 * 7, how)
            for peak in told["peak_bytes_by_rank"]:
                self.assertLessEqual(peak, told["planned_peak_bytes"] + BOOKKEEPING, how)
            if "--amp" in how:
                continue
            self.told(*small, *cut, "--steps", 2, "--save", "w.npz")
            for again in (cut, ["--ranks", 2]):
                rest = self.told(*small, *again, "--steps", 2, "--resume", "w.npz")
                self.same(rest["losses"], whole["losses"][2:])

    def test_ranks_are_drawn_side_by_side(self):
        self.told(*MLP, "--ranks", 2, "--steps", 2, "--trace", "run.jsonl", "--shard", "optimizer")
        viewed = self.call([PROGRAM, "view", "run.0.jsonl", "run.1.jsonl", "-o", "r.html", "--json"])
        self.assertEqual(viewed.returncode, 0, viewed.stderr)
        self.assertEqual([f["title"] for f in json.loads(viewed.stdout)["findings"]], ["rank 0", "rank 1"])
        self.assertIn('"exposed_seconds"', (self.folder / "r.html").read_text())

    def test_errors_are_said_once_with_their_code(self):
        result = self.call([PROGRAM, "run", "no_such_model", "--ranks", 2])
        self.assertEqual(result.returncode, 2)
        self.assertEqual(result.stderr.count("plimsoll:"), 1, result.stderr)
        for words, what in ((["--ranks", "2", "--infer"], "--infer"), (["--ranks", "2", "--tune", "1"], "--tune"),
                            (["--ranks", "2", "--reduction", "ring"], "ring"),
                            (["--ranks", "2", "--shard", "everything"], "everything"),
                            (["--ranks", "2", "--shard", "auto"], "--budget"), (["--shard", "optimizer"], "--ranks"),
                            (["--ranks", "2", "--bucket-bytes", "-1"], "-1"), (["--ranks", "100000"], "on paper")):
            result = self.call([PROGRAM, "run", *MLP, *words])
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertEqual(result.stderr.count("plimsoll:"), 1, result.stderr)
            self.assertIn(what, result.stderr)

    def test_a_rank_with_another_model_is_named(self):
        result = self.call([*MPIRUN, "-n", 1, PROGRAM, "run", *MLP, ":", "-n", 1, PROGRAM, "run", "mlp", "--batch", 4])
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("rank 1 runs 'mlp'", result.stderr)

    def test_a_rank_with_another_plan_is_named(self):
        for name, bucket in (("small.json", 1), ("large.json", "1GiB")):
            made = self.call([PROGRAM, "plan", *MLP, "--ranks", 2, "--bucket-bytes", bucket, "-o", name])
            self.assertEqual(made.returncode, 0, made.stderr)
        run = [PROGRAM, "run", "small.json", "--steps", 1]
        same = self.call([*MPIRUN, "-n", 2, *run])
        self.assertEqual(same.returncode, 0, same.stderr)
        other = self.call([*MPIRUN, "-n", 1, *run, ":", "-n", 1, PROGRAM, "run", "large.json", "--steps", 1])
        self.assertEqual(other.returncode, 3, other.stderr)
        self.assertEqual(other.stderr.count("plimsoll:"), 1, other.stderr)
        self.assertIn("rank 1 runs 'large.json'", other.stderr)

    def test_a_killed_rank_ends_all(self):
        run = self.begun("--ranks", "2")
        os.kill(ranks_of(self.mark)[1], signal.SIGKILL)
        self.ends_within(run, r"rank 1 .* signal 9")

    def test_a_stopped_rank_ends_all(self):
        run = self.begun("--ranks", "2")
        os.kill(ranks_of(self.mark)[1], signal.SIGSTOP)
        self.ends_within(run, r"rank 1 .* (not been heard of|hangs)")

    def test_no_rank_outlives_the_command(self):
        for how in (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
            with self.subTest(signal=how):
                run = self.begun("--ranks", "2")
                run.send_signal(how)
                run.communicate(timeout=WITHIN)
                end = time.monotonic() + WITHIN
                while ranks_of(self.mark) and time.monotonic() < end:
                    time.sleep(0.05)
                self.assertEqual(ranks_of(self.mark), {})
                self.assertIn(run.returncode, (-how, 128 + how))

    def test_nohup_goes_on_when_the_terminal_closes(self):
        run = self.begun("--ranks", "2", starter=["nohup"])
        run.send_signal(signal.SIGHUP)
        for _ in range(20):  # more than a pipe had when the signal came
            self.assertIn("step", run.stdout.readline())
        time.sleep(0.5)
        self.assertEqual(len(ranks_of(self.mark)), 2)
        run.terminate()
        run.communicate(timeout=WITHIN)

    def test_ctrl_c_saves_a_whole_checkpoint(self):
        run = self.begun("--ranks", "2", "--save", "w.npz")
        run.send_signal(signal.SIGINT)
        out, errors = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 0, errors)
        self.assertIn("stopped after step", out)
        self.told(*MLP, "--ranks", 2, "--steps", 1, "--resume", "w.npz")


class Wire(Ranks):
    """What Open MPI itself counted."""

    def sent(self, steps, *model):
        """What rank 0 sent to the other one: messages and bytes of collectives, and how many broadcasts it began."""
        prefix = self.folder / f"monitoring{steps}"
        words = [*MPIRUN, "-n", 2, "--mca", "pml_monitoring_enable", 2, "--mca", "pml_monitoring_enable_output", 3,
                 "--mca", "pml_monitoring_filename", prefix, PROGRAM, "run", *model, "--steps", steps, "--json"]
        result = self.call(words)
        self.assertEqual(result.returncode, 0, result.stderr)
        messages, collective, broadcasts = 0, 0, 0
        for line in (self.folder / f"monitoring{steps}.0.prof").read_text().splitlines():
            fields = line.split()
            if fields and fields[0] in ("E", "I") and fields[2] == "1":
                collective += int(fields[3])
            if fields and fields[0] == "I":
                messages += int(fields[5])
            if fields and fields[0] == "O2A":
                broadcasts += int(fields[4])
        return messages, collective, broadcasts, json.loads(result.stdout)

    def test_bytes_on_the_wire_are_a_rings(self):
        _, few, _, _ = self.sent(2, *MLP)
        _, many, _, told = self.sent(6, *MLP)
        self.assertGreater(few, 0)
        in_a_step = (many - few) / 4
        self.assertLess(abs(in_a_step - told["wire_bytes"]), 0.01 * told["wire_bytes"] + 2000)

    def test_resnet50_takes_twelve_messages_and_one_broadcast_for_a_dtype(self):
        small = ["resnet50", "--batch", 1, "--image", 32, "--threads", 1]
        few_messages, few, _, _ = self.sent(1, *small)
        many_messages, many, broadcasts, told = self.sent(3, *small)
        messages = (many_messages - few_messages) / 2
        self.assertGreater(messages, 2)
        self.assertLessEqual(messages, 12)  # of 161 tensors, whose sums would be 322
        gradients = 4 * 25_557_032  # bytes; a ring of two sends 2 (n - 1) / n of them
        self.assertLess((many - few) / 2, 1.01 * gradients)
        self.assertGreater((many - few) / 2, 0.99 * gradients)
        self.assertEqual(told["start_messages"], 2)  # floats, and the counter of steps
        self.assertEqual(broadcasts, 2 + 2)  # before them the length of the plan, and the plan

    def test_rows_of_a_table_are_sent_instead_of_the_table(self):
        small = ["bert", "--layers", 1, "--width", 64, "--vocab", 20000, "--seq", 16, "--dropout", 0, "--batch", 1, "--steps", 2]
        rows, whole = self.told(*small, "--ranks", 2), self.told(*small, "--ranks", 2, "--sparse-as-dense")
        self.same(rows["losses"], whole["losses"])
        self.assertLess(rows["wire_bytes"], 1.01 * whole["wire_bytes"])
        tied = ["gpt2", *small[1:]]
        early, late = self.told(*tied, "--ranks", 2), self.told(*tied, "--ranks", 2, "--sparse-as-dense")
        self.same(early["losses"], late["losses"])
        self.assertLess(early["wire_bytes"], 1.01 * late["wire_bytes"])
        for told in (rows, early):
            self.assertLessEqual(max(told["peak_bytes_by_rank"]), told["planned_peak_bytes"])


class SlowRanks(Ranks):
    def test_killed_at_random_moments(self):
        seed = random.randrange(1 << 30)
        print(f"seed {seed}")
        moments = random.Random(seed)
        for _ in range(10):
            run = self.begun("--ranks", "2")
            time.sleep(moments.uniform(0, 1))
            victim = moments.randrange(2)
            os.kill(ranks_of(self.mark)[victim], signal.SIGKILL)
            self.ends_within(run, f"rank {victim} .* signal 9")

    def test_killed_while_it_starts(self):
        for delay in (0.1, 0.3, 0.5):
            run = subprocess.Popen([PROGRAM, "run", *MLP, "--ranks", "2", "--steps", "1000000"], cwd=self.folder,
                                   env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            time.sleep(delay)
            found = ranks_of(self.mark)
            if 1 not in found:
                run.terminate()
                run.communicate(timeout=60)
                continue
            os.kill(found[1], signal.SIGKILL)
            self.ends_within(run, "rank 1 .* signal 9")


class SlowNetwork(Ranks):
    """Two machines: network namespaces with a slow cable between them."""

    AGENT = """#!/bin/sh
shift
exec ip netns exec {far} unshare --uts sh -c "hostname far; $*"
"""

    def setUp(self):
        super().setUp()
        self.near, self.far = f"plimsoll{os.getpid()}n", f"plimsoll{os.getpid()}f"
        for space in (self.near, self.far):
            self.must("ip", "netns", "add", space)
            self.addCleanup(self.call, ["ip", "netns", "del", space])
        self.must("ip", "link", "add", "cable", "netns", self.near, "type", "veth", "peer", "name", "cable", "netns", self.far)
        for space, address in ((self.near, "10.97.0.1/24"), (self.far, "10.97.0.2/24")):
            self.must("ip", "-n", space, "addr", "add", address, "dev", "cable")
            self.must("ip", "-n", space, "link", "set", "lo", "up")
            self.must("ip", "-n", space, "link", "set", "cable", "up")
        agent = self.folder / "agent.sh"
        agent.write_text(self.AGENT.format(far=self.far))
        agent.chmod(0o755)

    def must(self, *words):
        result = self.call(words)
        self.assertEqual(result.returncode, 0, (words, result.stderr))

    def inside(self, space, *words):
        self.must("ip", "netns", "exec", space, *words)

    def words(self, *words):
        return ["ip", "netns", "exec", self.near, "unshare", "--uts", "sh", "-c", "hostname near; exec \"$@\"", "sh", *MPIRUN,
                "--host", "10.97.0.1,10.97.0.2", "-n", "2", "-x", "RANKS_TEST", "--mca", "plm_rsh_agent", self.folder / "agent.sh",
                "--mca", "btl", "tcp,self", "--mca", "oob_tcp_if_include", "cable", "--mca", "btl_tcp_if_include", "cable",
                PROGRAM, "run", *words]

    def losses(self):
        result = self.call(self.words(*MLP, "--steps", 5, "--json"))
        self.assertEqual(result.returncode, 0, result.stderr)
        told = json.loads(result.stdout)
        return told["losses"], told["communication_seconds"]

    def test_a_slow_cable_only_costs_time(self):
        joined = self.told("mlp", "--batch", 16, "--steps", 5, "--threads", 1)["losses"]
        fast, fast_seconds = self.losses()
        self.same(fast, joined)
        for space in (self.near, self.far):
            self.inside(space, "tc", "qdisc", "add", "dev", "cable", "root", "tbf", "rate", "100mbit", "burst", "64kb", "latency", "50ms")
        slow, slow_seconds = self.losses()
        self.assertEqual(slow, fast)
        self.assertGreater(slow_seconds, fast_seconds)

    def replace_cable(self, delay_ms, lost_in_a_thousand):
        self.must("ip", "-n", self.near, "link", "del", "cable")
        cable = subprocess.Popen([sys.executable, pathlib.Path(__file__).with_name("lossy_cable.py"), self.near, self.far,
                                  str(delay_ms), str(lost_in_a_thousand)], stdout=subprocess.PIPE, text=True)
        self.addCleanup(cable.stdout.close)
        self.addCleanup(cable.wait)
        self.addCleanup(cable.kill)
        self.assertEqual(cable.stdout.readline(), "cable\n")
        for space, number in ((self.near, 1), (self.far, 2)):
            self.must("ip", "-n", space, "addr", "add", f"10.97.0.{number}/24", "dev", "cable")
            self.must("ip", "-n", space, "link", "set", "cable", "up")

    def test_delay_only_costs_time(self):
        fast, _ = self.losses()
        self.replace_cable(5, 0)
        slow, seconds = self.losses()
        self.assertEqual(slow, fast)
        self.assertGreater(seconds, 2 * 0.005)  # there and back, at least

    def test_lost_packets_only_cost_time(self):
        fast, _ = self.losses()
        self.replace_cable(0.2, 10)
        self.assertEqual(self.losses()[0], fast)

    def test_a_cut_cable_ends_all_with_one_line(self):
        run = subprocess.Popen(list(map(str, self.words(*MLP, "--steps", "1000000"))), cwd=self.folder, env=self.environment,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(run.kill)
        for _ in range(3):
            self.assertIn("step", run.stdout.readline())
        self.must("ip", "-n", self.near, "link", "set", "cable", "down")
        start = time.monotonic()
        while 0 in ranks_of(self.mark) and time.monotonic() - start < 30:
            time.sleep(0.2)
        self.assertLess(time.monotonic() - start, WITHIN)
        run.kill()
        # Open MPI's daemon beyond the cut goes on waiting for mpirun, with our pipe in its hands.
        inside = subprocess.run(["ip", "netns", "pids", self.far], capture_output=True, text=True).stdout
        for process in map(int, inside.split()):
            os.kill(process, signal.SIGKILL)
        _, errors = run.communicate(timeout=60)
        self.assertRegex(errors, r"plimsoll: rank 1 on far (has not been heard of|hangs)")


def load_tests(loader, _tests, _pattern):
    suite = unittest.TestSuite()
    for case in ((SlowRanks, SlowNetwork) if SLOW else (Ranks, Wire)):
        names = [name for name in vars(case) if name.startswith("test_")]
        suite.addTests(case(name) for name in names)
    return suite


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=2)
