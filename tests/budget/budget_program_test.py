"""Budgets as a user of the program meets them.

    budget_program_test.py PROGRAM FOLDER

Schedules of a DAG are replayed by a simulator of the documented format (docs/formats/dag.md) that knows
nothing of the planner. Runs that swap to a file are killed, interrupted and robbed of their disk.
"""

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

PROGRAM, FOLDER = sys.argv[1], Path(sys.argv[2])
SWAPPING = ["run", "mlp", "--batch", "512", "--budget", "70%", "--remedies", "swap",
            "--device", "cpu", "--deadline", "200ms", "--steps", "1000000"]


def plimsoll(*words, **how):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, **how)


def replay(graph, steps):
    """Peak bytes and seconds of a schedule; fails on a read of what is not there."""
    nodes = {node["name"]: node for node in graph["nodes"]}
    alive, run, now, peak, seconds = set(), set(), 0, 0, 0.0
    for step in steps:
        (kind, name), = step.items()
        node = nodes[name]
        if kind == "compute":
            assert set(node.get("inputs", [])) <= alive and name not in alive, step
            assert name not in run or node.get("recompute", True), step
            alive.add(name)
            run.add(name)
            now += node.get("bytes", 0)
            peak = max(peak, now + node.get("scratch", 0))
            seconds += node.get("seconds", 0)
        else:
            assert kind == "drop" and name in alive, step
            alive.remove(name)
            now -= node.get("bytes", 0)
    assert run == set(nodes)
    assert all(name in alive for name in nodes if nodes[name].get("keep"))
    return peak, seconds


def random_graph(seed):
    """Layers, one node that reads hundreds of others, and every corner of the format."""
    dice = random.Random(seed)
    nodes = []
    for i in range(dice.choice([1, 3, 40, 300])):
        node = {"name": f"n{i}", "seconds": dice.choice([0, 1e-3, 0.5]), "bytes": dice.choice([0, 1, 1000, 77777])}
        known = [other["name"] for other in nodes]
        if known:
            node["inputs"] = dice.sample(known[-12:], min(len(known), dice.randrange(4)))
        if dice.random() < 0.2:
            node["scratch"] = dice.randrange(5000)
        if dice.random() < 0.05:
            node["keep"] = True
        if dice.random() < 0.05:
            node["recompute"] = False
        nodes.append(node)
    nodes.append({"name": "all", "seconds": 1, "bytes": 8, "inputs": [node["name"] for node in nodes[::2]]})
    graph = {"nodes": nodes}
    if dice.random() < 0.5:
        graph["order"] = [node["name"] for node in nodes]
    if dice.random() < 0.5:
        dice.shuffle(nodes)
    return graph


class Dag(unittest.TestCase):
    def plan(self, graph, *words):
        file, out = FOLDER / "graph.json", FOLDER / "schedule.json"
        file.write_text(json.dumps(graph))
        out.unlink(missing_ok=True)
        done = plimsoll("plan", "--dag", file, "-o", out, "--json", *words)
        return done, json.loads(done.stdout) if done.stdout else None, out

    def test_schedules_replay_within_the_budget(self):
        fitted = 0
        for seed in range(12):
            graph = random_graph(seed)
            for order in ("given", "search"):
                with self.subTest(seed=seed, order=order):
                    done, answer, out = self.plan(graph, "--budget", f"{80 + 2 * seed}%", "--deadline", "0.1s",
                                                  "--order", order)
                    self.assertIn(done.returncode, (0, 4, 5), done.stderr)
                    if done.returncode != 0:
                        self.assertGreater(answer["smallest_budget_bytes"], answer["budget_bytes"])
                        self.assertFalse(out.exists())
                        continue
                    peak, seconds = replay(graph, json.loads(out.read_text())["steps"])
                    self.assertLessEqual(peak, answer["budget_bytes"])
                    self.assertEqual(peak, answer["peak_bytes"])
                    self.assertAlmostEqual(seconds, answer["predicted_seconds"], delta=1e-9 * seconds)
                    fitted += 1
        self.assertGreaterEqual(fitted, 8)  # whatever the clock: the first plans are made before it is looked at

    def test_a_budget_below_the_floor_names_the_wall(self):
        done, answer, _ = self.plan({"nodes": [{"name": "a", "bytes": 100}, {"name": "b", "bytes": 50, "inputs": ["a"]}]},
                                    "--budget", "149")
        self.assertEqual(done.returncode, 4)
        self.assertEqual(answer["status"], "does_not_fit")
        self.assertEqual(answer["smallest_budget_bytes"], 150)
        self.assertEqual({entry["name"] for entry in answer["wall"]}, {"a", "b"})

    def test_an_interrupt_keeps_the_best_so_far(self):
        dice = random.Random(7)
        names = [f"n{i}" for i in range(400)]
        graph = {"nodes": [{"name": name, "seconds": dice.random(), "bytes": dice.randrange(1, 100),
                            "inputs": dice.sample(names[max(0, i - 40):i], min(i, 3))} for i, name in enumerate(names)]}
        file, out = FOLDER / "long.json", FOLDER / "long_schedule.json"
        file.write_text(json.dumps(graph))
        with subprocess.Popen([PROGRAM, "plan", "--dag", file, "--budget", "85%", "--deadline", "600s", "-o", out, "--json"],
                              stdout=subprocess.PIPE, text=True) as search:
            with self.assertRaises(subprocess.TimeoutExpired):
                search.wait(timeout=1)
            search.send_signal(signal.SIGINT)
            answer = json.loads(search.communicate()[0])
            self.assertEqual(search.returncode, 0)
        self.assertEqual((answer["status"], answer["interrupted"]), ("feasible", True))
        peak, _ = replay(graph, json.loads(out.read_text())["steps"])
        self.assertLessEqual(peak, answer["budget_bytes"])


