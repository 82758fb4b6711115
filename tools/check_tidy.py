#!/usr/bin/env python3
"""clang-tidy 14 over the C++ sources that changed, with the checks of .clang-tidy.

    tools/check_tidy.py [BASE]              what changed since BASE (a commit)
    tools/check_tidy.py --files FILE ...    all of these, whatever changed

Without BASE: since the branch left origin/main or main; on main itself, since the commit before. A changed
header is checked through the source of its name, or through one that includes it. Needs the compile commands of
`make test-separate`. Some 4 to 10 seconds a file and core, so of more than MOST files a fixed sample is checked,
and the output says so. A source with C++20 that clang 14 does not know yet is named and left out.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIDY = "clang-tidy-14"  # another version warns otherwise
BUILD = ROOT / "build/separate"
MOST = 60


def git(*arguments):
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def default_base():
    for main in ("origin/main", "main"):
        base = git("merge-base", "HEAD", main)
        if base and base != git("rev-parse", "HEAD"):
            return base
    return git("rev-parse", "--verify", "--quiet", "HEAD~1")


def compiled():
    """The sources of which the build knows how they are compiled, less those that it makes itself."""
    files = [pathlib.Path(entry["file"]) for entry in json.loads((BUILD / "compile_commands.json").read_text())]
    return {str(path.relative_to(ROOT)) for path in files
            if path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / "build")}


def sources_of(changed, known):
    out = []
    for name in changed:
        if name in known:
            out.append(name)
        elif name.endswith(".h") and (ROOT / name).exists():
            own = name[:-2] + ".cpp"
            include = f'#include "{name.removeprefix("src/")}"'
            out += [own] if own in known else [
                user for user in sorted(known) if include in (ROOT / user).read_text()][:1]
    return list(dict.fromkeys(out))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", nargs="?")
    parser.add_argument("--files", nargs="+", default=[])
    options = parser.parse_args()
    if not shutil.which(TIDY):
        sys.exit(f"{TIDY} is not installed: tools/install_packages.sh tools/packages_tidy.txt")
    if not (BUILD / "compile_commands.json").exists():
        sys.exit(f"{BUILD}/compile_commands.json is missing: make test-separate")
    changed = options.files
    if not changed:
        base = options.base or default_base()
        if not base:
            print("no earlier commit is known (a shallow clone?): nothing was checked")
            return
        changed = git("diff", "--name-only", base).split()
    known = compiled()
    files = sources_of(changed, known)
    if len(files) > MOST and not options.files:
        print(f"{len(files)} sources changed; a sample of {MOST} is checked")
        files = sorted(files, key=lambda name: zlib.crc32(name.encode()))[:MOST]  # the same ones the next time
    def check(name):
        # Small numbers that a test multiplies do not overflow.
        less = ["--checks=-bugprone-implicit-widening-of-multiplication-result"] if name.endswith("_test.cpp") else []
        done = subprocess.run([TIDY, "--quiet", "-p", BUILD, "--extra-arg=-Wno-unknown-warning-option", *less, ROOT / name],
                              capture_output=True, text=True)
        return name, done.returncode, done.stdout + (done.stderr if done.returncode else "")

    wrong = left_out = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, code, said in pool.map(check, files):
            if "[clang-diagnostic-error" in said:
                left_out += 1
                print(f"{name}: not linted, clang 14 cannot compile it", flush=True)
            elif code:
                wrong += 1
                print(f"== {name}\n{said}", flush=True)
    print(f"{len(files) - left_out} sources linted, {wrong} with warnings; {left_out} left out")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
