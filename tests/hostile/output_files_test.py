"""Output files as shells, links, FIFOs, full disks and signals meet them.

    output_files_test.py PROGRAM FOLDER

The program writes every file through one place (base/output_file.h); every kind of output is tried here, so that one
that goes another way is noticed.
"""

import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
import unittest
import zipfile
from pathlib import Path

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored where this runs under nohup

PROGRAM, FOLDER = str(Path(sys.argv[1]).resolve()), Path(sys.argv[2])
RUN = ["run", "mlp", "--steps", "1", "--threads", "1"]
CSV = "id,lower,upper,size\na,0,2,64\nb,1,3,64\n"


def plimsoll(*words, **how):
    return subprocess.run([PROGRAM, *map(str, words)], cwd=FOLDER, capture_output=True, text=True, **how)


def left_behind():
    return [name for name in os.listdir(FOLDER) if name.endswith(".part")]


def bytes_in_parts():
    """Of files that are being written; -1: there is none."""
    most = -1
    for name in left_behind():
        try:
            most = max(most, os.stat(FOLDER / name).st_size)
        except FileNotFoundError:  # renamed meanwhile
            pass
    return most


# Every way to name an output; {} is its name, which is given the ending.
OUTPUTS = [
    ("plan.json", ["plan", "mlp", "-o", "{}"]),
    ("sweep.json", ["plan", "mlp", "--sweep", "-o", "{}"]),
    ("dag.json", ["plan", "--dag", "in_dag.json", "--budget", "100", "-o", "{}"]),
    ("family.json", ["plan", "mlp", "--sizes", "batch=1..2", "-o", "{}"]),
    ("mlp.graph", ["graph", "mlp", "-o", "{}"]),
    ("mlp.dot", ["graph", "mlp", "--dot", "-o", "{}"]),
    ("mlp.onnx", ["graph", "mlp", "--infer", "-o", "{}"]),
    ("report.html", ["view", "mlp", "-o", "{}"]),
    ("report.svg", ["view", "mlp", "--svg", "{}"]),
    ("report.png", ["view", "mlp", "--png", "{}"]),
    ("diff.html", ["diff", "in_plan.json", "in_plan.json", "-o", "{}"]),
    ("trace.jsonl", [*RUN, "--trace", "{}"]),
    ("chrome.json", [*RUN, "--chrome-trace", "{}"]),
    ("weights.npz", [*RUN, "--save", "{}"]),
    ("outputs.npz", [*RUN, "--infer", "--random", "--outputs", "{}"]),
    ("converted.pickle", ["convert", "in_trace.jsonl", "-o", "{}"]),
    ("converted.json", ["convert", "in_trace.jsonl", "-o", "{}"]),
    ("converted.jsonl.gz", ["convert", "in_trace.jsonl", "-o", "{}"]),
    ("packing.csv", ["pack", "in.csv", "-o", "{}"]),
    ("packing.json", ["pack", "in.csv", "-o", "{}"]),
    ("small.plim", ["weights", "in_weights.npz", "-o", "{}", "--form", "q8_0"]),
    ("plain.safetensors", ["weights", "in_weights.npz", "-o", "{}"]),
    ("again.npz", ["weights", "in_weights.npz", "-o", "{}"]),
    ("problem.csv", ["pack", "--generate", "random", "-n", "20", "-o", "{}"]),
]


class OutputFiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)
        (FOLDER / "in.csv").write_text(CSV)
        (FOLDER / "in_dag.json").write_text(json.dumps({"nodes": [{"name": "a", "bytes": 8, "seconds": 1},
                                                                  {"name": "b", "bytes": 8, "seconds": 1, "inputs": ["a"]}]}))
        for words in (["plan", "mlp", "-o", "in_plan.json"], [*RUN, "--trace", "in_trace.jsonl"], [*RUN, "--save", "in_weights.npz"]):
            done = plimsoll(*words)
            assert done.returncode == 0, done.stderr

    def succeeds(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def refused(self, done, *words, code=3):
        self.assertEqual(done.returncode, code, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        return done

    def test_every_output_keeps_links_and_modes(self):
        for name, words in OUTPUTS:
            with self.subTest(name):
                real, link = FOLDER / ("real_" + name), FOLDER / ("link_" + name)
                real.write_text("old")
                real.chmod(0o640)
                link.symlink_to(real.name)
                self.succeeds(plimsoll(*[word.format(link.name) for word in words]))
                self.assertTrue(link.is_symlink())
                self.assertEqual(stat.S_IMODE(real.stat().st_mode), 0o640)
                self.assertNotIn(real.read_bytes(), (b"old", b""))
        self.assertEqual(left_behind(), [])

    def test_every_output_obeys_the_umask(self):
        for name, words in OUTPUTS:
            with self.subTest(name):
                path = FOLDER / ("umask_" + name)
                self.succeeds(plimsoll(*[word.format(path.name) for word in words], umask=0o077))
                self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)

    def test_every_wrong_name_is_said_before_the_work(self):
        for name, words in OUTPUTS:
            with self.subTest(name):
                done = self.refused(plimsoll(*[word.format("no/where_" + name) for word in words]), "no/where_" + name, "cannot write")
                self.assertEqual(done.stdout, "")

    def test_a_fifo_gets_the_bytes_and_stays(self):
        for name, words in OUTPUTS:
            if name in ("weights.npz", "plan.json", "mlp.graph", "report.html", "packing.csv"):
                with self.subTest(name):
                    fifo = FOLDER / ("fifo_" + name)
                    os.mkfifo(fifo)
                    got = []
                    reader = threading.Thread(target=lambda: got.append(fifo.read_bytes()))
                    reader.start()
                    self.succeeds(plimsoll(*[word.format(fifo.name) for word in words]))
                    reader.join()
                    self.assertTrue(fifo.is_fifo())
                    self.assertGreater(len(got[0]), 20)

    def test_a_device_stays_a_device(self):
        device = FOLDER / "null.graph"
        try:
            os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        except PermissionError:
            self.skipTest("may not make devices")
        self.succeeds(plimsoll("graph", "mlp", "-o", device.name))
        self.assertTrue(device.is_char_device())

    def test_standard_output_is_a_file_too(self):
        text = self.succeeds(plimsoll("graph", "mlp")).stdout
        for name in ("-", "/dev/stdout", "/dev/fd/1"):
            self.assertEqual(self.succeeds(plimsoll("graph", "mlp", "-o", name)).stdout, text)
        done = self.succeeds(plimsoll("plan", "mlp", "-o", "-"))
        self.assertEqual(json.loads(done.stdout).keys(), json.loads((FOLDER / "in_plan.json").read_text()).keys())
        self.assertIn("arena", done.stderr)  # what it says goes where it does not mix
        with open(FOLDER / "log", "w", encoding="utf-8") as log:  # as `>> log`
            log.write("before\n")
            log.flush()
            done = subprocess.run([PROGRAM, "graph", "mlp", "-o", "/dev/stdout"], stdout=log, cwd=FOLDER, check=True)
        self.assertEqual((FOLDER / "log").read_text(), "before\n" + text)

    def test_results_that_do_not_arrive_are_a_failure(self):
        for words in (["plan", "mlp"], ["graph", "gpt2"], ["models"], ["--help"], ["graph", "mlp", "-o", "-"], ["man"]):
            with self.subTest(words), open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([PROGRAM, *words], stdout=full, stderr=subprocess.PIPE, text=True, cwd=FOLDER, check=False)
                self.refused(done, "cannot write")
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        closed = subprocess.run(f"exec '{PROGRAM}' plan mlp -o closed.json >&-", shell=True, stderr=subprocess.PIPE, text=True, cwd=FOLDER, check=False)
        self.refused(closed, "standard output: cannot write")
        json.loads((FOLDER / "closed.json").read_text())  # nothing of the summary in it

    def test_no_verb_loses_its_results_silently(self):
        calls = {"models": [], "graph": ["mlp"], "memory": ["mlp"], "run": RUN[1:], "plan": ["mlp"], "check": ["in_plan.json"], "pack": ["in.csv"],
                 "replay": ["in_trace.jsonl"], "convert": ["in_trace.jsonl", "-o", "c.pickle", "--json"], "view": ["in_plan.json", "-o", "v.html"],
                 "diff": ["in_plan.json", "in_plan.json"], "explain": ["in_plan.json"], "weights": ["in_weights.npz"],
                 "oversubscribe": ["mlp", "--device", "cpu", "--factors", "1", "--policies", "demand", "--steps", "2"], "exec": ["--json", "--", "true"],
                 "completion": ["bash"], "man": [], "help": []}
        listed = plimsoll("--help").stdout.split("Verbs\n")[1].split("\n\n")[0].splitlines()
        self.assertEqual({line.split()[0] for line in listed} - set(calls), {"profile"})  # which takes minutes
        for verb, words in calls.items():
            with self.subTest(verb), open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([PROGRAM, verb, *words], stdout=full, stderr=subprocess.PIPE, text=True, cwd=FOLDER, check=False)
                self.refused(done, "standard output: cannot write")
            for restore, code in ((True, -signal.SIGPIPE), (False, 3)):  # as a shell starts it, and as a program that ignores SIGPIPE does
                reader, writer = os.pipe()
                os.close(reader)
                done = subprocess.run([PROGRAM, verb, *words], stdout=writer, stderr=subprocess.PIPE, text=True, cwd=FOLDER, check=False, restore_signals=restore)
                os.close(writer)
                self.assertEqual(done.returncode, code, (verb, restore, done.stderr))

    def test_a_signal_leaves_no_temporary_file(self):
        fifo = FOLDER / "never_read.svg"
        os.mkfifo(fifo)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process = subprocess.Popen([PROGRAM, "view", "mlp", "-o", "signal.html", "--svg", fifo.name], cwd=FOLDER)
            while not left_behind():  # the report is written, the picture waits for its reader
                self.assertIsNone(process.poll())
                time.sleep(0.01)
            process.send_signal(number)
            self.assertEqual(process.wait(), -number)
            self.assertEqual(left_behind(), [])
            self.assertFalse((FOLDER / "signal.html").exists())

    def limited(self, *words):
        return plimsoll(*words, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16)))

    def test_a_full_disk_leaves_the_old_file(self):
        (FOLDER / "kept.npz").write_text("old")
        self.refused(self.limited(*RUN, "--save", "kept.npz"), "kept.npz: cannot write: File too large")
        self.assertEqual((FOLDER / "kept.npz").read_text(), "old")
        self.assertEqual(left_behind(), [])

    def test_a_family_is_written_whole_or_not_at_all(self):
        (FOLDER / "whole").mkdir()
        family = ["plan", "gpt2", "--layers", "1", "--infer", "-o", "whole/family.json", "--sizes"]
        self.succeeds(plimsoll(*family, "batch=1..2"))
        before = {path.name: path.read_bytes() for path in (FOLDER / "whole").iterdir()}
        self.assertEqual(sorted(before), ["family.batch1.json", "family.batch2.json", "family.json"])
        self.refused(plimsoll(*family, "batch=1..3", "--seq", "64", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 12, 1 << 12))), "cannot write")
        self.assertEqual({path.name: path.read_bytes() for path in (FOLDER / "whole").iterdir()}, before)
        self.succeeds(plimsoll(*family, "batch=1..3"))
        self.assertEqual(len(list((FOLDER / "whole").iterdir())), 4)

    def archive(self, name, arrays):
        """From the archive of --save: {new name: old name}."""
        with zipfile.ZipFile(FOLDER / "all.npz") as source, zipfile.ZipFile(FOLDER / name, "w") as out:
            for new, old in arrays.items():
                out.writestr(new + ".npy", source.read(old + ".npy"))
        return name

    def test_kill_9_while_weights_are_written_leaves_the_old_file(self):
        self.succeeds(plimsoll("run", "mlp", "--infer", "--width", "1024", "--steps", "1", "--save", "wide.npz"))
        convert = ["weights", "wide.npz", "-o", "killed.plim", "--form", "q4_k"]
        self.succeeds(plimsoll(*convert))
        target = FOLDER / "killed.plim"
        whole = target.read_bytes()
        cut = 0
        for wanted in range(1, 9):
            old = b"the file of before, number %d" % wanted
            target.write_bytes(old)
            process = subprocess.Popen([PROGRAM, *convert], cwd=FOLDER, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            # Killed when so many eighths are written, or as soon as it is noticed.
            while process.poll() is None and bytes_in_parts() < len(whole) * (wanted - 1) // 8:
                pass
            process.kill()
            process.wait()
            now = target.read_bytes()
            self.assertIn(now, (old, whole))
            cut += now == old
            for name in left_behind():
                (FOLDER / name).unlink()
        self.assertGreaterEqual(cut, 2)

    def test_weights_must_be_those_of_the_model(self):
        self.succeeds(plimsoll(*RUN, "--save", "all.npz"))
        with zipfile.ZipFile(FOLDER / "all.npz") as file:
            self.assertIsNone(file.testzip())
            names = [name.removesuffix(".npy") for name in file.namelist()]
        weights = {name: name for name in names if name.endswith(("weight", "bias"))}
        first = next(iter(weights))
        loss = self.succeeds(plimsoll(*RUN, "--weights", self.archive("w.npz", weights), "--seed", "2", "--json")).stdout
        self.assertNotEqual(json.loads(loss)["losses"], json.loads(plimsoll(*RUN, "--seed", "2", "--json").stdout)["losses"])
        self.refused(plimsoll(*RUN, "--weights", self.archive("none.npz", {"encoder": first, "decoder": first})),
                     "none.npz", "none of its 2 arrays ('encoder', 'decoder')", f"'{first}'")
        part = self.archive("part.npz", {name: name for name in list(weights)[1:]})
        self.refused(plimsoll(*RUN, "--weights", part), "part.npz", "1 of the model's weights", f"'{first}'", "--allow-missing")
        done = self.succeeds(plimsoll(*RUN, "--weights", part, "--allow-missing"))
        self.assertIn("1 weights are taken from the seed", done.stderr)
        done = self.succeeds(plimsoll(*RUN, "--weights", self.archive("more.npz", weights | {"stranger": first})))
        self.assertIn("1 arrays belong to nothing in the model ('stranger')", done.stderr)
        self.succeeds(plimsoll(*RUN, "--weights", "all.npz"))
        self.succeeds(plimsoll(*RUN, "--resume", "all.npz"))
        self.refused(plimsoll(*RUN, "--allow-missing"), "--weights", code=2)

    def test_what_cannot_be_saved_is_said_before_the_first_step(self):
        done = self.refused(plimsoll(*RUN, "--save", "no/where.npz"), "no/where.npz: cannot write")
        self.assertNotIn("step 1", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