class Lossy(unittest.TestCase):
    def test_every_form_runs_and_says_what_it_lost(self):
        errors = {}
        for option, form in (("--lossy", "fp16"), ("--lossy=bf16", "bf16"), ("--lossy=fp8", "fp8-e4m3"), ("--lossy=int8", "int8")):
            plan = FOLDER / "lossy.json"
            made = plimsoll("plan", option, "mlp", "--strategy", "encode", "-o", plan, "--json")
            self.assertEqual(made.returncode, 0, made.stderr)
            self.assertEqual(json.loads(made.stdout)["lossy"], [form])
            done = plimsoll("run", plan, "--steps", "2", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            answer = json.loads(done.stdout)
            took, lost = answer["encodings"][form], answer["encoding_error"][form]
            self.assertFalse(took["lossless"])
            self.assertLess(took["encoded_bytes"], 0.55 * took["plain_bytes"])
            self.assertEqual(lost["tensors"], len(lost["by_tensor"]))
            self.assertGreater(lost["rms"], 0)
            self.assertGreaterEqual(lost["max"], lost["rms"])
            self.assertEqual(lost["max"], max(row["max"] for row in lost["by_tensor"]))
            errors[form] = lost["relative_rms"]
            self.assertIn("lossy: error at most", plimsoll("run", plan, "--steps", "1").stdout)
        self.assertLess(errors["fp16"], errors["bf16"])
        self.assertLess(errors["bf16"], errors["fp8-e4m3"])

    def test_a_form_is_a_word_behind_the_option_and_a_model_is_not(self):
        words = ("--strategy", "encode", "--json")
        for line in (("mlp", "--lossy", "int8"), ("--lossy", "int8", "mlp"), ("mlp", "--lossy=int8"), ("--lossy", "int8,fp16", "mlp")):
            self.assertEqual(json.loads(plimsoll("plan", *line, *words).stdout)["lossy"], ["int8"], line)
        for line in (("mlp", "--lossy"), ("--lossy", "mlp"), ("mlp", "--lossy", "fp16")):
            self.assertEqual(json.loads(plimsoll("plan", *line, *words).stdout)["lossy"], ["fp16"], line)
        wrong = plimsoll("plan", "mlp", "--lossy=fp4")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("fp16, bf16, fp8-e4m3", wrong.stderr)

    def test_a_dag_names_forms_of_its_own(self):
        def form(name, size):
            return {"name": name, "bytes": size, "encode_seconds": 0.01, "decode_seconds": 0.01, "lossless": False}
        # At the peak a waits beside b and c: 500 bytes, 450 with a as half, 410 as tiny.
        nodes = [{"name": "a", "bytes": 100, "encodings": [form("half", 50), form("tiny", 10)], "recompute": False},
                 {"name": "b", "bytes": 100, "inputs": ["a"], "recompute": False}, {"name": "c", "bytes": 300, "inputs": ["b"], "recompute": False},
                 {"name": "d", "bytes": 100, "inputs": ["c"], "recompute": False}, {"name": "e", "bytes": 10, "inputs": ["a", "d"]}]
        file = FOLDER / "forms.json"
        file.write_text(json.dumps({"nodes": nodes, "order": [node["name"] for node in nodes]}))

        def fits(budget, *lossy):
            done = plimsoll("plan", "--dag", file, "--remedies", "encode", "--budget", budget, "--deadline", "0.2s", "--json", *lossy)
            self.assertIn(done.returncode, (0, 4, 5), done.stderr)
            return done.returncode == 0

        self.assertTrue(fits("410", "--lossy"))
        self.assertTrue(fits("410", "--lossy=tiny,half"))
        self.assertFalse(fits("410", "--lossy=half"))
        self.assertTrue(fits("450", "--lossy=half"))
        self.assertFalse(fits("450"))


class SwapFile(unittest.TestCase):
    def setUp(self):
        self.folder = FOLDER / "swap"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()

    def start(self):
        """A run that swaps, and its file without a name once steps are under way."""
        run = subprocess.Popen([PROGRAM, *SWAPPING, "--swap-file", str(self.folder), "--json"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        descriptors = Path(f"/proc/{run.pid}/fd")
        while run.poll() is None:
            for descriptor in descriptors.iterdir():
                try:
                    if os.readlink(descriptor).startswith(str(self.folder)) and os.stat(descriptor).st_size > 0:
                        return run, descriptor
                except FileNotFoundError:
                    pass
            time.sleep(0.01)
        self.fail(run.communicate()[1])

    def test_killed_and_interrupted_runs_leave_nothing(self):
        for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=how):
                run, _ = self.start()
                run.send_signal(how)
                output, _ = run.communicate()
                self.assertNotEqual(run.returncode, 0)
                self.assertEqual(output, "")
                self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_disk_that_fails_in_mid_step_ends_the_run(self):
        run, descriptor = self.start()
        with open(descriptor, "r+b") as disk:
            while run.poll() is None:  # until a copy out and its copy in have one of these between them
                disk.truncate(0)
        output, message = run.communicate()
        self.assertEqual(run.returncode, 6, message)
        self.assertIn("swap file", message)
        self.assertEqual(set(json.loads(output)), {"schema", "error", "code"})  # no losses
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_full_disk_is_said_before_the_first_step(self):
        def little_room():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 12, 1 << 12))

        done = plimsoll(*SWAPPING, "--swap-file", self.folder, "--json", preexec_fn=little_room)
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn("no space", done.stderr)
        self.assertEqual(set(json.loads(done.stdout)), {"schema", "error", "code"})
        self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    unittest.main(argv=[sys.argv[0]])
