#!/usr/bin/env python3
"""Every file that a document names is there.

Documents name files in backticks (`schedule/fit.h`, `tools/figures.py --list`) and in links. A word in backticks is taken
for a path when it ends like a source file or begins with a folder of the repository or of src/plimsoll. A path is looked
up from the root, from src/ and from src/plimsoll/; a source file without a folder must be somewhere. Programs
(`build/release/bin/pack_bench`) must have a source or a module. Fenced blocks are not read: documents_test.py runs them.
Tests that a document names by a filter (`--gtest_filter='PlanSet*'`) must exist.
"""
import fnmatch
import functools
import pathlib
import re
import shutil
import subprocess
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SOURCE_FILE = re.compile(r"\.(h|c|cpp|cu|cmake|py|sh|js|css|md|txt|supp)$")
PLACEHOLDER = re.compile(r"[<>*$…{}]|[A-Z]{3,}/|/[A-Z]{3,}|\.\.\.|…")


@functools.cache
def tree():
    """(files, folders) of the repository, as paths from its root."""
    git = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(git, cwd=SOURCE, capture_output=True, text=True).stdout if shutil.which("git") else ""
    files = {path for path in listed.splitlines() if (SOURCE / path).exists()}
    if not files:  # an unpacked archive
        found = (path.relative_to(SOURCE) for path in SOURCE.rglob("*") if path.is_file())
        files = {str(path) for path in found if path.parts[0] not in ("build", "out", ".git")}
    folders = {str(parent) for path in files for parent in pathlib.PurePath(path).parents}
    return files, folders


def is_there(path):
    files, folders = tree()
    path = path.rstrip("/")
    return any(base + path in files or base + path in folders for base in ("", "src/", "src/plimsoll/"))


def has_source(program):
    files, folders = tree()
    stem = program.removesuffix("_test")
    return (f"src/plimsoll/{stem}" in folders or stem in folders or any(path.endswith(f"/{program}.cpp") for path in files)
            or any(program in (SOURCE / path).read_text() for path in files if path.endswith("CMakeLists.txt")))


def missing_paths(text):
    """What the backticks of a document name and nobody has."""
    files, folders = tree()
    first_folders = {path for path in folders if "/" not in path} | {path.split("/")[2] for path in folders if path.startswith("src/plimsoll/")}
    out = []
    for quoted in re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)):
        for word in quoted.split():
            word = word.strip(",;:()'\"").split("#")[0]
            if PLACEHOLDER.search(word) or word.startswith(("-", "/", "~", "http")) or "=" in word:
                continue
            program = re.fullmatch(r"build/\w+/bin/(\w+)", word)
            if program:
                out += [] if has_source(program[1]) else [word]
            elif word.startswith(("build/", "out/")):
                continue
            elif "/" not in word:
                if SOURCE_FILE.search(word) and not word.startswith(".") and len(quoted.split()) == 1:
                    out += [] if any(path == word or path.endswith("/" + word) for path in files) else [word]
            elif SOURCE_FILE.search(word) or word.split("/")[0] in first_folders - {"."}:
                out += [] if is_there(word) else [word]
    return out


@functools.cache
def tests():
    """Names of GoogleTest's tests, of those with parameters as SOMETHING/SUITE.NAME/0."""
    sources = (SOURCE / path for path in tree()[0] if path.endswith("_test.cpp"))
    found = (match for path in sources for match in re.findall(r"\bTEST(|_F|_P)\(\s*(\w+),\s*(\w+)", path.read_text()))
    return {f"Some/{suite}.{name}/0" if kind == "_P" else f"{suite}.{name}" for kind, suite, name in found}


def missing_tests(text):
    """Parts of filters that match no test."""
    wanted = [part for found in re.findall(r"gtest_filter=['\"]?([^`'\"\s)]+)", text) for part in found.split("-")[0].split(":")]
    return [part for part in wanted if not fnmatch.filter(tests(), part)]


def anchors(text):
    """What GitHub makes of the headings."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()).replace(" ", "-") for heading in headings}


def missing_links(document, text):
    """Links to files and headings that are not there."""
    out = []
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)):
        if target.startswith(("http", "mailto")):
            continue
        path, _, anchor = target.partition("#")
        file = (document.parent / path).resolve() if path else document
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file.read_text())):
            out.append(target)
    return out


def documents():
    return [path for path in (SOURCE / name for name in sorted(tree()[0])) if path.suffix == ".md" and path.name != "CHANGELOG.md"]


class Documents(unittest.TestCase):
    def test_every_path_is_there(self):
        self.assertGreater(len(documents()), 20)
        wrong = [f"{path.relative_to(SOURCE)}: {word}" for path in documents() for word in missing_paths(path.read_text())]
        self.assertEqual(wrong, [])

    def test_every_link_leads_somewhere(self):
        wrong = [f"{path.relative_to(SOURCE)}: {target}" for path in documents() for target in missing_links(path, path.read_text())]
        self.assertEqual(wrong, [])


    def test_every_filter_names_tests(self):
        self.assertGreater(len(tests()), 1000)
        wrong = [f"{path.relative_to(SOURCE)}: {part}" for path in documents() for part in missing_tests(path.read_text())]
        self.assertEqual(wrong, [])


class Planted(unittest.TestCase):
    """Each kind of wrong name is found, and right ones are not."""

    def test_wrong_paths(self):
        for wrong in ("schedule/nowhere.h", "src/plimsoll/nowhere/fit.h", "nowhere/fit.h", "nowhere.cpp", "pack/nowhere", "tools/nowhere.py --list",
                      "build/release/bin/nowhere_bench 4", "ninja -C build/release && build/release/bin/nowhere_test"):
            self.assertEqual(len(missing_paths(f"begin at `{wrong}`, then")), 1, wrong)

    def test_right_paths(self):
        for right in ("schedule/fit.h", "plimsoll/schedule/fit.h", "src/plimsoll/schedule/fit.h", "fit.h", "pack/", "tools/figures.py --list", "build/release/bin/schedule_test",
                      "kernels/cpu/<op>.cpp", "report.html", "1/32", "plan.json", "native/other"):
            self.assertEqual(missing_paths(f"begin at `{right}`, then"), [], right)
        self.assertEqual(missing_paths("```\n`nowhere/fit.h`\n```\n"), [])

    def test_filters(self):
        self.assertEqual(missing_tests("`api_test --gtest_filter=SlowRanks*` and `--gtest_filter='PlanSet*:Nobody.*'`"), ["SlowRanks*", "Nobody.*"])

    def test_wrong_links(self):
        readme = SOURCE / "README.md"
        self.assertEqual(missing_links(readme, "[a](docs/nowhere.md) [b](docs/planning.md#nowhere) [c](docs/planning.md#sizes) [d](ARCHITECTURE.md)"),
                         ["docs/nowhere.md", "docs/planning.md#nowhere"])


if __name__ == "__main__":
    unittest.main()
