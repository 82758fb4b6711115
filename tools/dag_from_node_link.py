#!/usr/bin/env python3
"""Turns a graph in networkx' node-link form into a DAG file for `plimsoll plan --dag`.

    dag_from_node_link.py GRAPH.json > graph.json

Nodes have an `id` (or `name`), a cost and a size. Known are `seconds` and `bytes`, and the two dialects of the graphs
that Moccasin publishes (GitHub haoming-codes/moccasin, folder data): Checkmate's training graphs (cost_cpu in
microseconds, cost_ram) and random layered graphs (duration, out_cost, with the order they are meant to be run in).
Edges stand in `links` or `edges`.
"""
import json
import math
import sys


class Fault(Exception):
    """What is wrong with the file, as a sentence."""


def first_of(record, where, *keys):
    if not isinstance(record, dict):
        raise Fault(f"{where}: is {json.dumps(record)[:40]}, not an object")
    for key in keys:
        if key in record:
            return record[key]
    raise Fault(f"{where}: has none of {', '.join(keys)}")


def number(record, where, *keys):
    found = first_of(record, where, *keys)
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not math.isfinite(found) or found < 0:
        raise Fault(f"{where}: {keys[0]} is {json.dumps(found)[:40]}, not a number of 0 or more")
    return found


def rows(graph, *keys):
    found = first_of(graph, "the file", *keys)
    if not isinstance(found, list):
        raise Fault(f"{keys[0]}: is not a list")
    return found


def key_of(name):
    return json.dumps(name)  # ids may be numbers, strings or lists, of which only the first two can be looked up


def convert(graph):
    nodes = {}
    for i, node in enumerate(rows(graph, "nodes")):
        name = first_of(node, f"node {i}", "id", "name")
        where = f"node {json.dumps(name)[:40]}"
        if key_of(name) in nodes:
            raise Fault(f"{where}: is there twice")
        seconds = number(node, where, "seconds") if "seconds" in node else number(node, where, "cost_cpu", "duration") * 1e-6
        nodes[key_of(name)] = {"name": f"n{name}", "seconds": seconds,
                               "bytes": number(node, where, "bytes", "cost_ram", "out_cost"), "inputs": []}
    known = lambda name, where: nodes.get(key_of(name)) or missing(name, where)
    for i, link in enumerate(rows(graph, "links", "edges")):
        where = f"link {i}"
        target = known(first_of(link, where, "target", "1"), where)
        target["inputs"].append(known(first_of(link, where, "source", "0"), where)["name"])
    out = {"nodes": list(nodes.values())}
    order = graph.get("graph", {}).get("order") if isinstance(graph.get("graph", {}), dict) else None
    if order is not None:
        if not isinstance(order, list):
            raise Fault("graph.order: is not a list")
        out["order"] = [known(name, "graph.order")["name"] for name in order]
    return out


def missing(name, where):
    raise Fault(f"{where}: there is no node {json.dumps(name)[:40]}")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    path = sys.argv[1]
    try:
        with open(path, encoding="utf-8") as file:
            graph = json.load(file)
        text = json.dumps(convert(graph))
    except OSError as problem:
        sys.exit(f"{path}: {problem.strerror}")
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as problem:
        sys.exit(f"{path}: is not JSON: {problem}")
    except Fault as problem:
        sys.exit(f"{path}: {problem}")
    print(text)


if __name__ == "__main__":
    main()
