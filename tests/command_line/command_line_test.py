#!/usr/bin/env python3
"""The command line as a newcomer, a shell and a program meet it.

    command_line_test.py PLIMSOLL WORK_FOLDER [--slow]

Help on one screen, examples and JSON for every verb, exit codes, suggestions for misspelt words, sizes,
completion in real shells, what a terminal gets that a pipe does not, and what a first run shows. With
--slow instead what wants the packages of tools/packages_slow.txt: zsh, and the manual through groff.
"""
import ctypes
import json
import os
import pathlib
import platform
import pty
import re
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import unittest

PROGRAM = os.path.abspath(sys.argv[1])
FOLDER = pathlib.Path(sys.argv[2]).resolve()
MLP = ["mlp", "--batch", "4"]
DAG = {"nodes": [{"name": "a", "seconds": 1, "bytes": 4096}, {"name": "b", "seconds": 2, "bytes": 1024, "inputs": ["a"], "keep": True}], "order": ["a", "b"]}


def run(*arguments, env=None, **how):
    return subprocess.run([PROGRAM, *arguments], cwd=FOLDER, capture_output=True, text=True, env={**os.environ, **(env or {})}, **how)


def on_terminal(*arguments, env=None):
    """What the program writes when standard output and standard error are a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([PROGRAM, *arguments], cwd=FOLDER, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm", **(env or {})})
    os.close(theirs)
    text = b""
    while True:
        ready, _, _ = select.select([ours], [], [], 0.1)
        try:
            piece = os.read(ours, 65536) if ready else None
        except OSError:
            break
        if piece:
            text += piece
        elif piece == b"" or process.poll() is not None:
            break
    process.wait()
    os.close(ours)
    return text.decode()


def safetensors(tensors):
    """A file of {name: (dtype, shape, bytes)}."""
    header, data = {"__metadata__": {"made": "by hand"}}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def verbs():
    lines = run("--help").stdout.split("Verbs\n")[1].split("\n\n")[0].splitlines()
    return [line.split()[0] for line in lines]


def documented_keys():
    """The keys that docs/command-line.md promises for every call of a verb."""
    text = (pathlib.Path(__file__).parents[2] / "docs/command-line.md").read_text().split("| verb |")[1]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", text, re.M)
    return {verb: re.findall(r"`(\w+)`", re.sub(r"\(.*?\)", "", keys.split(";")[0])) for verb, keys in rows}


class Help(unittest.TestCase):
    def test_teaches_on_one_screen_and_lists_exit_codes(self):
        text = run("--help").stdout
        self.assertLessEqual(len(text.splitlines()), 40)
        self.assertLessEqual(max(map(len, text.splitlines())), 110)
        for code in range(7):
            self.assertRegex(text.split("Exit codes:")[1], rf"\b{code} ")

    def test_every_verb_has_examples_and_json(self):
        for verb in verbs():
            text = run(verb, "--help").stdout
            self.assertEqual(run("help", verb).stdout, text, verb)
            self.assertIn(f"  plimsoll {verb}", text.split("Examples:")[1].split("Options:")[0], verb)
            self.assertIn("--json", text, verb)

    def test_every_verb_prints_one_json_object_with_a_schema(self):
        (FOLDER / "dag.json").write_text(json.dumps(DAG))
        (FOLDER / "problem.csv").write_text("id,lower,upper,size\na,0,3,4\nb,3,9,4\n")
        (FOLDER / "w.safetensors").write_bytes(safetensors({"a.weight": ("F32", [2, 3], struct.pack("<6f", 1, 2, 3, 4, 5, 6))}))
        calls = {"models": [], "graph": MLP, "memory": MLP, "run": [*MLP, "--steps", "1", "--trace", "run.jsonl"], "plan": [*MLP, "-o", "plan.json"],
                 "check": ["plan.json"], "pack": ["problem.csv"], "replay": ["run.jsonl"], "convert": ["run.jsonl", "-o", "run.pickle"],
                 "view": ["plan.json", "-o", "plan.html"], "diff": ["plan.json", "plan.json"], "explain": ["plan.json"], "oversubscribe": [*MLP, "--device", "cpu", "--factors", "1", "--policies", "demand", "--steps", "2"], "weights": ["w.safetensors"], "completion": ["bash"], "man": [], "help": ["plan"]}
        documented = documented_keys()
        for verb in verbs():
            if verb not in calls:
                continue
            done = run(verb, *calls[verb], "--json")
            self.assertEqual(done.returncode, 0, (verb, done.stderr))
            told = json.loads(done.stdout)
            self.assertEqual(told["schema"], 1, verb)
            for key in documented[verb]:
                self.assertIn(key, told, f"{verb}: docs/command-line.md promises {key}")
            self.assertEqual(done.stderr, "", verb)
        self.assertIn("points", json.loads(run("plan", "--dag", "dag.json", "--sweep", "--json").stdout))


class Exec(unittest.TestCase):
    def test_runs_a_program_and_passes_on_its_code(self):
        self.assertEqual(run("exec", "--", "sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(run("exec", "--", "sh", "-c", "kill -9 $$").returncode, 137)
        done = run("exec", "--", "echo", "--json")
        self.assertEqual(done.stdout, "--json\n")
        self.assertRegex(done.stderr, "peak .* resident; .* cached at the end; .* allocations")

    def test_tells_json_and_writes_statistics_and_a_trace(self):
        program = [sys.executable, "-c", "a = [bytearray(3 << 20) for i in range(9)]; print('out')"]
        done = run("exec", "--json", "--stats", "stats.json", "--trace", "exec.jsonl", "--", *program)
        self.assertEqual(done.stderr, "out\n")
        told = json.loads(done.stdout)
        self.assertEqual(told, json.loads((FOLDER / "stats.json").read_text()))
        for key in documented_keys()["exec"]:
            self.assertIn(key, told)
        self.assertGreater(told["peak_bytes"], 27 << 20)
        self.assertEqual(run("view", "exec.jsonl", "-o", "exec.html").returncode, 0)
        self.assertGreaterEqual(json.loads(run("replay", "exec.jsonl", "--json").stdout)["peak_live_bytes"], 27 << 20)

    def test_statistics_that_cannot_be_written_are_said_before_the_program(self):
        done = run("exec", "--stats", "no/such/folder/x.json", "--", "echo", "hi")
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertIn("no/such/folder/x.json: cannot write", done.stderr)

    def test_says_what_cannot_be_run(self):
        done = run("exec", "--", "no-such-program")
        self.assertEqual(done.returncode, 3)
        self.assertIn("cannot run 'no-such-program'", done.stderr)


class Errors(unittest.TestCase):
    def refuses(self, code, words, *arguments):
        done = run(*arguments)
        self.assertEqual(done.returncode, code, (arguments, done.stderr))
        if "--json" in arguments:
            self.assertEqual(json.loads(done.stdout)["code"], code)
        else:
            self.assertEqual(done.stdout, "")
        for word in words:
            self.assertIn(word, done.stderr)

    def test_numbers_that_mean_nothing_are_refused(self):
        for value, why in (("nan", "'nan' is not a finite number"), ("inf", "not a finite"), ("-1", "-1 is negative, expects at least 0")):
            self.refuses(2, ["--lr: " + why if why[0] != "n" else why], "run", *MLP, "--lr", value)

    def test_an_interrupted_packing_is_the_best_so_far(self):
        self.assertEqual(run("pack", "--generate", "tiling", "--count", "3000", "-o", "tiles.csv").returncode, 0)
        for words in ([], ["--json"]):
            process = subprocess.Popen([PROGRAM, "pack", "tiles.csv", "--minimize", "--deadline", "600s", *words], cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            with self.assertRaises(subprocess.TimeoutExpired):
                process.wait(timeout=1)
            process.send_signal(signal.SIGINT)
            out, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, errors)
            if words:
                self.assertEqual((json.loads(out)["interrupted"], json.loads(out)["status"]), (True, "feasible"))
            else:
                self.assertIn("interrupted", errors)
                self.assertEqual(len(out.splitlines()), 3001)

    def test_what_a_plan_decided_is_not_decided_again(self):
        self.assertEqual(run("plan", *MLP, "-o", "decided.json").returncode, 0)
        for words in (["--budget", "5MB"], ["--optimizer", "sgd"], ["--lr", "1"], ["--infer"], ["--amp", "bf16"], ["--width", "3"],
                      ["--shard", "optimizer"], ["--bucket-bytes", "1"], ["--reduction", "any"], ["--sync-batch-norm"], ["--sparse-as-dense"]):
            self.refuses(2, ["has decided that"], "run", "decided.json", *words)
        self.refuses(2, ["for one size"], "run", "decided.json", "--batch", "3")

    def test_help_names_every_device(self):
        self.assertIn("--device cpu|cuda[:N]|h200|measured|FILE", run("plan", "--help").stdout)

    def test_check_plan_and_run_say_the_same_peak(self):
        said = [json.loads(run(*words, "--json").stdout)["peak_bytes"]
                for words in (["check", *MLP], ["plan", *MLP], ["run", *MLP, "--steps", "1"])]
        self.assertEqual(len(set(said)), 1, said)

    def test_a_check_above_its_limit_is_not_ok(self):
        peak = json.loads(run("check", *MLP, "--json").stdout)["peak_bytes"]
        for limit, code, problems in ((peak, 0, []), (peak - 1, 4, [f"peak {peak:,} bytes is above the limit of {peak - 1:,} bytes"]),
                                      (1024, 4, None)):
            done = run("check", *MLP, "--max-peak", str(limit), "--json")
            told = json.loads(done.stdout)
            self.assertEqual((done.returncode, told["ok"], told["max_peak_bytes"], told["peak_bytes"]), (code, code == 0, limit, peak))
            if problems is None:
                self.assertRegex(told["problems"][0], r"^peak .* MiB is above the limit of 1.00 KiB$")
            else:
                self.assertEqual(told["problems"], problems)
        self.assertNotIn("max_peak_bytes", json.loads(run("check", *MLP, "--json").stdout))

    def test_options_that_would_change_nothing_are_refused(self):
        (FOLDER / "dag.json").write_text(json.dumps(DAG))
        self.assertEqual(run("plan", *MLP, "-o", "decided.json").returncode, 0)
        self.assertEqual(run("run", *MLP, "--steps", "1", "--trace", "was.jsonl").returncode, 0)
        for words, arguments in (
                (["--sweep does not keep to a budget but plans for all of them", "leave out --budget 50%"], ["plan", "mlp", "--sweep", "--budget", "50%"]),
                (["--sweep and --max-batch: each asks for another answer"], ["plan", "mlp", "--sweep", "--max-batch", "--budget", "20MB"]),
                (["--figure does not keep to a budget"], ["plan", "mlp", "--figure", "--budget", "50%"]),
                (["--sizes does not keep to a budget"], ["plan", "mlp", "--sizes", "batch=1..3", "--budget", "1KiB"]),
                (["--explain prints a text and writes no plan"], ["plan", "mlp", "--explain", "-o", "e.json"]),
                (["--max-batch finds the batch; leave out --batch 4"], ["plan", *MLP, "--max-batch", "--budget", "20MB"]),
                (["--slower is for --figure"], ["plan", "mlp", "--slower", "5"]),
                (["--techniques swap: would change nothing", "give --budget SIZE"], ["plan", "mlp", "--techniques", "swap"]),
                (["--swap-file .: nothing is swapped without a limit"], ["plan", "mlp", "--swap-file", "."]),
                (["--swap-file .: nothing is swapped without the technique"], ["run", "mlp", "--budget", "100%", "--swap-file", "."]),
                (["--lossy: would change nothing, because there is memory enough"], ["plan", "mlp", "--lossy"]),
                (["--lossy: would change nothing, because there is memory enough"], ["run", "mlp", "--lossy", "int8"]),
                (["--lossy: would change nothing, because nothing is encoded", "--techniques recompute,encode"], ["plan", "mlp", "--lossy", "--budget", "100%"]),
                (["--lossy: would change nothing, because nothing is encoded"], ["plan", "--dag", "dag.json", "--lossy", "--budget", "100%"]),
                (["--amp bf16 would change nothing, because --dtype is bf16"], ["run", "mlp", "--dtype", "bf16", "--amp", "bf16"]),
                (["--amp fp32: expects bf16 or fp16"], ["run", "mlp", "--amp", "fp32"]),
                (["--techniques inplace,split: would change nothing"], ["run", "mlp", "--techniques", "inplace,split"]),
                (["--batch is for a model, and --dag dag.json"], ["plan", "--dag", "dag.json", "--batch", "3"]),
                (["--max-batch is for a model"], ["plan", "--dag", "dag.json", "--max-batch", "--budget", "80%"]),
                (["--device is for a model"], ["plan", "--dag", "dag.json", "--device", "h200"]),
                (["--sweep plans for all budgets"], ["plan", "--dag", "dag.json", "--sweep", "--budget", "80%"]),
                (["--lr is for training, and this is an inference of mlp; leave out --infer"], ["run", "mlp", "--infer", "--lr", "0.1"]),
                (["--budget: --executor on-demand makes no plan"], ["run", "mlp", "--executor", "on-demand", "--budget", "90%"]),
                (["--data excludes --inputs"], ["run", "mlp", "--infer", "--inputs", "a.npz", "--data", "b.npz"]),
                (["--optimizer is for training"], ["memory", "mlp", "--infer", "--optimizer", "sgd"]),
                (["has decided that"], ["check", "decided.json", "--budget", "1KiB"]),
                (["has decided that"], ["view", "decided.json", "--batch", "8"]),
                (["has decided that"], ["explain", "decided.json", "--techniques", "all"]),
                (["has decided that"], ["diff", "decided.json", "decided.json", "--width", "8"]),
                (["what was recorded of a run"], ["view", "was.jsonl", "--budget", "1KiB"])):
            with self.subTest(arguments):
                self.refuses(2, words, *arguments)
        self.assertEqual(run("diff", "decided.json", *MLP).returncode, 0)  # the model is planned with them
        self.assertEqual(run("plan", *MLP, "--techniques", "inplace,share").returncode, 0)  # leaves out what is free

    def test_what_is_read_is_not_overwritten(self):
        self.assertEqual(run("plan", *MLP, "-o", "kept.json").returncode, 0)
        os.symlink("kept.json", FOLDER / "link.json")
        for output in ("kept.json", "./kept.json", "link.json"):
            self.refuses(2, ["is read and would be overwritten"], "view", "kept.json", "-o", output)
        self.assertEqual(run("check", "kept.json").returncode, 0)
        self.assertEqual(run("view", "kept.json", "-o", "kept.html").returncode, 0)
        self.assertEqual(run("view", "kept.json", "-o", "kept.html").returncode, 0)  # again

    def test_files_for_other_verbs_are_called_what_they_are(self):
        (FOLDER / "dag.json").write_text(json.dumps(DAG))
        (FOLDER / "dag.json.gz").write_bytes(b"\x1f\x8b\x08" + bytes(64))
        for arguments in (["plan", *MLP, "-o", "a_plan.json"], ["plan", *MLP, "--sweep", "--deadline", "100ms", "-o", "a_sweep.json"],
                          ["plan", "--dag", "dag.json", "-o", "a_schedule.json"], ["run", *MLP, "--steps", "1", "--trace", "a_trace.jsonl"]):
            self.assertEqual(run(*arguments).returncode, 0, arguments)
        for words, arguments in (
                (["a_plan.json: no trace but a plan; `plimsoll run`"], ["replay", "a_plan.json"]),
                (["no trace but a plan"], ["convert", "a_plan.json", "-o", "x.pickle"]),
                (["a_sweep.json: no plan or trace but what `plan` says with --json or --sweep; `plimsoll view` draws a sweep"], ["explain", "a_sweep.json"]),
                (["no plan or trace but"], ["diff", "a_sweep.json", "a_plan.json"]),
                (["a_sweep.json: no plan but what"], ["check", "a_sweep.json"]),
                (["a_schedule.json: no plan but a schedule of `plan --dag`"], ["run", "a_schedule.json"]),
                (["a_schedule.json: no graph but a schedule"], ["plan", "--dag", "a_schedule.json"]),
                (["a_plan.json: no graph but a plan"], ["plan", "--dag", "a_plan.json"]),
                (["dag.json.gz: no graph but a gzip file"], ["plan", "--dag", "dag.json.gz"]),
                (["no packing problem but a plan"], ["pack", "a_plan.json"]),
                (["no weights but a plan"], ["weights", "a_plan.json"]),
                (["a_trace.jsonl: no model but a trace of a run"], ["memory", "a_trace.jsonl"])):
            with self.subTest(arguments):
                self.refuses(3, words, *arguments)

    def test_only_what_was_recorded_is_called_measured(self):
        (FOLDER / "dag.json").write_text(json.dumps(DAG))
        for arguments in (["plan", *MLP, "-o", "one.json"], ["plan", "--dag", "dag.json", "-o", "two.json"], ["run", *MLP, "--steps", "1", "--trace", "three.jsonl"]):
            self.assertEqual(run(*arguments).returncode, 0, arguments)
        self.assertNotIn("measured:", run("view", "two.json", "one.json", "-o", "x.html").stdout)
        self.assertIn("measured:", run("view", "three.jsonl", "one.json", "-o", "x.html").stdout)

    def test_reports_are_headed_by_what_they_found(self):
        snapshot = pathlib.Path(__file__).parents[2] / "src/plimsoll/trace/testdata/gpt2_varlen.pickle.gz"
        told = run("explain", snapshot, "--rows", "3").stdout
        self.assertRegex(told, r"GiB  allocated at event [\d,]+\n")
        self.assertNotIn("unnamed", told)
        for batch in ("4", "64"):
            self.assertEqual(run("plan", "mlp", "--batch", batch, "-o", f"of_{batch}.json").returncode, 0)
        self.assertEqual(run("diff", "of_4.json", "of_64.json", "-o", "grown.html").returncode, 0)
        self.assertRegex((FOLDER / "grown.html").read_text(), r"<title>of_64.json takes [\d.]+ KiB more than of_4.json: [\d.]+ MiB, then [\d.]+ MiB")
        self.assertEqual(run("diff", "of_4.json", "of_4.json", "-o", "same.html").returncode, 0)
        self.assertIn("<title>of_4.json (before) and of_4.json (after): ", (FOLDER / "same.html").read_text())
        done = run("plan", "resnet18", "--batch", "8", "--image", "96", "--budget", "92%", "--deadline", "300ms", "-o", "fits.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(run("view", "fits.json", "-o", "fits.html").stdout, r"in a budget of .*: \d+ operators recomputed")

    def test_a_model_that_is_none_is_said_before_the_machine_is_measured(self):
        self.refuses(2, ["model 'nothing' is neither"], "profile", "nothing", "-o", "measured.json")
        self.assertFalse((FOLDER / "measured.json").exists())

    def test_times_are_those_of_this_machine_unless_counted(self):
        cache = FOLDER / "rates"
        shutil.rmtree(cache, ignore_errors=True)
        kept = lambda: sorted(cache.glob("plimsoll/*.json"))
        times = lambda *words: json.loads(run("plan", *MLP, "--budget", "100%", "--deadline", "100ms", "--json", *words, env={"XDG_CACHE_HOME": str(cache)}).stdout)
        shipped = times("--deterministic")
        self.assertIn("the rest estimated", shipped["profile"]["note"])
        self.assertEqual(shipped["keep_all_seconds"], times("--device", "cpu2")["keep_all_seconds"])
        self.assertEqual(kept(), [])  # neither asks what this machine does
        self.assertIn("at the rates of this machine", times()["profile"]["note"])
        rates = {"XDG_CACHE_HOME": str(cache)}
        profiled = run("profile", env=rates)
        self.assertEqual(profiled.returncode, 0)
        if not kept():  # the cores were busy; what is kept and used then is tested in profile_test
            self.assertIn("beside other programs", profiled.stdout)
            return
        (file,) = kept()
        slow = json.loads(file.read_text())
        slow["operations_per_second"]["fp32"], slow["memory_bytes_per_second"], slow["cache"]["bytes_per_second"] = 1e9, 1e8, 1e8
        file.write_text(json.dumps(slow))
        self.assertIn("1 GFLOP/s in fp32, 0.1 GB/s", times()["profile"]["note"])  # kept rates are used
        self.assertGreater(times()["keep_all_seconds"], 5 * shipped["keep_all_seconds"])
        self.assertEqual(times("--threads", "1")["profile"]["name"], "cpu1")  # has rates of its own
        for broken in ("{", "{}", json.dumps({**slow, "memory_bytes_per_second": 0}), json.dumps({**slow, "operations_per_second": {}})):
            file.write_text(broken)
            self.assertNotIn("1 GFLOP/s in fp32, 0.1 GB/s", times()["profile"]["note"])
        for nowhere in ({"XDG_CACHE_HOME": "/proc/none"}, {"XDG_CACHE_HOME": "", "HOME": ""}):
            done = run("plan", *MLP, env=nowhere)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_hint_can_be_pasted(self):
        (FOLDER / "my plans").mkdir()
        hint = run("plan", *MLP, "-o", "my plans/it's.json").stdout.splitlines()[-1].removeprefix("run it: plimsoll ")
        self.assertEqual(shlex.split(hint), ["run", "my plans/it's.json"])
        self.assertEqual(run(*shlex.split(hint), "--steps", "1").returncode, 0)

    def test_misspelt_words_suggest_the_nearest(self):
        self.refuses(2, ["did you mean view?"], "vew", "plan.json")
        self.refuses(2, ["did you mean --batch?"], "plan", "mlp", "--bacth", "8")
        self.refuses(2, ["did you mean 'resnet50'?"], "plan", "resnet5")
        self.refuses(2, ["did you mean plan?"], "man", "pln")
        self.refuses(2, ["did you mean plan?"], "PLAN", "mlp")
        self.refuses(2, ["did you mean 'mlp'?"], "plan", "MLP")
        self.refuses(2, ["did you mean --version?"], "version")

    def test_words_of_other_programs_are_said_in_ours(self):
        for meant, words in (("run", ["train", "mlp"]), ("--batch", ["plan", "mlp", "--batch-size", "8"]), ("--amp fp16", ["run", "mlp", "--fp16"]), ("--steps", ["run", "mlp", "-n", "3"]),
                             ("--lr", ["run", "mlp", "--learning-rate", "0.1"]), ("-o", ["plan", "mlp", "--out", "p.json"]), ("--outputs", ["run", "mlp", "--out", "o.npz"])):
            self.refuses(2, [f"did you mean {meant}?"], *words)
        self.refuses(2, ["no option is called '--batch-size'; `plimsoll"], "pack", "p.csv", "--batch-size", "8")  # has neither
        self.refuses(2, ["no option is called '--model'; MODEL stands by itself"], "plan", "--model", "m.onnx")
        self.refuses(2, ["convert: one argument too many: 'out.json'; a file to write is given as -o out.json"], "convert", "in.pickle", "out.json")
        self.refuses(2, ["plan: a size is one word: 8GB"], "plan", "mlp", "--budget", "8", "GB")
        self.refuses(2, ["size '0.5': less than one byte; a share is written 50%"], "plan", "mlp", "--budget", "0.5")

    def test_a_run_writes_archives_and_no_other_format(self):
        for option, name, instead in (("--save", "w.onnx", "w.npz"), ("--save", "w.pt", "w.npz"), ("--outputs", "out.csv", "out.npz")):
            self.refuses(2, [f"{option} {name}: writes an .npz", f"call it {instead}"], "run", *MLP, option, name)
            self.assertFalse((FOLDER / name).exists())

    def test_more_threads_than_cores_are_warned_of(self):
        cores = len(os.sched_getaffinity(0))
        done = run("run", *MLP, "--steps", "1", "--threads", str(cores + 1))
        self.assertEqual(done.returncode, 0)
        self.assertIn(f"this machine has {cores} cores", done.stderr)
        self.assertEqual(run("run", *MLP, "--steps", "1", "--threads", str(cores)).stderr, "")

    def test_a_plan_is_known_by_its_content_too(self):
        self.assertEqual(run("plan", *MLP, "-o", "a plan").returncode, 0)
        for words in (["run", "a plan", "--steps", "1"], ["check", "a plan"], ["explain", "a plan"], ["view", "a plan", "-o", "of.html"]):
            done = run(*words)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.refuses(2, ["--width: the plan a plan has decided that"], "run", "a plan", "--width", "4")

    def test_values_that_cannot_be_are_said_as_they_were_written(self):
        for words, arguments in ((["memory: --batch: '1e3' is not a whole number"], ["memory", "mlp", "--batch", "1e3"]),
                                 (["--batch: 99999999999999999999 is too large"], ["memory", "mlp", "--batch", "99999999999999999999"]),
                                 (["--lr: 'abc' is not a number"], ["run", "mlp", "--lr", "abc"]),
                                 (["--steps: 0 is out of range, expects 1 to"], ["run", "mlp", "--steps", "0"]),
                                 (["plan: --budget is given 2 times"], ["plan", "mlp", "--budget", "80%", "--budget", "70%"]),
                                 (["run: --save: FILE is missing"], ["run", "mlp", "--save"]),
                                 (["run: --save: its value is missing, --json is an option"], ["run", "mlp", "--save", "--json"]),
                                 (["run: --amp: its value is missing, --steps is an option"], ["run", "mlp", "--amp", "--steps", "2"]),
                                 (["run: behind -- nothing is an option: '--steps'"], ["run", "mlp", "--", "--steps", "1"]),
                                 (["--lossy: 'foo' is no form, expects fp16"], ["plan", "mlp", "--lossy", "foo", "--budget", "80%"])):
            with self.subTest(arguments):
                self.refuses(2, words, *arguments)

    def test_a_file_that_is_no_model_is_called_what_it_is(self):
        (FOLDER / "notes.txt").write_text("hello\n")
        (FOLDER / "nothing.txt").write_text("")
        (FOLDER / "dag.json").write_text(json.dumps(DAG))
        for words, arguments in ((["notes.txt: no model but a text file; a MODEL is"], ["memory", "notes.txt"]),
                                 (["nothing.txt: no model but an empty file"], ["check", "nothing.txt"]),
                                 (["dag.json: no model but a graph as JSON; `plimsoll plan --dag` takes it"], ["plan", "dag.json"]),
                                 (["dag.json: no plan but a graph as JSON; `plimsoll plan --dag` takes it"], ["run", "dag.json"]),
                                 (["dag.json: no plan but a graph as JSON"], ["check", "dag.json"]),
                                 (["/dev/null: no model but a device, a pipe or a socket"], ["plan", "/dev/null"])):
            with self.subTest(arguments):
                self.refuses(3, words, *arguments)
        self.refuses(2, ["model 'notes' is neither built in"], "memory", "notes")
        self.refuses(3, ["model.onx: no such file"], "memory", "model.onx")
        (FOLDER / "problem.csv").write_text("id,lower,upper,size\na,0,3,4\nb,0,9,4\n")
        self.assertEqual(run("pack", "problem.csv", "-o", "packing.csv").returncode, 0)
        self.refuses(3, ["problem.csv: no plan or trace but a packing problem; `plimsoll pack` takes it"], "view", "problem.csv")
        self.refuses(3, ["packing.csv: no model but a packing; `plimsoll pack --check PROBLEM PACKING` checks it"], "check", "packing.csv")

    def test_every_wrong_command_line_is_exit_code_2(self):
        for arguments in ([], ["plan"], ["view"], ["--nonsense"], ["plan", "mlp", "--batch", "x"], ["plan", "mlp", "--streams", "99"], ["graph", "mlp", "--json", "--dot"],
                          ["plan", "mlp", "--budget", "12QB"], ["plan", "mlp", "--order", "x"], ["check", "a", "b", "c"], ["completion", "tcsh"]):
            self.refuses(2, ["plimsoll: "], *arguments)

    def test_help_is_a_verb_too(self):
        self.assertEqual(run("help").stdout, run("--help").stdout)
        self.refuses(2, ["did you mean plan?"], "help", "pln")

    def test_an_empty_value_is_refused(self):
        for arguments in (["plan", "mlp", "--budget", ""], ["check", "mlp", "--max-peak", ""], ["plan", ""], ["pack", "p.csv", "--capacity", ""], ["plan", "mlp", "-o", ""],
                          ["plan", "mlp", "--deadline", ""], ["plan", "mlp", "--device", ""]):
            self.refuses(2, ["the value is empty"], *arguments)
        self.assertEqual(run("exec", "--", "echo", "a", "", "b").stdout, "a  b\n")  # an argument of somebody else

    def test_an_error_is_one_json_object_with_its_code(self):
        (FOLDER / "dag.json").write_text(json.dumps(DAG))
        (FOLDER / "problem.csv").write_text("id,lower,upper,size\na,0,3,4\nb,0,9,4\n")
        (FOLDER / "broken.json").write_text('{"kind": "plimsoll plan", "schema": 1')
        self.assertEqual(run("run", *MLP, "--steps", "1", "--trace", "run.jsonl").returncode, 0)
        for code, key, arguments in ((2, None, ["vew"]), (2, None, ["plan", "mlp", "--bacth", "8"]), (2, None, ["plan", "mlp", "--budget", "12QB"]), (2, None, ["help", "pln"]),
                                     (3, None, ["view", "nothing.json"]), (3, None, ["check", "broken.json"]), (3, None, ["plan", "mlp", "-o", "no/such/folder/plan.json"]),
                                     (4, "ok", ["check", *MLP, "--max-peak", "1KiB"]), (4, "wall", ["plan", *MLP, "--budget", "1KiB"]),
                                     (4, "wall", ["plan", "--dag", "dag.json", "--budget", "1KiB"]), (4, "height", ["pack", "problem.csv", "--capacity", "7"]),
                                     (4, "allocators", ["replay", "run.jsonl", "--capacity", "1KiB"]), (4, "by_layer", ["diff", "exp-example", "mlp", "--threshold", "1%"])):
            with self.subTest(arguments):
                done = run(*arguments, "--json")
                self.assertEqual(done.returncode, code, done.stderr)
                told = json.loads(done.stdout)  # one object, whatever the verb had to say before
                self.assertEqual((told["schema"], told["code"]), (1, code))
                self.assertEqual(done.stderr, f"plimsoll: {told['error']}\n")
                if key:
                    self.assertIn(key, told)
        self.assertEqual(run("exec", "--", "sh", "-c", "exit 0", "--json").stdout, "")  # the program's own word

    def test_options_still_have_their_older_names_but_nobody_tells(self):
        for verb, old, new, value in (("plan", "--remedies", "--techniques", "share"), ("plan", "--strategy", "--checkpointing", "sqrt"), ("run", "--strategy", "--executor", "on-demand")):
            for name in (old, new):
                self.assertEqual(run(verb, *MLP, name, value, "--json").returncode, 0, (verb, name))
            shown = run(verb, "--help").stdout
            self.assertIn(new, shown)
            self.assertNotIn(old + " ", shown)
            self.refuses(2, [f"did you mean {new}?"], verb, *MLP, new[:-1], value)

    def test_other_codes(self):
        self.refuses(3, ["nothing.json"], "view", "nothing.json")
        self.refuses(4, ["not even a batch of 1: 1.00 KiB is too little"], "plan", "mlp", "--max-batch", "--budget", "1KiB")
        (FOLDER / "broken.json").write_text('{"kind": "plimsoll plan", "schema": 1')
        self.refuses(3, ["broken.json"], "check", "broken.json")
        self.assertEqual(run("check", *MLP, "--max-peak", "1KiB").returncode, 4)
        self.assertEqual(run("plan", *MLP, "--budget", "1KiB").returncode, 4)

    def test_a_device_that_is_not_there_is_code_6_and_one_line(self):
        for verb in ("run", "plan", "check"):
            answer = run(verb, *MLP, "--device", "cuda", env={"PLIMSOLL_CUDA_LIBRARY": "/nowhere/libplimsoll_cuda.so"})
            self.assertEqual(answer.returncode, 6, answer.stderr)
            self.assertIn("CUDA: PLIMSOLL_CUDA_LIBRARY names '/nowhere/libplimsoll_cuda.so'", answer.stderr)
            self.assertEqual(len(answer.stderr.strip().splitlines()), 1, answer.stderr)
        self.assertEqual(run("profile", "--device", "cuda", env={"PLIMSOLL_CUDA_LIBRARY": "/nowhere"}).returncode, 6)
        self.assertEqual(run("run", *MLP, "--device", "h200").returncode, 6)
        self.assertEqual(run("run", *MLP, "--device", "cuda:x").returncode, 2)
        self.assertEqual(run("run", *MLP, "--tf32").returncode, 2)

    def test_a_file_is_written_whole_or_not_at_all(self):
        self.assertEqual(run("view", "mlp", "-o", "no/such/folder/report.html").returncode, 3)


class Weights(unittest.TestCase):
    """Sizes, errors and ways back of `plimsoll weights`, and weights of other formats in a run."""

    def told(self, *arguments):
        done = run("weights", *arguments, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def setUp(self):
        # Not normal, but with many different exponents; every third value is zero.
        values = [0.0 if i % 3 == 0 else (i * 7919 % 2003 - 1001) / (1 + i * 104729 % 997) / 1000 for i in range(64 * 300)]
        self.floats = struct.pack(f"<{len(values)}f", *values)
        brains = b"".join(self.floats[4 * i + 2:4 * i + 4] for i in range(len(values)))
        self.file = {"b": ("F32", [300], self.floats[:1200]), "w": ("F32", [64, 300], self.floats), "half": ("BF16", [64, 300], brains), "n": ("I64", [], struct.pack("<q", 7)), "e": ("F16", [0, 3], b"")}
        (FOLDER / "model.safetensors").write_bytes(safetensors(self.file))

    def test_says_what_is_inside_and_what_each_form_would_save(self):
        told = self.told("model.safetensors")
        self.assertEqual((told["tensors"], told["format"], told["form"]), (5, "safetensors", "raw"))
        self.assertEqual(told["bytes"], 1200 + 76800 + 38400 + 8)
        self.assertEqual(told["by_dtype"], {"F32": 78000, "BF16": 38400, "I64": 8, "F16": 0})
        self.assertEqual({line["name"] for line in told["by_tensor"]}, set(self.file))
        forms = told["by_form"]
        self.assertEqual(len(forms), 16)
        self.assertEqual(forms["raw"]["bytes"], told["bytes"])
        for name in ("bitmask", "archive", "bf16-lossless", "csr"):
            self.assertTrue(forms[name]["lossless"])
            self.assertEqual(forms[name]["max_error"], 0)
        self.assertLess(forms["bitmask"]["bytes"], 0.78 * told["bytes"])
        self.assertLess(forms["q4_0"]["bytes"], forms["q8_0"]["bytes"])
        self.assertLess(forms["q8_0"]["max_error"], forms["q4_0"]["max_error"])
        self.assertIn("q4_k", run("weights", "model.safetensors").stdout)

    def test_every_form_can_be_written_and_read_and_lossless_ones_give_the_same_file(self):
        before = (FOLDER / "model.safetensors").read_bytes()
        for form, line in self.told("model.safetensors", "--all")["by_form"].items():
            told = self.told("model.safetensors", "-o", "form.plim", "--form", form)
            self.assertEqual(told["form"], form)
            self.assertEqual(told["output_bytes"], (FOLDER / "form.plim").stat().st_size)
            self.assertEqual(told["stored_bytes"], line["bytes"], form)
            self.assertEqual(self.told("form.plim", "-o", "back.safetensors")["max_error"], 0)
            same = (FOLDER / "back.safetensors").read_bytes() == before
            self.assertEqual(same, line["max_error"] == 0, form)

    def test_keeps_within_the_error(self):
        coarse = self.told("model.safetensors", "-o", "a.plim", "--form", "auto", "--max-error", "0.2")
        fine = self.told("model.safetensors", "-o", "b.plim", "--form", "auto", "--max-error", "0.001")
        exact = self.told("model.safetensors", "-o", "c.plim", "--form", "auto")
        self.assertLess(coarse["stored_bytes"], fine["stored_bytes"])
        self.assertLess(fine["stored_bytes"], exact["stored_bytes"])
        self.assertLessEqual(fine["max_error"], 0.001)
        self.assertEqual(exact["max_error"], 0)
        kept = self.told("model.safetensors", "-o", "d.plim", "--form", "q4_0", "--max-error", "1e-6")
        self.assertEqual(sorted(kept["kept"]), ["half", "w"])
        self.assertEqual(kept["stored_bytes"], kept["bytes"])

    def test_prunes_the_smallest_values(self):
        told = self.told("model.safetensors", "-o", "pruned.plim", "--form", "csr", "--prune", "0.9")
        lines = {line["name"]: line for line in told["by_tensor"]}
        self.assertLess(lines["w"]["stored_bytes"], 0.17 * lines["w"]["bytes"])
        self.assertEqual(lines["b"]["max_error"], 0)
        self.assertGreater(lines["w"]["max_error"], 0)
        self.told("pruned.plim", "-o", "pruned.safetensors")
        content = (FOLDER / "pruned.safetensors").read_bytes()
        length = struct.unpack("<Q", content[:8])[0]
        begin, end = json.loads(content[8:8 + length])["w"]["data_offsets"]
        before = struct.unpack("<19200f", self.floats)
        after = struct.unpack("<19200f", content[8 + length + begin:8 + length + end])
        zeros = sum(value == 0 for value in after)
        self.assertGreaterEqual(zeros, 17280)
        self.assertLess(zeros, 17400)  # values of the same size go together
        self.assertTrue(all(new in (0, old) for old, new in zip(before, after)))
        self.assertLess(max(abs(old) for old, new in zip(before, after) if new == 0), min(abs(new) for new in after if new))
        self.assertEqual(run("weights", "model.safetensors", "-o", "x.safetensors", "--prune", "0.5").returncode, 2)

    def test_narrow_floats_are_a_safetensors_file_too(self):
        told = self.told("model.safetensors", "-o", "narrow.safetensors", "--form", "bf16")
        dtypes = {line["name"]: line["dtype"] for line in self.told("narrow.safetensors")["by_tensor"]}
        self.assertEqual(dtypes, {"b": "F32", "w": "BF16", "half": "BF16", "n": "I64", "e": "F16"})
        self.assertLess(told["max_error"], 0.004)

    def test_says_what_cannot_be_done(self):
        for code, words, arguments in (
                (2, "only raw, fp16 and bf16", ["-o", "x.safetensors", "--form", "q8_0"]), (2, "only raw", ["-o", "x.npz", "--form", "fp16"]),
                (2, "name one with -o", ["--form", "q8_0"]), (2, ".plim, .safetensors and .npz are written", ["-o", "x.bin"]),
                (3, "BF16", ["-o", "x.npz"])):
            done = run("weights", "model.safetensors", *arguments)
            self.assertEqual(done.returncode, code, (arguments, done.stderr))
            self.assertIn(words.lower(), done.stderr.lower())
        (FOLDER / "cut.safetensors").write_bytes((FOLDER / "model.safetensors").read_bytes()[:-1])
        done = run("weights", "cut.safetensors")
        self.assertEqual(done.returncode, 3)
        self.assertIn("cut.safetensors: its tensors have 116408 bytes, the file has 116407 for them: it is cut off", done.stderr)

    def test_a_run_takes_weights_of_every_format_and_of_checkpoints_with_prefixes(self):
        # Of the weights alone, without the moments of the optimizer that --save keeps.
        self.assertEqual(run("run", *MLP, "--steps", "1", "--save", "all.npz").returncode, 0)
        shown = self.told("all.npz", "-o", "all.safetensors")["by_tensor"]
        content = (FOLDER / "all.safetensors").read_bytes()
        length = struct.unpack("<Q", content[:8])[0]
        header = json.loads(content[8:8 + length])
        weights = {line["name"]: ("F32", line["shape"], content[8 + length:][slice(*header[line["name"]]["data_offsets"])])
                   for line in shown if line["name"].endswith((".weight", ".bias"))}
        (FOLDER / "w.safetensors").write_bytes(safetensors(weights))
        (FOLDER / "module.safetensors").write_bytes(safetensors({"module." + name: tensor for name, tensor in weights.items()}))
        self.told("w.safetensors", "-o", "w.plim", "--form", "archive")
        self.told("w.safetensors", "-o", "w.npz")
        self.told("w.safetensors", "-o", "q.plim", "--form", "q8_0")
        def losses(file):
            done = run("run", *MLP, "--steps", "2", "--seed", "5", "--weights", file, "--json")
            self.assertEqual((done.returncode, done.stderr), (0, ""), file)
            return json.loads(done.stdout)["losses"]
        expected = losses("w.npz")
        for file in ("w.safetensors", "module.safetensors", "w.plim"):
            self.assertEqual(losses(file), expected, file)
        for exact, near in zip(expected, losses("q.plim")):
            self.assertAlmostEqual(exact, near, delta=0.05 * abs(exact))
            self.assertNotEqual(exact, near)


class Check(unittest.TestCase):
    def test_only_what_passes_is_called_right(self):
        self.assertIn("mlp: right, peak", run("check", *MLP).stdout)
        self.assertIn("mlp: right, within the limit of 1.00 GiB, peak", run("check", *MLP, "--max-peak", "1GiB").stdout)
        above = run("check", *MLP, "--max-peak", "1KiB")
        self.assertNotIn("right", above.stdout)
        self.assertIn("ABOVE THE LIMIT of 1.00 KiB", above.stdout)


class Streams(unittest.TestCase):
    """`-` is standard input and standard output."""

    def test_problems_graphs_and_traces_come_through_a_pipe(self):
        problem = "id,lower,upper,size\na,0,3,4\nb,3,9,4\n"
        (FOLDER / "p.csv").write_text(problem)
        packed = run("pack", "-", input=problem)
        self.assertEqual((packed.returncode, packed.stdout), (0, run("pack", "p.csv").stdout))
        self.assertEqual(json.loads(run("pack", "-", "--json", input=json.dumps({"buffers": [{"id": "a", "size": 4, "lower": 0, "upper": 1}]})).stdout)["height"], 4)
        self.assertEqual(run("pack", "--check", "p.csv", "-", input=packed.stdout).returncode, 0)
        self.assertEqual(run("pack", "--check", "-", "-", input=problem).returncode, 2)
        with open(FOLDER / "p.csv") as file:  # a file in its place
            self.assertEqual(subprocess.run([PROGRAM, "pack", "-"], stdin=file, capture_output=True, text=True).stdout, packed.stdout)
        self.assertEqual(json.loads(run("plan", "--dag", "-", "--json", input=json.dumps(DAG)).stdout)["peak_bytes"], 5120)
        self.assertEqual(run("run", *MLP, "--steps", "1", "--trace", "pipe.jsonl").returncode, 0)
        trace = (FOLDER / "pipe.jsonl").read_text()
        told = json.loads(run("replay", "-", "--json", input=trace).stdout)
        self.assertEqual(told["peak_live_bytes"], json.loads(run("replay", "pipe.jsonl", "--json").stdout)["peak_live_bytes"])
        self.assertEqual(run("pack", "-", input="").returncode, 3)
        self.assertIn("plimsoll: standard input: line 2", run("pack", "-", input="id,lower,upper,size\na,x,3,4\n").stderr)

    def test_a_schedule_goes_to_standard_output(self):
        done = run("plan", "--dag", "-", "-o", "-", input=json.dumps(DAG))
        self.assertEqual(json.loads(done.stdout)["kind"], "plimsoll schedule", done.stderr)
        self.assertIn("plan", done.stderr)


class Dags(unittest.TestCase):
    """A graph of the user's own, from its file to its report."""
    # Forward, then backward: each gradient reads the one before it and what its layer made.
    LAYERS = 6
    NODES = [{"id": f"layer{i}", "bytes": 1 << 20, "cost": 1} for i in range(LAYERS)] + [{"id": f"grad{i}", "bytes": 1 << 18, "cost": 2} for i in reversed(range(LAYERS))]
    EDGES = [{"source": f"layer{i}", "target": f"layer{i + 1}"} for i in range(LAYERS - 1)] + [{"source": f"layer{i}", "target": f"grad{i}"} for i in range(LAYERS)] \
        + [{"source": f"grad{i + 1}", "target": f"grad{i}"} for i in range(LAYERS - 1)]

    def node_link(self, name, **more):
        (FOLDER / name).write_text(json.dumps({"directed": True, "multigraph": False, "graph": {}, "nodes": self.NODES, **more}))
        return name

    def test_both_spellings_of_networkx_plan_alike(self):
        told = [json.loads(run("plan", "--dag", self.node_link("link.json", **{key: self.EDGES}), "--json").stdout) for key in ("links", "edges")]
        self.assertEqual(told[0]["peak_bytes"], told[1]["peak_bytes"])
        self.assertEqual(told[0]["keep_all_bytes"], 6 * (1 << 20) + (1 << 18) * 2 - (1 << 18))
        self.assertEqual(told[0]["keep_all_seconds"], 18)
        lost = run("plan", "--dag", self.node_link("lost.json", links=self.EDGES, weights=[1]))
        self.assertEqual(lost.returncode, 3)
        self.assertIn("unknown key `weights`", lost.stderr)

    def test_a_schedule_is_checked_viewed_and_explained(self):
        self.node_link("link.json", edges=self.EDGES)
        done = run("plan", "--dag", "link.json", "--budget", "70%", "--deadline", "200ms", "-o", "schedule.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("limited by", done.stdout)
        peak = json.loads(run("check", "schedule.json", "--json").stdout)["peak_bytes"]
        self.assertEqual(peak, json.loads((FOLDER / "schedule.json").read_text())["peak_bytes"])
        self.assertEqual(run("check", "schedule.json", "--max-peak", str(peak - 1)).returncode, 4)
        told = json.loads(run("explain", "schedule.json", "--json").stdout)
        self.assertEqual(told["alive_bytes"], peak)
        row = {row["name"]: row for row in told["alive"]}
        self.assertTrue(all(name.startswith(("layer", "grad")) for name in row), row)
        self.assertTrue(any(price["remedy"] == "recompute" for line in told["alive"] for price in line["remedies"]), told)
        self.assertEqual(run("view", "schedule.json", "-o", "schedule.html").returncode, 0)
        self.assertIn("recompute layer", (FOLDER / "schedule.html").read_text())
        self.assertEqual(run("diff", "schedule.json", "schedule.json").returncode, 0)
        forged = json.loads((FOLDER / "schedule.json").read_text())
        forged["steps"] = [step for step in forged["steps"] if "drop" not in step]
        (FOLDER / "forged.json").write_text(json.dumps(forged))
        for verb in ("check", "explain", "view"):
            self.assertEqual(run(verb, "forged.json").returncode, 3, verb)

    def test_a_proof_says_what_it_proved(self):
        self.node_link("link.json", edges=self.EDGES)
        if shutil.which("cbc"):
            words = ["plan", "--dag", "link.json", "--budget", "70%", "--prove", "--deadline", "1s", "--order", "given"]
            self.assertRegex(run(*words).stdout, "proved +no plan within the budget that first runs the nodes in this order takes less than")
            proof = json.loads(run(*words, "--json").stdout)["proof"]
            self.assertIn(proof["result"], ("optimum", "bound"))
            self.assertGreaterEqual(proof["bound_seconds"], 18)
        for words in (["plan", "--dag", "link.json", "--prove"], ["plan", "--dag", "link.json", "--prove", "--sweep", "--budget", "70%"], ["plan", "mlp", "--prove"]):
            self.assertEqual(run(*words).returncode, 2, words)


class Budgets(unittest.TestCase):
    def test_auto_is_what_the_machine_has_free_less_a_margin(self):
        done = run("plan", *MLP, "--budget", "auto", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        budget = json.loads(done.stdout)["budget_bytes"]
        self.assertRegex(done.stderr, r"^budget \S+ \S+: \S+ \S+ \((MemAvailable of this machine|the limit of its control group)\) less 10 %\n$")
        whole = int(re.search(r"MemTotal: +(\d+)", pathlib.Path("/proc/meminfo").read_text()).group(1)) << 10
        self.assertTrue(0 < budget < 0.9 * whole, budget)
        h200 = run("plan", *MLP, "--budget", "auto", "--device", "h200", "--json")
        self.assertIn("the memory of 'h200'", h200.stderr)
        self.assertGreater(json.loads(h200.stdout)["budget_bytes"], 100 << 30)
        self.assertEqual(run("run", *MLP, "--budget", "auto", "--steps", "1").returncode, 0)

    def test_a_plan_ends_with_the_command_to_run_it(self):
        def last(*words):
            done = run(*words)
            self.assertEqual(done.returncode, 0, done.stderr)
            line = done.stdout.splitlines()[-1]
            self.assertTrue(line.startswith("run it: plimsoll run "), line)
            return line.removeprefix("run it: plimsoll ").split()
        self.assertEqual(last("plan", *MLP, "-o", "it.json"), ["run", "it.json"])
        self.assertEqual(last("plan", *MLP, "--techniques", "recompute,swap", "--budget", "90%", "--deadline", "200ms"),
                         ["run", "mlp", "--batch", "4", "--budget", "90%", "--techniques", "recompute,swap"])
        for words in (["plan", "mlp", "--batch", "8", "--seed", "3"], ["plan", "--lossy", "mlp", "--budget", "100%", "--techniques", "encode"], ["plan", "mlp", "--freeze", "*.bias", "--freeze", "layers.0.weigh?"]):
            again = shlex.split(" ".join(last(*words)))
            self.assertEqual(run(*again, "--steps", "1").returncode, 0, again)
        self.assertNotIn("run it", run("plan", *MLP, "--device", "h200").stdout)  # which only plans
        (FOLDER / "plans").mkdir()
        run("graph", "mlp", "--infer", "-o", "it.onnx")
        for output in ("beside.json", "plans/elsewhere.json"):  # where the model is not in the plan's folder
            self.assertEqual(run(*last("plan", "it.onnx", "-o", output), "--steps", "1").returncode, 0, output)

    def test_several_memories_are_planned_and_run(self):
        done = run("plan", *MLP, "--device", "accelerator", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        placed = json.loads(done.stdout)["placement"]
        self.assertLessEqual(placed["predicted_seconds"], placed["greedy_seconds"])
        self.assertLess(placed["predicted_seconds"], placed["home_seconds"])
        self.assertGreater(placed["memories"][0]["windows"], 0)
        self.assertLessEqual(placed["memories"][0]["arena_bytes"], placed["memories"][0]["capacity_bytes"])
        # a profile of one's own is run on this machine, with an arena for each memory
        rates = {"in_bytes_per_second": 5e10, "out_bytes_per_second": 5e10, "latency_seconds": 0}
        profile = {"schema": 1, "name": "two", "memory_bytes": 1 << 34, "memory_bytes_per_second": 1e10, "launch_seconds": 0, "operations_per_second": {"fp32": 1e12},
                   "copies": rates, "disk": rates, "copy_tax": 0, "codecs": {"encode_bytes_per_second": 0, "decode_bytes_per_second": 0, "latency_seconds": 0},
                   "memories": [{"name": "fast", "bytes": 1 << 20, "read_bytes_per_second": 1e11, "write_bytes_per_second": 1e11, "copies": rates}]}
        (FOLDER / "two.json").write_text(json.dumps(profile))
        done = run("plan", *MLP, "--device", "two.json", "-o", "placed.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([arena["name"] for arena in json.loads((FOLDER / "placed.json").read_text())["arenas"]], ["device", "host", "fast"])
        self.assertEqual(run("check", "placed.json").returncode, 0)
        losses = [json.loads(run("run", *words, "--steps", "2", "--json").stdout)["losses"] for words in (["placed.json"], MLP)]
        self.assertEqual(*losses)
        one = run("plan", *MLP, "--placement", "greedy")
        self.assertEqual((one.returncode, "'cpu2' has one memory" in one.stderr), (2, True), one.stderr)
        for words in (["--sweep"], ["--streams", "2"], ["--sizes", "batch=1..4"], ["--placement", "x"]):
            self.assertEqual(run("plan", *MLP, "--device", "accelerator", *words).returncode, 2, words)

    def test_the_largest_batch_is_closed_in_on(self):
        whole = json.loads(run("plan", "mlp", "--batch", "100", "--json").stdout)["arena_bytes"]
        words = ["plan", "mlp", "--budget", str(whole), "--max-batch", "--deterministic"]  # which no deadline cuts
        told = json.loads(run(*words, "--json").stdout)
        self.assertGreaterEqual(told["batch"], 100)  # which fits without recomputing
        self.assertIn(told["batch_status"], ("proven", "not_found"))
        self.assertEqual(told["failed_batch"], told["batch"] + 1)
        self.assertAlmostEqual(told["samples_per_second"], told["batch"] / told["predicted_seconds"], delta=1)
        self.assertLessEqual(told["arena_bytes"], whole)
        text = run(*words).stdout
        self.assertRegex(text, r"largest batch \d+: \S+ samples a second predicted; (\d+ is proven not to fit|no plan for \d+ was found)")
        self.assertRegex(text.splitlines()[-1], r"run it: plimsoll run mlp --budget \d+ --deterministic --batch \d+")
        cut = run("plan", "resnet50", "--budget", "4GiB", "--max-batch", "--deadline", "50ms")
        self.assertIn("the deadline cut the search", cut.stdout)
        self.assertIn("were not tried; give a longer --deadline", cut.stdout)
        self.assertEqual(json.loads(run("plan", "resnet50", "--budget", "4GiB", "--max-batch", "--deadline", "50ms", "--json").stdout)["batch_status"], "deadline")

    def test_the_limiting_tensors_are_named_in_words(self):
        tight = run("plan", *MLP, "--budget", "1KiB")
        self.assertEqual(tight.returncode, 4)
        self.assertRegex(tight.stderr, r"; \S+ \(\d.*\) must be there at once")
        fitted = run("plan", "resnet18", "--batch", "8", "--image", "64", "--budget", "95%", "--deadline", "200ms")
        self.assertRegex(fitted.stdout, r"no plan needs less than .*: .* \(\d.*\).* must be there at once")

    def test_a_search_that_was_interrupted_is_not_called_optimal(self):
        process = subprocess.Popen([PROGRAM, "plan", "resnet50", "--batch", "8", "--sweep", "--deadline", "600s"], cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(timeout=1)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out.splitlines()[-1]), (0, "interrupted: this is the curve found until then"))
        for words in (["plan", "resnet50", "--batch", "8", "--budget", "60%"], ["plan", "resnet18", "--budget", "1GiB", "--max-batch"]):
            for seconds in (1, 4, 16):  # a busy machine may not have found its first plan yet
                process = subprocess.Popen([PROGRAM, *words, "--deadline", "600s", "--json"], cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                with self.assertRaises(subprocess.TimeoutExpired):
                    process.wait(timeout=seconds)
                process.send_signal(signal.SIGINT)
                out, _ = process.communicate(timeout=60)
                told = json.loads(out)
                if process.returncode != 5:
                    break
            self.assertEqual((process.returncode, told["status"], told["interrupted"]), (0, "feasible", True))
            if "--max-batch" in words:
                self.assertEqual(told["batch_status"], "interrupted")


class Snapshots(unittest.TestCase):
    def test_no_figure_is_one_that_cannot_be(self):
        """A snapshot with allocations from before the recording, and a device that is too small for it."""
        shutil.copy(pathlib.Path(__file__).parents[2] / "src/plimsoll/trace/testdata/gpt2_varlen.pickle.gz", FOLDER / "varlen.pickle.gz")
        for words in (["explain"], ["view", "-o", "varlen.html"], ["replay", "--allocator", "plimsoll,pytorch"], ["replay", "--allocator", "plimsoll,pytorch", "--capacity", "8GiB"]):
            done = run(words[0], "varlen.pickle.gz", *words[1:])
            self.assertEqual(done.returncode, 4 if "--capacity" in words else 0, done.stderr)
            self.assertNotRegex(done.stdout + done.stderr, r"event -|-\d[\d.]* ?%|\de[+-]\d", words)
        self.assertIn("allocated before the recording", run("explain", "varlen.pickle.gz").stdout)


class Packing(unittest.TestCase):
    def packed(self, problem, *arguments, suffix="csv"):
        """The packing as JSON, having passed the independent checker."""
        text = problem if isinstance(problem, str) else json.dumps(problem)
        (FOLDER / f"rules.{suffix}").write_text(text)
        done = run("pack", f"rules.{suffix}", "-o", "rules_out.json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        checked = run("pack", "--check", f"rules.{suffix}", "rules_out.json")
        self.assertEqual(checked.returncode, 0, checked.stderr)
        return json.loads((FOLDER / "rules_out.json").read_text())

    def test_takes_gaps_windows_and_fixed_offsets_from_a_csv(self):
        told = self.packed("id,lower,upper,size,alignment,gaps,offset\na,0,9,8,,4-6,\nb,4,6,8,,,\nw,0,9,8,,2-5:0-4,\nf,0,9,4,4,,16\n")
        self.assertEqual((told["height"], told["offsets"]["f"]), (20, 16))

    def test_takes_files_as_minimalloc_spells_them(self):
        told = self.packed("buffer_id,start,end,size,gaps\na,0,8,8,4-5\nb,4,5,8,\nw,0,8,8,2-4@0:4\n")
        self.assertEqual(told["height"], 16)

    def test_takes_groups_classes_memories_and_streams_from_json(self):
        plain = {"lower": 0, "upper": 9}
        told = self.packed({"contiguous": [["g1", "g0"]], "colocated": [["x", "y"]], "buffers": [
            {"id": "g0", "size": 4, **plain}, {"id": "g1", "size": 4, **plain}, {"id": "x", "size": 8, **plain},
            {"id": "y", "size": 4, **plain}]}, suffix="json")["offsets"]
        self.assertEqual((told["g0"] - told["g1"], told["x"] - told["y"]), (4, 0))
        memories = {"memories": [{"name": "fast", "capacity": 8}, {"name": "slow", "cost_per_byte": 1}],
                    "buffers": [{"id": "a", "size": 8, **plain}, {"id": "b", "size": 4, **plain}]}
        told = self.packed(memories, suffix="json")
        self.assertEqual((told["memories"], told["cost"]), ({"a": "fast", "b": "slow"}, 4))
        self.assertEqual(run("pack", "rules.json", "-o", "rules_out.csv").returncode, 2)
        self.assertEqual(json.loads(run("pack", "rules.json").stdout)["memories"], told["memories"])
        streams = {"streams": 2, "buffers": [{"id": "a", "size": 8, "ready": [0, 0], "released": [1, 0]},
                                             {"id": "b", "size": 8, "ready": [1, 0], "released": [2, 0]},
                                             {"id": "c", "size": 8, "ready": [0, 0], "released": [0, 1]}]}
        self.assertEqual(self.packed(streams, suffix="json")["height"], 16)

    def test_slabs_and_ends_can_be_asked_for(self):
        three = "id,lower,upper,size\na,0,9,6\nb,0,9,6\nc,0,9,4\n"
        told = self.packed(three, "--slab", "10")["offsets"]
        for name, size in (("a", 6), ("b", 6), ("c", 4)):
            self.assertEqual(told[name] // 10, (told[name] + size - 1) // 10)
        told = self.packed("id,lower,upper,size\nshort,1,2,4\nlong,0,9,8\n", "--two-ended", "0.5")["offsets"]
        self.assertLess(told["long"], told["short"])

    def test_repacking_moves_only_what_it_must(self):
        old = self.packed("id,lower,upper,size\na,0,9,6\nb,0,9,6\nc,0,9,4\n")
        (FOLDER / "old.json").write_text(json.dumps(old))
        told = self.packed("id,lower,upper,size\na,0,9,6\nb,0,9,6\nc,0,9,4\nnew,0,9,3\n", "--repack", "old.json")
        self.assertEqual({name: told["offsets"][name] for name in old["offsets"]}, old["offsets"])
        self.assertEqual(told["moved"], 0)

    def test_faults_of_a_file_have_line_and_column(self):
        for suffix, text, words in (("csv", "id,lower,upper,size\na,0,1,4\na,0,1,4\n", "line 3, column 1 (id)"),
                                    ("csv", "id,lower,upper,size\na,5,1,4\n", "line 2, column 3 (upper)"),
                                    ("json", '{"buffers": [\n{"size": 4, "lower": 5, "upper": 1}]}', "line 2, column 34"),
                                    ("json", '{"contiguous": [["a", "b"]],\n"buffers": [{"id": "a", "size": 1}]}', "line 1, column 23"),
                                    ("json", '{"buffers": [\n', "line 2, column 1"),
                                    ("csv", "id;lower;upper;size\na;0;1;4\n", "; columns are separated by commas"),
                                    ("json", '{"buffers": [{"start": 0, "end": 3, "size": 4}]}', "buffers[0].start: unknown key; there are id, lower, upper, size, "),
                                    ("json", '[{"lower": 0, "upper": 3, "size": 4}]', 'expected an object like {"buffers": [')):
            (FOLDER / f"fault.{suffix}").write_text(text)
            done = run("pack", f"fault.{suffix}")
            self.assertEqual(done.returncode, 3, text)
            self.assertIn(words, done.stderr)

    def test_ideas_can_be_left_out_by_name(self):
        (FOLDER / "rules.csv").write_text("id,lower,upper,size\na,0,9,6\nb,0,9,6\n")
        self.assertEqual(run("pack", "rules.csv", "--without", "memo,backjump").returncode, 0)
        self.assertEqual(run("pack", "rules.csv", "--without", "magic").returncode, 2)


class Measuring(unittest.TestCase):
    def test_a_run_says_whether_its_peak_was_measured(self):
        timed = json.loads(run("run", *MLP, "--steps", "2", "--json").stdout)
        self.assertIs(timed["measured"], False)
        self.assertEqual(timed["peak_bytes"], timed["planned_peak_bytes"])
        self.assertNotIn("touched_bytes", timed)
        seen = json.loads(run("run", *MLP, "--steps", "2", "--measure", "--json").stdout)
        self.assertEqual(seen["losses"], timed["losses"])
        if "not_measured" in seen:  # built with sanitizers
            self.assertIs(seen["measured"], False)
            return
        self.assertIs(seen["measured"], True)
        self.assertEqual(seen["peak_bytes"], seen["touched_bytes"] + seen["outside_bytes"])
        self.assertLessEqual(seen["touched_bytes"], seen["planned_peak_bytes"])
        self.assertGreater(seen["touched_bytes"], seen["planned_peak_bytes"] // 2)
        self.assertLess(seen["outside_bytes"], 64 << 10)
        self.assertIn(seen["touched_by"], ("pages", "patterns"))

    def test_poison_would_count_as_touched(self):
        self.assertEqual(run("run", *MLP, "--measure", "--poison").returncode, 2)


class Sizes(unittest.TestCase):
    def test_fractions_decimal_units_and_percentages(self):
        whole = json.loads(run("plan", *MLP, "--json").stdout)["arena_bytes"]
        for text, amount in (("1.5GiB", 3 << 29), ("800MB", 800_000_000), ("100%", whole)):
            self.assertEqual(json.loads(run("plan", *MLP, "--budget", text, "--json").stdout)["budget_bytes"], amount)


class Shells(unittest.TestCase):
    def complete(self, *words):
        script = "\n".join(['. <("$0" completion bash)', "COMP_WORDS=(" + " ".join(f"'{word}'" for word in words) + ")", "COMP_CWORD=$((${#COMP_WORDS[@]} - 1))", "_plimsoll", 'printf "%s\\n" "${COMPREPLY[@]}"'])
        done = subprocess.run(["bash", "-c", script, PROGRAM], capture_output=True, text=True, check=True)
        return done.stdout.split()

    def test_bash_completes_verbs_options_values_and_models(self):
        self.assertEqual(self.complete("plimsoll", "vi"), ["view"])
        self.assertEqual(self.complete("plimsoll", "plan", "gpt2", "--bu"), ["--budget", "--bucket", "--bucket-bytes"])
        self.assertEqual(self.complete("plimsoll", "plan", "--order", "n"), ["natural"])
        self.assertIn("resnet50", self.complete("plimsoll", "plan", "res"))
        self.assertEqual(self.complete("plimsoll", "view", "--svg", "x"), [])  # bash goes on with files
        self.assertEqual(sorted(self.complete("plimsoll", "")), sorted([*verbs(), "--help", "--version", "--log-level"]))


class SlowShells(unittest.TestCase):
    """Wants the packages of tools/packages_slow.txt."""

    def test_zsh_takes_the_script(self):
        script = 'autoload -Uz compinit; compinit -u -D; source <("$0" completion zsh); whence -w _plimsoll'
        done = subprocess.run(["zsh", "-f", "-c", script, PROGRAM], capture_output=True, text=True)
        self.assertEqual(done.stdout.strip(), "_plimsoll: function", done.stderr)
        self.assertEqual(done.stderr, "")

    def test_the_manual_is_without_warnings_and_names_every_option(self):
        page = run("man").stdout
        shown = subprocess.run(["groff", "-man", "-Tascii", "-ww"], input=page, capture_output=True, text=True)
        self.assertEqual(shown.stderr, "")
        for verb in verbs():
            self.assertIn(f"plimsoll {verb}", page)
        self.assertIn("\\-\\-budget", page)


def settings_of(process):
    """What a process was started with, and the slice in nanoseconds that it asks the scheduler for."""
    given = dict(one.split("=", 1) for one in pathlib.Path(f"/proc/{process}/environ").read_text().split("\0") if "=" in one)
    attributes = bytearray(struct.pack("=IIQiIQQQ", 48, 0, 0, 0, 0, 0, 0, 0))
    buffer = (ctypes.c_char * 48).from_buffer(attributes)
    ctypes.CDLL(None, use_errno=True).syscall(315 if platform.machine() == "x86_64" else 275, process, buffer, 48, 0)  # sched_getattr
    return given, struct.unpack("=IIQiIQQQ", bytes(attributes))[5]


class Neighbours(unittest.TestCase):
    """Threads that wait spin briefly and are woken soon, so that a busy neighbour costs its share and no more."""

    def started(self, env=None):
        """The settings of a run that is at its first step."""
        with subprocess.Popen([PROGRAM, "run", *MLP, "--steps", "1000000"], cwd=FOLDER, stdout=subprocess.PIPE, text=True, env={**os.environ, **(env or {})}) as process:
            self.assertIn("step 1", process.stdout.readline())
            found = settings_of(process.pid)
            process.kill()
        return found

    def test_spinning_is_bounded_unless_the_user_said_how_long(self):
        self.assertEqual(self.started()[0].get("GOMP_SPINCOUNT"), "1000")
        self.assertEqual(self.started({"GOMP_SPINCOUNT": "7"})[0]["GOMP_SPINCOUNT"], "7")
        self.assertNotIn("GOMP_SPINCOUNT", self.started({"OMP_WAIT_POLICY": "active"})[0])

    def test_slices_are_short_where_the_kernel_grants_them(self):
        version = tuple(int(number) for number in platform.release().split(".")[:2])
        self.assertEqual(self.started()[1], 100_000 if version >= (6, 12) else 0)

    def test_programs_of_others_are_started_as_usual(self):
        self.assertEqual(run("exec", "--", "sh", "-c", "echo $GOMP_SPINCOUNT$PLIMSOLL_BOUNDED_SPINNING").stdout, "\n")


class FirstRun(unittest.TestCase):
    def test_the_loss_falls_and_is_the_same_again(self):
        losses = json.loads(run("run", *MLP, "--steps", "5", "--json").stdout)["losses"]
        self.assertEqual(losses, sorted(losses, reverse=True))
        self.assertEqual(losses, json.loads(run("run", *MLP, "--steps", "5", "--json").stdout)["losses"])
        fresh = json.loads(run("run", *MLP, "--steps", "5", "--data", "fresh", "--json").stdout)["losses"]
        self.assertEqual(fresh[0], losses[0])
        self.assertNotEqual(fresh[1], losses[1])

    def test_the_report_is_named_by_model_batch_and_budget(self):
        self.assertEqual(run("plan", *MLP, "--budget", "16MiB", "-o", "named.json").returncode, 0)
        self.assertEqual(run("run", "named.json", "--trace", "named.jsonl").returncode, 0)
        self.assertEqual(run("plan", *MLP, "-o", "free.json").returncode, 0)
        for subjects, title in ((["named.json", "named.jsonl"], "mlp, batch 4, budget 16.00 MiB"), (["named.json"], "mlp, batch 4, budget 16.00 MiB"),
                                (["free.json"], "mlp, batch 4, no budget"), (MLP, "mlp, batch 4, no budget"),
                                (["named.jsonl"], "named.jsonl"), (["named.json", "free.json"], "named.json and free.json")):
            self.assertEqual(run("view", *subjects, "-o", "named.html").returncode, 0, subjects)
            self.assertIn(f"<title>{title}</title>", (FOLDER / "named.html").read_text(), subjects)


class Terminals(unittest.TestCase):
    def test_a_pipe_gets_no_colour_and_no_progress(self):
        done = run("plan", "resnet18", "--batch", "8", "--image", "64", "--budget", "95%", "--deadline", "1s")
        self.assertNotIn("\033", done.stdout + done.stderr)
        self.assertNotIn(" left", done.stderr)
        self.assertNotIn("\033", run("--help").stdout)

    def test_a_terminal_gets_both_unless_refused(self):
        self.assertIn("\033[1m", on_terminal("--help"))
        self.assertNotIn("\033[1m", on_terminal("--help", env={"NO_COLOR": "1"}))
        self.assertNotIn("\033[1m", on_terminal("--help", env={"TERM": "dumb"}))
        self.assertIn("\033[31mplimsoll:", on_terminal("vew"))
        told = on_terminal("plan", "resnet50", "--batch", "8", "--sweep", "--deadline", "1s")
        self.assertRegex(told, r"\d s, \d\.\d s left")
        self.assertRegex(on_terminal("run", *MLP, "--steps", "3"), r"1 of 3, \d+ s left")


if __name__ == "__main__":
    assert not (FOLDER / ".git").exists(), f"{FOLDER} is no scratch folder"  # it is emptied now
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    loader = unittest.TestLoader()
    cases = [case for case in vars().copy().values() if isinstance(case, type) and issubclass(case, unittest.TestCase)]
    wanted = [loader.loadTestsFromTestCase(case) for case in cases if case.__name__.startswith("Slow") == ("--slow" in sys.argv)]
    assert wanted, "no test was found"
    sys.exit(not unittest.TextTestRunner().run(unittest.TestSuite(wanted)).wasSuccessful())
