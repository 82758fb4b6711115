#!/usr/bin/env python3
"""What libplimsoll.so needs and shows: shared_library_test.py LIBPLIMSOLL.SO SOURCES"""
import pathlib
import re
import subprocess
import sys

LIBRARY, SOURCES = sys.argv[1], pathlib.Path(sys.argv[2])


def read(*command):
    return subprocess.run([*command, LIBRARY], capture_output=True, text=True, check=True).stdout


dynamic = read("readelf", "--dynamic", "--wide")
needed = set(re.findall(r"\(NEEDED\).*\[(.*?)\]", dynamic))
runtime = {"libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6", "ld-linux-x86-64.so.2"}
assert needed <= runtime, f"asks for {needed - runtime}"
assert re.search(r"\(SONAME\).*\[libplimsoll\.so\.\d+\]", dynamic), "has no versioned soname"

symbols = read("readelf", "--dyn-syms", "--wide")
shown = set()
for line in symbols.splitlines():
    words = line.split()
    if len(words) >= 8 and words[3] == "FUNC" and words[6] != "UND":
        shown.add(words[7].split("@")[0])
    elif len(words) >= 8 and words[3] == "OBJECT" and words[6] not in ("UND", "ABS"):
        raise SystemExit(f"shows the object {words[7]}")
headers = "".join((SOURCES / name).read_text() for name in ("plimsoll.h", "pack/pack_c.h"))
declared = set(re.findall(r"^[a-z][\w* ]*?\b(plimsoll_\w+)\(", headers, re.M)) - {"plimsoll_plan_request_new"}
assert shown == declared, f"shows and does not declare {shown - declared}, declares and does not show {declared - shown}"

versions = {tuple(map(int, text.split("."))) for text in re.findall(r"GLIBCXX_([\d.]+)", symbols)}
assert max(versions) <= (3, 4, 29), f"asks for GLIBCXX {max(versions)}"
print(f"{len(shown)} functions, GLIBCXX {'.'.join(map(str, max(versions)))}, needs {', '.join(sorted(needed))}")
