#!/usr/bin/env python3
"""Every source in C and C++ is as clang-format 14 writes it, and no line is wider than 100 columns.

    tools/check_format.py [FILE ...]        without files: all that git knows or would take

clang-format leaves comments and strings alone (ReflowComments: false, because it wrecks drawings), so
the width is checked here as well. `make format` mends what clang-format can.
"""
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FORMAT = "clang-format-14"  # another version formats otherwise
COLUMNS = 100
SUFFIXES = ("h", "c", "cpp", "cu")


def sources():
    # New files too: what is only seen after the commit is seen too late.
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard",
                             *(f"*.{suffix}" for suffix in SUFFIXES)], capture_output=True, text=True)
    names = listed.stdout.split()
    if names:
        return [name for name in names if (ROOT / name).exists()]
    return [str(path.relative_to(ROOT)) for suffix in SUFFIXES
            for path in ROOT.rglob(f"*.{suffix}") if "build" not in path.relative_to(ROOT).parts[0]]


def main():
    if not shutil.which(FORMAT):
        sys.exit(f"{FORMAT} is not installed: make deps")
    names = sys.argv[1:] or sources()
    if len(names) < 1:
        sys.exit("no sources found: nothing was checked")
    wide = [f"{name}:{number}: {len(line)} columns, at most {COLUMNS}"
            for name in names
            for number, line in enumerate((ROOT / name).read_text().splitlines(), 1)
            if len(line) > COLUMNS]
    print(*wide, sep="\n", end="\n" if wide else "")
    format_check = subprocess.run([FORMAT, "--dry-run", "-Werror", "--ferror-limit=1", *names], cwd=ROOT)
    if wide or format_check.returncode:
        sys.exit("not formatted: run `make format`, and shorten by hand what is still too wide")
    print(f"{len(names)} sources are formatted")


if __name__ == "__main__":
    main()
