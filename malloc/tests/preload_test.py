#!/usr/bin/env python3
"""Runs malloc_probe's experiments under the preloaded allocator, each in a process of its own.

    preload_test.py LIBRARY PROBE [--slow]
"""
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import unittest

LIBRARY, PROBE = (str(pathlib.Path(p).resolve()) for p in sys.argv[1:3])
SLOW = "--slow" in sys.argv
FIRST_CALLS = ("malloc calloc realloc aligned_alloc memalign posix_memalign valloc pvalloc new medium large free "
               "malloc_usable_size malloc_trim").split()


def run(*arguments, library=LIBRARY, timeout=300, program=PROBE, limit=None, **environment):
    variables = {**os.environ, **environment}
    if library:
        variables["LD_PRELOAD"] = library
    return subprocess.run([program, *map(str, arguments)], env=variables, capture_output=True, text=True,
                          timeout=timeout,
                          preexec_fn=limit and (lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))))


class Contract(unittest.TestCase):
    """What the C library promises; also asked of glibc, to see that the questions are fair."""

    def ask(self, *arguments):
        for library in (LIBRARY, None):
            result = run(*arguments, library=library)
            self.assertEqual(result.returncode, 0, f"under {library or 'glibc'}: {result.stderr}")

    def test_zero_sizes(self):
        self.ask("zero_sizes")

    def test_overflow(self):
        self.ask("overflow")

    def test_alignments(self):
        self.ask("alignments")

    def test_every_size_with_every_alignment(self):
        result = run("sizes", 1 if SLOW else 7)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_zeroed(self):
        self.ask("zeroed")

    def test_reallocations(self):
        self.ask("reallocations")

    def test_errno_kept(self):
        self.ask("errno_kept")

    def test_operators(self):
        self.ask("operators")

    def test_libc_names(self):
        self.ask("libc_names")

    def test_every_call_as_the_first(self):
        for call in FIRST_CALLS:
            with self.subTest(call):
                self.ask("first", call)

    def test_contract_holds_in_check_mode(self):
        for name in ("zero_sizes", "overflow", "alignments", "zeroed", "reallocations", "errno_kept", "operators"):
            with self.subTest(name):
                result = run(name, PLIMSOLL_MALLOC_CHECK="1")
                self.assertEqual(result.returncode, 0, result.stderr)
        result = run("shadow", 30000, 2, PLIMSOLL_MALLOC_CHECK="1")
        self.assertEqual(result.returncode, 0, result.stderr)


class Processes(unittest.TestCase):
    def ask(self, *arguments, **environment):
        result = run(*arguments, **environment)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_threads_come_and_go(self):
        self.ask("threads_come_and_go", 4000 if SLOW else 300)

    def test_end_of_thread(self):
        self.ask("end_of_thread")

    def test_fork_under_load(self):
        self.ask("fork_under_load", 1000 if SLOW else 40)

    def test_address_limit(self):
        for size in (9000, 100000, 3 << 20):
            with self.subTest(size):
                self.ask("address_limit", size, limit=400 << 20)
                self.ask("address_limit", size, 1)

    def test_strict_overcommit(self):
        path = pathlib.Path("/proc/sys/vm/overcommit_memory")
        before = path.read_text()
        if not SLOW or not os.access(path, os.W_OK):
            self.skipTest("changes a setting of the machine; slow tests as root only")
        try:
            path.write_text("2")
            self.ask("shadow", 200000, 2)
            self.ask("zeroed")
        finally:
            path.write_text(before)

    def test_cgroup_limit(self):
        limit = 256 << 20
        for root, file in (("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")):
            if os.access(f"{root}/cgroup.procs", os.W_OK):
                group = pathlib.Path(root, f"plimsoll_test_{os.getpid()}")
                group.mkdir()
                self.addCleanup(group.rmdir)
                if (group / file).exists():
                    break
        else:
            self.skipTest("needs the right to limit the memory of a cgroup")
        (group / file).write_text(str(limit))
        command = f"echo $$ > {group}/cgroup.procs && LD_PRELOAD={LIBRARY} exec {PROBE} cgroup_limit {limit}"
        done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)

    @unittest.skipUnless(SLOW, "waits for two seconds")
    def test_gives_back(self):
        self.ask("gives_back")

    def test_shadow(self):
        self.ask("shadow", 400000, 1)
        self.ask("shadow", 400000, 3, 2)

    @unittest.skipUnless(SLOW, "minutes")
    def test_hundred_million_operations(self):
        for seed in range(4):
            self.ask("shadow", 25000000, 1 + seed, 100 + seed, timeout=3000)


