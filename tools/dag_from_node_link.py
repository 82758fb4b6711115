#!/usr/bin/env python3
"""Turns a graph in networkx' node-link form into a DAG file for `plimsoll plan --dag`.

    dag_from_node_link.py GRAPH.json > graph.json

Knows the two dialects of the graphs that Moccasin publishes (GitHub haoming-codes/moccasin, folder data):
Checkmate's training graphs (cost_cpu in microseconds, cost_ram) and random layered graphs (duration,
out_cost, with the order they are meant to be run in).
"""
import json
import sys


def first_of(record, *keys):
    return next(record[key] for key in keys if key in record)


def convert(graph):
    nodes = {}
    for node in graph["nodes"]:
        name = first_of(node, "id", "name")
        nodes[name] = {"name": f"n{name}", "seconds": first_of(node, "cost_cpu", "duration") * 1e-6,
                       "bytes": first_of(node, "cost_ram", "out_cost"), "inputs": []}
    for link in graph["links"]:
        nodes[first_of(link, "target", "1")]["inputs"].append(f"n{first_of(link, 'source', '0')}")
    out = {"nodes": list(nodes.values())}
    if "order" in graph["graph"]:
        out["order"] = [f"n{name}" for name in graph["graph"]["order"]]
    return out


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        json.dump(convert(json.load(file)), sys.stdout)
