#!/usr/bin/env python3
"""Real programs under the preloaded allocator, each with its own tests or a known answer.

    programs_test.py LIBRARY SOURCE_FOLDER [--python a-python-with-torch]

A program that is not installed is skipped by name. Every answer is also asked for under glibc, and compared.
"""
import hashlib
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

LIBRARY, SOURCE = (str(pathlib.Path(p).resolve()) for p in sys.argv[1:3])
TORCH = sys.argv[sys.argv.index("--python") + 1] if "--python" in sys.argv else None


def run(command, library=None, timeout=900, **options):
    environment = dict(os.environ)
    environment.pop("LD_PRELOAD", None)
    if library:
        environment["LD_PRELOAD"] = library
    return subprocess.run(command, env=environment, capture_output=True, timeout=timeout, **options)


class Programs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def need(self, program):
        found = shutil.which(program)
        if not found:
            self.fail(f"{program} is not installed: tools/install_packages.sh tools/packages_slow.txt")
        return found

    def same(self, command, **options):
        """The command succeeds, and says the same as under glibc."""
        ours = run(command, LIBRARY, **options)
        self.assertEqual(ours.returncode, 0, ours.stderr.decode(errors="replace")[-2000:])
        theirs = run(command, **options)
        self.assertEqual(hashlib.sha256(ours.stdout).hexdigest(), hashlib.sha256(theirs.stdout).hexdigest())
        return ours.stdout

    def test_python_runs_its_own_tests(self):
        python = "/usr/bin/python3"
        if run([python, "-c", "import test.test_list"]).returncode != 0:
            self.fail("libpython3.11-testsuite is not installed: tools/install_packages.sh tools/packages_slow.txt")
        tests = "test_list test_dict test_set test_bytes test_unicode test_json test_re test_struct test_array test_memoryview test_threading test_zlib test_pickle test_gc test_weakref".split()
        done = run([python, "-m", "test", "-j1", *tests], LIBRARY, cwd=self.folder.name)
        text = done.stdout.decode(errors="replace")
        self.assertIn("result: SUCCESS", text.replace("Result", "result"), text[-3000:])

    def test_compiler_compiles_this_project(self):
        compiler = self.need("g++")
        objects = []
        for library in (LIBRARY, None):
            out = self.path(f"{bool(library)}.o")
            done = run([compiler, "-std=c++20", "-O1", "-I", f"{SOURCE}/src", "-c", f"{SOURCE}/src/plimsoll/pack/heuristics/skyline.cpp",
                        "-o", out], library, cwd=self.folder.name)
            self.assertEqual(done.returncode, 0, done.stderr.decode()[-2000:])
            objects.append(pathlib.Path(out).read_bytes())
        self.assertEqual(objects[0], objects[1])

    def test_git_fsck(self):
        git = self.need("git")
        clone = self.path("clone")
        done = run([git, "clone", "-q", "--no-hardlinks", SOURCE, clone], LIBRARY)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        for command in (["fsck", "--full", "--strict"], ["gc", "-q", "--prune=now"], ["fsck", "--full"]):
            done = run([git, "-C", clone, *command], LIBRARY)
            self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.same([git, "-C", clone, "log", "--stat", "-p", "-5"])

    def test_sqlite(self):
        sqlite = self.need("sqlite3")
        script = b"""
            create table t(k integer primary key, v text, w blob);
            with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000)
                insert into t select i, printf('value %d of many', i * 7919 % 60000), zeroblob(i % 300) from n;
            create index by_v on t(v);
            select count(*), sum(length(v)), sum(length(w)) from t;
            select v, k from t order by v desc limit 20;
            delete from t where k % 3 = 0;
            select group_concat(v, ',') from (select v from t order by v limit 5000);
            pragma integrity_check;
        """
        self.assertIn(b"\nok\n", self.same([sqlite, ":memory:"], input=script))

    def test_redis(self):
        server, client, bench = map(self.need, ("redis-server", "redis-cli", "redis-benchmark"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        environment = {**os.environ, "LD_PRELOAD": LIBRARY}
        process = subprocess.Popen([server, "--port", port, "--save", "", "--dir", self.folder.name, "--io-threads", "2"],
                                   env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            for _ in range(100):
                if run([client, "-p", port, "ping"]).stdout == b"PONG\n":
                    break
                time.sleep(0.1)
            done = run([bench, "-p", port, "-q", "-n", "20000", "-r", "10000", "-d", "500", "-t",
                        "set,get,incr,lpush,rpop,sadd,hset,zadd,lrange_100,mset"], timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr.decode())
            self.assertEqual(run([client, "-p", port, "bgsave"]).returncode, 0)  # forks under load
            self.assertGreater(int(run([client, "-p", port, "dbsize"]).stdout), 1000)
            run([client, "-p", port, "shutdown", "nosave"])
            self.assertEqual(process.wait(30), 0)
        finally:
            process.kill()
            process.stderr.close()

    def test_perl(self):
        script = r'''my %h; for my $i (1..200000) { $h{"key " . ($i * 7919 % 100003)} .= chr(65 + $i % 26); }
                     my @k = sort { $h{$a} cmp $h{$b} || $a cmp $b } keys %h; print scalar(@k), " $k[0] $k[-1] ";
                     my $t = join "", map { $h{$_} } @k; $t =~ s/([AEIOU])/<$1>/g; print length $t, "\n"; if (fork == 0) { exit 0 } wait; print $?;'''
        self.same([self.need("perl"), "-e", script])

    def test_node(self):
        script = """const m = new Map(); for (let i = 0; i < 300000; i++) m.set('k' + i * 7919 % 100003, {i, a: [i, i + 1]});
                    const zlib = require('zlib'); const b = Buffer.alloc(3 << 20, 'plimsoll line ');
                    const z = zlib.gzipSync(b); console.log(m.size, zlib.gunzipSync(z).equals(b));
                    const {Worker} = require('worker_threads'); let left = 3;
                    for (let i = 0; i < 3; i++) new Worker('require("worker_threads").parentPort.postMessage(Buffer.alloc(1e6).length)', {eval: true})
                      .on('message', n => { if (--left == 0) console.log(n); });"""
        self.assertIn(b"100003 true", self.same([self.need("node"), "-e", script]))

    def test_ghostscript(self):
        program = self.need("gs")
        page = b"""%!PS
            /Times-Roman findfont 24 scalefont setfont
            0 1 60 { /i exch def gsave i 8 mul 60 add i 11 mul 50 add translate i 6 mul rotate 0 0 moveto (Plimsoll line) show
            i 60 div 0 1 sethsbcolor 0 0 40 0 360 arc fill grestore } for showpage"""
        pathlib.Path(self.path("page.ps")).write_bytes(page)
        self.same([program, "-q", "-dBATCH", "-dNOPAUSE", "-sDEVICE=ppmraw", "-r150", "-sOutputFile=-", self.path("page.ps")])

    def test_bash_with_many_forks(self):
        self.same(["bash", "-c", 'for i in $(seq 300); do x=$(echo $((i * i))); a[$i]=$x; done; echo ${a[*]} | md5sum; seq 50000 | sort -R --random-source=/bin/bash | sort -n | tail -1'])

    def test_pytorch_trains_the_same(self):
        if TORCH is None or run([TORCH, "-c", "import torch, torchvision"]).returncode != 0:
            self.skipTest("no Python with torch and torchvision was named")
        script = """
import torch
torch.manual_seed(0); torch.set_num_threads(2)
net = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3), torch.nn.BatchNorm2d(32), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(32 * 30 * 30, 10))
optimizer = torch.optim.AdamW(net.parameters())
data = torch.randn(64, 3, 32, 32); labels = torch.randint(0, 10, (64,))
for step in range(8):
    loss = torch.nn.functional.cross_entropy(net(data), labels)
    optimizer.zero_grad(); loss.backward(); optimizer.step(); print(repr(loss.item()))
"""
        self.same([TORCH, "-c", script])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