class Faults(unittest.TestCase):
    """A program with a fault ends with one line that says what and where."""

    def dies(self, expected, *arguments, **environment):
        result = run(*arguments, **environment)
        self.assertEqual(result.returncode, -signal.SIGABRT, f"{arguments}: {result.stderr}")
        self.assertRegex(result.stderr, r"^plimsoll malloc: \w+\(0x[0-9a-f]+\): [^\n]+\n$")
        self.assertRegex(result.stderr, expected)

    def test_double_free(self):
        for size in (0, 16, 100, 1024, 5000, 30000, 100000, 3 << 20):
            for others_between in (0, 1):
                for heap in (0, 3000):  # blocks beside; those of a large heap are looked at later
                    with self.subTest(size=size, others_between=others_between, heap=heap):
                        self.dies("freed already", "double_free", size, others_between, heap)

    def test_double_free_by_another_thread(self):
        self.dies("freed already", "double_free_by_another_thread")
        for others in (0, 50, 5000):
            with self.subTest(others=others):
                self.dies("freed already", "double_free_by_two_threads", others)

    def test_double_free_of_exchanged_blocks(self):
        for own in (0, 1):
            for allocate_behind in (0, 1):
                with self.subTest(own=own, allocate_behind=allocate_behind):
                    self.dies("freed already", "double_free_in_exchange", own, allocate_behind)

    def test_foreign_pointers(self):
        self.dies("was not allocated here", "foreign_pointer")
        self.dies("was not allocated here", "wild_pointer")

    def test_pointers_into_blocks(self):
        self.dies("not the beginning", "inside_of_block", 3 << 20, 16)
        self.dies("not the beginning", "inside_of_block", 100000, 4096)
        self.dies("not allocated here|not the beginning", "inside_of_block", 3 << 20, 1 << 20)

    def test_check_mode_finds_overruns(self):
        check = {"PLIMSOLL_MALLOC_CHECK": "1"}
        for size in (1, 16, 100, 1000, 5000, 100001, 3000001):
            with self.subTest(size):
                self.dies("overwritten", "overrun", size, 0, **check)
        result = run("overrun", 100000, 4000, **check)
        self.assertEqual(result.returncode, -signal.SIGSEGV, result.stderr)

    def test_check_mode_finds_what_the_fast_path_does_not(self):
        check = {"PLIMSOLL_MALLOC_CHECK": "1"}
        self.dies("not the beginning", "inside_of_block", 100, 16, **check)
        self.dies("freed already", "double_free", 100, 1, **check)


class Files(unittest.TestCase):
    def test_statistics(self):
        line = run("shadow", 20000, 2, PLIMSOLL_MALLOC_STATS="1").stderr
        self.assertRegex(line, r"^plimsoll malloc: peak [\d.]+ MiB live, .* cached .* allocations; .* faults saved")
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "stats.json")
            run("threads_come_and_go", 20, PLIMSOLL_MALLOC_STATS=file)
            with open(file) as text:
                numbers = json.load(text)
        self.assertGreater(numbers["allocations"], 40000)
        self.assertGreater(numbers["remote_frees"], 1000)
        self.assertGreaterEqual(numbers["peak_held_bytes"], numbers["peak_bytes"])
        self.assertGreater(numbers["peak_resident_bytes"], 1 << 20)

    def test_trace_holds_every_large_block(self):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "t.jsonl")
            result = run("zeroed", PLIMSOLL_MALLOC_TRACE=file)
            self.assertEqual(result.returncode, 0, result.stderr)
            with open(file) as text:
                events = [json.loads(line) for line in text]
        self.assertEqual(events[0], {"plimsoll_trace": 1, "source": "plimsoll malloc"})
        live = {}
        for event in events[1:]:
            if event["kind"] == "allocation":
                self.assertNotIn(event["address"], live)
                live[event["address"]] = event["bytes"]
            else:
                live.pop(event["address"])
        sizes = [e["bytes"] for e in events[1:] if e["kind"] == "allocation"]
        for size in (40000, 300000, 3 << 20, 33 << 20):
            self.assertEqual(sizes.count(size), 24)  # 4 rounds of 3 mallocs and 3 callocs

    def test_depends_on_the_c_library_alone(self):
        needed = subprocess.run(["readelf", "-d", LIBRARY], capture_output=True, text=True, check=True).stdout
        self.assertEqual(set(re.findall(r"NEEDED.*\[(.*)\]", needed)) - {"ld-linux-x86-64.so.2"}, {"libc.so.6"})

    def test_exports_only_what_is_meant(self):
        symbols = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
        names = {line.split()[-1] for line in symbols.splitlines()}
        operators = {n for n in names if n.startswith(("_Zn", "_Zd"))}
        self.assertEqual(len(operators), 20, operators)
        others = {n for n in names - operators if not n.startswith("plimsoll_")}
        self.assertEqual(others, set("""malloc free calloc realloc aligned_alloc memalign posix_memalign valloc pvalloc cfree
            malloc_usable_size malloc_trim malloc_stats free_sized free_aligned_sized __libc_malloc __libc_free __libc_calloc
            __libc_realloc __libc_memalign __libc_valloc __libc_pvalloc __libc_cfree __posix_memalign""".split()))

    def test_thread_local_storage_is_one_word(self):
        headers = subprocess.run(["readelf", "-lW", LIBRARY], capture_output=True, text=True, check=True).stdout
        tls = re.search(r"^\s*TLS\s+\S+\s+\S+\s+\S+\s+\S+\s+(0x[0-9a-f]+)", headers, re.M)
        self.assertEqual(int(tls.group(1), 16), 8)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-q"])
