#!/usr/bin/env python3
"""tools/dag_from_node_link.py: what it converts, and a sentence for what it cannot."""
import json
import pathlib
import subprocess
import sys
import tempfile

TOOL = sys.argv[1]
node = lambda name, **more: {"id": name, "cost_cpu": 5, "cost_ram": 7} | more
good = {"nodes": [node(0), node(1), {"id": "x", "seconds": 2.5, "bytes": 3}], "links": [{"source": 0, "target": 1}],
        "graph": {"order": [0, 1, "x"]}}
faults = [
    ("[]", "not an object"), ("{", "is not JSON"), ("[" * 100000, "is not JSON"), ("{}", "has none of nodes"),
    ({"nodes": 3}, "nodes: is not a list"), ({"nodes": [3]}, "node 0: is 3"), ({"nodes": [{}]}, "has none of id, name"),
    ({"nodes": [{"id": 0}]}, "has none of cost_cpu, duration"), ({"nodes": [node(0, cost_cpu="x")]}, 'cost_cpu is "x"'),
    ({"nodes": [node(0, cost_ram=-1)]}, "not a number of 0 or more"), ({"nodes": [node(0), node(0)]}, "is there twice"),
    ({"nodes": [node(0)]}, "has none of links, edges"), ({"nodes": [node(0)], "links": [{}]}, "link 0: has none of target"),
    ({"nodes": [node(0)], "links": [{"target": 0, "source": 9}]}, "link 0: there is no node 9"),
    ({"nodes": [node(0)], "links": [{"target": [], "source": 0}]}, "there is no node []"),
    (good | {"graph": {"order": [7]}}, "graph.order: there is no node 7"), (good | {"graph": {"order": 7}}, "graph.order: is not a list"),
]

with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "graph.json"

    def run(content):
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return subprocess.run([sys.executable, TOOL, path], capture_output=True, text=True)

    done = json.loads(run(good).stdout)
    assert done["nodes"][1] == {"name": "n1", "seconds": 5 * 1e-6, "bytes": 7, "inputs": ["n0"]}, done
    assert done["nodes"][2]["seconds"] == 2.5 and done["order"] == ["n0", "n1", "nx"], done
    for content, words in faults:
        done = run(content)
        assert done.returncode == 1 and "Traceback" not in done.stderr, (words, done.stderr)
        assert words in done.stderr and str(path) in done.stderr, (words, done.stderr)
    gone = subprocess.run([sys.executable, TOOL, folder + "/none"], capture_output=True, text=True)
    assert gone.returncode == 1 and "No such file" in gone.stderr and "Traceback" not in gone.stderr
print(f"{len(faults)} faults, each a sentence")
