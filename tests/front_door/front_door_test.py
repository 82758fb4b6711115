#!/usr/bin/env python3
"""The command line as a newcomer, a shell and a program meet it.

    front_door_test.py PLIMSOLL WORK_FOLDER

Help on one screen, examples and JSON for every verb, exit codes, suggestions for misspelt words, sizes,
completion in real shells, the manual through groff where there is one, and what a terminal gets that a
pipe does not.
"""
import json
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import unittest

PROGRAM = os.path.abspath(sys.argv[1])
FOLDER = pathlib.Path(sys.argv[2]).resolve()
MLP = ["mlp", "--batch", "4"]
DAG = {"nodes": [{"name": "a", "seconds": 1, "bytes": 4096}, {"name": "b", "seconds": 2, "bytes": 1024, "inputs": ["a"], "keep": True}], "order": ["a", "b"]}


def run(*arguments, env=None):
    return subprocess.run([PROGRAM, *arguments], cwd=FOLDER, capture_output=True, text=True, env={**os.environ, **(env or {})})


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
            self.assertIn(f"  plimsoll {verb}", text.split("Examples:")[1].split("Options:")[0], verb)
            self.assertIn("--json", text, verb)

    def test_every_verb_prints_one_json_object_with_a_schema(self):
        (FOLDER / "dag.json").write_text(json.dumps(DAG))
        (FOLDER / "problem.csv").write_text("id,lower,upper,size\na,0,3,4\nb,3,9,4\n")
        calls = {"models": [], "graph": MLP, "memory": MLP, "run": [*MLP, "--steps", "1", "--trace", "run.jsonl"], "plan": [*MLP, "-o", "plan.json"],
                 "check": ["plan.json"], "pack": ["problem.csv"], "replay": ["run.jsonl"], "convert": ["run.jsonl", "-o", "run.pickle"],
                 "view": ["plan.json", "-o", "plan.html"], "diff": ["plan.json", "plan.json"], "explain": ["plan.json"], "completion": ["bash"], "man": []}
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


class Errors(unittest.TestCase):
    def refuses(self, code, words, *arguments):
        done = run(*arguments)
        self.assertEqual(done.returncode, code, (arguments, done.stderr))
        self.assertEqual(done.stdout, "")
        for word in words:
            self.assertIn(word, done.stderr)

    def test_misspelt_words_suggest_the_nearest(self):
        self.refuses(2, ["did you mean view?"], "vew", "plan.json")
        self.refuses(2, ["did you mean --batch?"], "plan", "mlp", "--bacth", "8")
        self.refuses(2, ["did you mean 'resnet50'?"], "plan", "resnet5")
        self.refuses(2, ["did you mean plan?"], "man", "pln")

    def test_every_wrong_command_line_is_exit_code_2(self):
        for arguments in ([], ["plan"], ["view"], ["--nonsense"], ["plan", "mlp", "--batch", "x"], ["plan", "mlp", "--streams", "99"], ["graph", "mlp", "--json", "--dot"],
                          ["plan", "mlp", "--budget", "12QB"], ["plan", "mlp", "--order", "x"], ["check", "a", "b", "c"], ["completion", "tcsh"]):
            self.refuses(2, ["plimsoll: "], *arguments)

    def test_other_codes(self):
        self.refuses(3, ["nothing.json"], "view", "nothing.json")
        (FOLDER / "broken.json").write_text('{"kind": "plimsoll plan", "schema": 1')
        self.refuses(3, ["broken.json"], "check", "broken.json")
        self.assertEqual(run("check", *MLP, "--max-peak", "1KiB").returncode, 4)
        self.assertEqual(run("plan", *MLP, "--budget", "1KiB").returncode, 4)

    def test_a_file_is_written_whole_or_not_at_all(self):
        self.assertEqual(run("view", "mlp", "-o", "no/such/folder/report.html").returncode, 3)


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
        self.assertEqual(self.complete("plimsoll", "plan", "gpt2", "--bu"), ["--budget", "--bucket"])
        self.assertEqual(self.complete("plimsoll", "plan", "--order", "n"), ["natural"])
        self.assertIn("resnet50", self.complete("plimsoll", "plan", "res"))
        self.assertEqual(self.complete("plimsoll", "view", "--svg", "x"), [])  # bash goes on with files
        self.assertEqual(sorted(self.complete("plimsoll", "")), sorted([*verbs(), "--help", "--version", "--log-level"]))

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_takes_the_script(self):
        script = 'autoload -Uz compinit; compinit -u -D; source <("$0" completion zsh); whence -w _plimsoll'
        done = subprocess.run(["zsh", "-f", "-c", script, PROGRAM], capture_output=True, text=True)
        self.assertEqual(done.stdout.strip(), "_plimsoll: function", done.stderr)
        self.assertEqual(done.stderr, "")

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_the_manual_is_without_warnings_and_names_every_option(self):
        page = run("man").stdout
        shown = subprocess.run(["groff", "-man", "-Tascii", "-ww"], input=page, capture_output=True, text=True)
        self.assertEqual(shown.stderr, "")
        for verb in verbs():
            self.assertIn(f"plimsoll {verb}", page)
        self.assertIn("\\-\\-budget", page)


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
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    unittest.main(argv=sys.argv[:1])
