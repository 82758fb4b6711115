#!/usr/bin/env python3
"""Plans a graph made with networkx under a budget, in the process: no file, no other program.

    plan_networkx.py LIBPLIMSOLL.SO [GRAPH.json] [--budget 60%]

Nodes have `seconds` and `bytes`, an edge from a to b says that b reads what a makes. With GRAPH.json (networkx'
node-link form) the graph is read from there; without it a small training step is made.
"""
import argparse
import json
import sys

from plimsoll_ctypes import FREE, KEEP, RECOMPUTE, RECOMPUTED, Library, PlanError

try:
    import networkx
except ImportError:
    sys.exit("networkx is missing, which this example makes its graph with: apt-get install python3-networkx")


def training_step(layers):
    """Layers forward, then their gradients: each reads the gradient before it and what its layer made."""
    graph = networkx.DiGraph()
    for i in range(layers):
        graph.add_node(f"layer {i}", seconds=1e-3, bytes=1 << 20)
        graph.add_node(f"gradient {i}", seconds=2e-3, bytes=1 << 18)
        graph.add_edge(f"layer {i}", f"gradient {i}")
        if i > 0:
            graph.add_edge(f"layer {i - 1}", f"layer {i}")
            graph.add_edge(f"gradient {i}", f"gradient {i - 1}")
    return graph


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("graph", nargs="?")
    parser.add_argument("--budget", type=lambda text: float(text.rstrip("%")) / 100, default=0.6, metavar="PERCENT")
    options = parser.parse_args()
    graph = training_step(12)
    if options.graph:
        with open(options.graph) as file:
            data = json.load(file)
        # By hand, for networkx calls the edges `links` or `edges` depending on its version.
        graph = networkx.DiGraph()
        graph.add_nodes_from((node["id"], node) for node in data["nodes"])
        graph.add_edges_from((edge["source"], edge["target"]) for edge in data.get("links", data.get("edges")))

    names = list(networkx.lexicographical_topological_sort(graph, key=list(graph).index))
    place = {name: i for i, name in enumerate(names)}
    library = Library(options.library)
    question = dict(inputs=[[place[before] for before in graph.predecessors(name)] for name in names],
                    outputs=[[i] for i in range(len(names))], bytes=[graph.nodes[name]["bytes"] for name in names],
                    seconds=[graph.nodes[name]["seconds"] for name in names],
                    task_names=list(map(str, names)), value_names=list(map(str, names)),
                    value_flags=[0 if graph.succ[name] else KEEP for name in names], techniques=RECOMPUTE)
    kept = library.plan(**question)
    budget = int(kept.peak_bytes * options.budget)
    try:
        plan = library.plan(**question, budget_bytes=budget, deadline_seconds=1)
    except PlanError as problem:
        sys.exit(f"{problem}")
    print(f"keep all  {kept.peak_bytes:>12,} bytes in {kept.seconds:.6g} s")
    print(f"planned   {plan.peak_bytes:>12,} bytes in {plan.seconds:.6g} s, the budget is {budget:,};"
          f" no plan of this order is below {plan.bound_seconds:.6g} s")
    for step in plan.steps:
        if step.kind != FREE:
            print("  " + ("again " if step.kind == RECOMPUTED else "") + str(names[step.id]))


if __name__ == "__main__":
    main()
