"""The wheel: what is in it, what its libraries ask for, and that it runs. wheel_test.py BUILD FOLDER [--install]"""
import base64
import csv
import hashlib
import os
import shutil
import subprocess
import sys
import unittest
import zipfile

BUILD, FOLDER = (os.path.abspath(p) for p in sys.argv[1:3])
INSTALL = "--install" in sys.argv
del sys.argv[1:]
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
import make_wheel  # noqa: E402

RUN = """
import plimsoll_torch, plimsoll_torch.plimsoll_ctypes as capi, os
path = os.path.join(os.path.dirname(plimsoll_torch.__file__), "libplimsoll.so.0")
plan = capi.Library(path).plan(inputs=[[], [0], [0, 1]], outputs=[[0], [1], [2]], bytes=[4096, 1024, 16], seconds=[1, 2, 1],
                               value_flags=[0, 0, capi.KEEP], techniques=capi.RECOMPUTE, budget_bytes=5200)
print("planned", plan.peak_bytes, plimsoll_torch.__file__)
"""
TRAIN = """
import torch, plimsoll_torch as pt
model = pt.compile(torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 1)), "64MiB")
model(torch.ones(8, 64)).sum().backward()
print("trained", model.plimsoll.planned_peak(), pt.__file__)
"""


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(FOLDER, ignore_errors=True)
        cls.path = make_wheel.write(BUILD, FOLDER)

    def test_every_file_is_recorded_with_its_hash(self):
        with zipfile.ZipFile(self.path) as wheel:
            names = set(wheel.namelist())
            record = next(n for n in names if n.endswith("/RECORD"))
            rows = {row[0]: row[1:] for row in csv.reader(wheel.read(record).decode().splitlines())}
            self.assertEqual(set(rows), names)
            for name in names - {record}:
                digest = base64.urlsafe_b64encode(hashlib.sha256(wheel.read(name)).digest()).rstrip(b"=").decode()
                self.assertEqual(rows[name], [f"sha256={digest}", str(len(wheel.read(name)))], name)
            self.assertIn("plimsoll_torch/libplimsoll.so.0", names)
            self.assertFalse([n for n in names if n.endswith((".cpp", ".pyc"))])

    def test_the_same_sources_give_the_same_bytes(self):
        with open(self.path, "rb") as file:
            first = file.read()
        with open(make_wheel.write(BUILD, os.path.join(FOLDER, "again")), "rb") as file:
            self.assertEqual(file.read(), first)

    def test_a_library_that_asks_for_more_than_the_tag_promises_is_refused(self):
        newest, make_wheel.NEWEST = make_wheel.NEWEST, {**make_wheel.NEWEST, "GLIBC": (2, 2)}
        try:
            self.assertTrue(any("newer than GLIBC_2.2" in p for p in make_wheel.problems_of(make_wheel.libraries(BUILD)["libplimsoll.so.0"])))
        finally:
            make_wheel.NEWEST = newest
        self.assertEqual(make_wheel.problems_of(make_wheel.libraries(BUILD)["libplimsoll.so.0"]), [])
        python = os.path.realpath(sys.executable)
        allowed, make_wheel.ALLOWED = make_wheel.ALLOWED, set()
        try:
            self.assertTrue(any("which other systems may not have" in p for p in make_wheel.problems_of(python)))
        finally:
            make_wheel.ALLOWED = allowed

    def test_it_runs_where_it_was_unpacked(self):
        place = os.path.join(FOLDER, "site")
        with zipfile.ZipFile(self.path) as wheel:
            wheel.extractall(place)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PLIMSOLL_")}
        done = subprocess.run([sys.executable, "-c", TRAIN if INSTALL else RUN], capture_output=True, text=True, cwd=FOLDER,
                              env={**environment, "PYTHONPATH": place, "PLIMSOLL_CACHE": os.path.join(FOLDER, "cache")})
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        self.assertIn(place, done.stdout)


if __name__ == "__main__":
    unittest.main()
