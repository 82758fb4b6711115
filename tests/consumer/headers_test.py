#!/usr/bin/env python3
"""Every installed header compiles by itself: headers_test.py BUILD CXX CC WORK

A header that counts on another being included before it works in our sources and fails in those of others.
"""
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys

BUILD, CXX, CC, WORK = sys.argv[1:5]
shutil.rmtree(WORK, ignore_errors=True)
subprocess.run(["cmake", "--install", BUILD, "--prefix", WORK, "--component", "library"], check=True, capture_output=True)
root = pathlib.Path(WORK) / "include"
headers = sorted(path.relative_to(root) for path in root.rglob("*.h"))
# The parts of templates that their own header includes at its end are no headers of their own.
headers = [header for header in headers if not header.name.endswith("_inl.h")]
assert len(headers) > 150, f"only {len(headers)} headers are installed"


def compile(header):
    text = f"#include <{header}>\n"
    in_c = header.name in ("plimsoll.h", "pack_c.h")
    commands = [[CXX, "-std=c++20", "-x", "c++"]] + ([[CC, "-std=c11", "-Wpedantic", "-Wextra", "-x", "c"]] if in_c else [])
    faults = []
    for command in commands:
        done = subprocess.run([*command, "-Wall", "-Werror", "-fsyntax-only", f"-I{root}", "-"], input=text, capture_output=True, text=True)
        if done.returncode:
            faults.append(f"{header}: {done.stderr[:1500]}")
    return faults


with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    faults = [fault for found in pool.map(compile, headers) for fault in found]
print("\n".join(faults))
print(f"{len(headers)} headers compiled, {len(faults)} do not stand alone")
sys.exit(1 if faults else 0)
