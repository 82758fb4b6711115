#!/usr/bin/env python3
"""Writes the wheel of plimsoll_torch: Python and two libraries in plain C, no compiler needed where it is installed.

    make_wheel.py --build build/release --out build/wheel

A wheel is a zip of files and their hashes, so Python's standard library is enough. What is inside is checked first: the
platform tag promises glibc 2.34, so no library may ask for newer symbols, for a newer libstdc++ than GLIBCXX_3.4.29, or
for any library that such a system may not have. The same sources give the same bytes.
"""
import argparse
import base64
import hashlib
import os
import re
import subprocess
import sys
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TAG = "py3-none-manylinux_2_34_x86_64"
NEWEST = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13), "GCC": (12, 0)}
ALLOWED = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2"}


def problems_of(library):
    """What keeps a library from running on every system that the tag promises."""
    found = []
    dynamic = subprocess.run(["readelf", "--dynamic", "--wide", library], check=True, capture_output=True, text=True).stdout
    for needed in re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic):
        if needed not in ALLOWED:
            found.append(f"{library}: needs {needed}, which other systems may not have")
    versions = subprocess.run(["readelf", "--version-info", "--wide", library], check=True, capture_output=True, text=True).stdout
    for kind, text in sorted(set(re.findall(r"Name: (GLIBC|GLIBCXX|CXXABI|GCC)_([0-9.]+)", versions))):
        if tuple(map(int, text.split("."))) > NEWEST[kind]:
            found.append(f"{library}: asks for {kind}_{text}, newer than {kind}_{'.'.join(map(str, NEWEST[kind]))} of {TAG}")
    return found


def version():
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
        return re.search(r"project\(plimsoll[^)]*VERSION\s+([0-9.]+)", file.read(), re.S).group(1)


def libraries(build):
    """The planner, and the allocator where it was built for CUDA."""
    planner = os.path.join(build, "src", "plimsoll", "capi", "libplimsoll.so.0")
    if not os.path.exists(planner):
        sys.exit(f"{planner}: is not there; build the target plimsoll_shared")
    found = {"libplimsoll.so.0": planner}
    for preset in ("cuda",):
        plugin = os.path.join(os.path.dirname(build), preset, "torch", "libplimsoll_torch.so")
        if os.path.exists(plugin):
            found["libplimsoll_torch.so"] = plugin
    return found


def metadata(number):
    with open(os.path.join(ROOT, "torch", "README.md"), encoding="utf-8") as file:
        readme = file.read()
    return (f"Metadata-Version: 2.1\nName: plimsoll_torch\nVersion: {number}\nSummary: PyTorch with a memory budget\n"
            f"Requires-Python: >=3.10\nRequires-Dist: torch>=2.11\nDescription-Content-Type: text/markdown\n\n{readme}")


def contents(build):
    number = version()
    info = f"plimsoll_torch-{number}.dist-info"
    package = os.path.join(ROOT, "torch", "plimsoll_torch")
    files = {}
    for name in sorted(os.listdir(package)):
        if name.endswith(".py"):
            with open(os.path.join(package, name), "rb") as file:
                files[f"plimsoll_torch/{name}"] = file.read()
    for name, path in libraries(build).items():
        with open(path, "rb") as file:
            files[f"plimsoll_torch/{name}"] = file.read()
    files[f"{info}/METADATA"] = metadata(number).encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: plimsoll\nRoot-Is-Purelib: false\nTag: {TAG}\n".encode()
    with open(os.path.join(ROOT, "LICENSE"), "rb") as file:
        files[f"{info}/LICENSE"] = file.read()
    digest = lambda data: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    record = [f"{name},sha256={digest(data)},{len(data)}" for name, data in files.items()] + [f"{info}/RECORD,,"]
    files[f"{info}/RECORD"] = ("\n".join(record) + "\n").encode()
    return number, files


def write(build, out):
    problems = [p for library in libraries(build).values() for p in problems_of(library)]
    if problems:
        sys.exit("\n".join(problems))
    number, files = contents(build)
    os.makedirs(out, exist_ok=True)
    path = os.path.join(out, f"plimsoll_torch-{number}-{TAG}.whl")
    with zipfile.ZipFile(path + ".new", "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            entry.external_attr = (0o755 if ".so" in name else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    os.replace(path + ".new", path)
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--out", default=os.path.join(ROOT, "build", "wheel"))
    given = parser.parse_args()
    print(write(os.path.abspath(given.build), given.out))
