#!/usr/bin/env python3
"""Runs every GoogleTest program of a build in shards, side by side: what a sanitizer preset needs to end in minutes on many cores.

  python3 tools/run_shards.py build/asan [--jobs N] [--shards 8] [--timeout 900] [--within SECONDS] [--only NAME,...] [--logs DIR] [--json]

Quick suites only, as `make test` runs them (no Slow*, no Cuda*). A row a program: shards that passed, tests that ran, and for every shard that
did not pass the first line that says why (a sanitizer's summary, a failed test, the time limit). The logs of those shards stay in --logs. --within
is the time for all of them: what has not ended by then counts as not passed. Exit status 1 where a shard did not pass."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
QUICK = "--gtest_filter=-Slow*:*/Slow*:Cuda*:*/Cuda*"
REASON = re.compile(rb"SUMMARY: .*|.*runtime error: .*|\[  FAILED  \] .*|.*PLIMSOLL_CHECK.*|terminate called.*")


def environment(build):
    """As the tests of ctest have it: libgomp is built without ThreadSanitizer."""
    cache = (build / "CMakeCache.txt").read_text()
    answer = dict(os.environ, GOMP_SPINCOUNT="1000", UBSAN_OPTIONS="print_stacktrace=1")
    if re.search(r"PLIMSOLL_SANITIZE:\w+=.*thread", cache):
        answer.update(OMP_THREAD_LIMIT="1", TSAN_OPTIONS=f"suppressions={ROOT}/tools/tsan.supp")
    return answer


def run(program, shard, options, variables):
    begin = time.monotonic()
    limit = min(options.timeout, options.end - begin)
    variables = dict(variables, GTEST_TOTAL_SHARDS=str(options.shards), GTEST_SHARD_INDEX=str(shard))
    log = options.logs / f"{program.name}.{shard}.log"
    with open(log, "wb") as out:
        try:
            status = subprocess.run([program, QUICK, "--gtest_brief=1"], stdout=out, stderr=subprocess.STDOUT, env=variables, timeout=max(limit, 0)).returncode
        except subprocess.TimeoutExpired:
            status = "time limit"
    text = log.read_bytes()
    reported = REASON.search(text)  # undefined behaviour is reported without ending the program
    tests = sum(map(int, re.findall(rb"\[==========\] (\d+) tests? ", text)))
    passed = status == 0 and not (reported and b"runtime error" in reported[0])
    if passed:
        log.unlink()
    why = None if passed else (reported[0].decode(errors="replace")[:300] if reported else f"status {status}")
    return {"program": program.name, "shard": shard, "passed": passed, "tests": tests, "seconds": round(time.monotonic() - begin, 1), "why": why}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--timeout", type=float, default=900)
    parser.add_argument("--within", type=float, default=float("inf"))
    parser.add_argument("--only", default="")
    parser.add_argument("--logs", type=pathlib.Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    options.end = time.monotonic() + options.within
    options.logs = options.logs or options.build / "shards"
    options.logs.mkdir(parents=True, exist_ok=True)
    only = set(filter(None, options.only.split(",")))
    programs = [path for path in sorted((options.build / "bin").glob("*_test")) if (not only or path.name in only) and "cuda" not in path.name]
    if not programs:
        sys.exit(f"{options.build}/bin has no test programs: cmake --build {options.build} --target unit_tests")
    variables = environment(options.build)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(lambda pair: run(*pair, options, variables), [(program, shard) for shard in range(options.shards) for program in programs]))
    failed = [row for row in rows if not row["passed"]]
    if options.json:
        print(json.dumps({"shards": len(rows), "passed": len(rows) - len(failed), "tests": sum(row["tests"] for row in rows), "failed": failed}))
    else:
        for program in programs:
            of_it = [row for row in rows if row["program"] == program.name]
            print(f"{program.name:28} {sum(row['passed'] for row in of_it)} of {len(of_it)} shards, {sum(row['tests'] for row in of_it)} tests, "
                  f"{sum(row['seconds'] for row in of_it):.0f} s")
        for row in failed:
            print(f"FAILED {row['program']} shard {row['shard']} after {row['seconds']} s: {row['why']}")
        print(f"{len(rows) - len(failed)} passed, {len(failed)} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
