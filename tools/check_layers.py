#!/usr/bin/env python3
"""Holds the sources to tools/layers.txt, the table of which module may use which.

Checked are, of every module:
  includes   each #include of another module, and that only tests include what stands under testing/
  uses       each name qualified by another module's namespace (`plan::Plan`), whoever included it
  links      the targets that its CMakeLists.txt links, and that it links what its files include
  units      a unit is x.h with x.cpp; units must not include each other in a circle (tests may)
and of the table: every module in it exists, every module is in it, and it has no cycle.

  check_layers.py [ROOT]      exit 1 and one line for every problem
"""
import pathlib
import re
import sys

SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}

INCLUDE = re.compile(r'^\s*#\s*include\s+"plimsoll/([^"]+)"')
LINK = re.compile(r"\bplimsoll(?:::|_)(\w+)")


def read_table(root):
    allowed = {}
    for line in (root / "tools/layers.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            module, _, rest = line.partition(":")
            allowed[module] = rest.split()
    return allowed


def check_table(allowed, existing):
    problems = [f"layers.txt: there is no module {m}" for m in allowed if m not in existing]
    problems += [f"layers.txt: the module {m} is missing" for m in sorted(existing - set(allowed))]
    for module, below in allowed.items():
        problems += [
            f"layers.txt: {module} names {other}, which is no module" for other in below if other not in allowed
        ]
    for circle in circles({m: [o for o in below if o in allowed] for m, below in allowed.items()}):
        problems.append(f"layers.txt: a cycle: {', '.join(circle)}")
    return problems


def circles(edges):
    """Sets of nodes that reach each other (Tarjan), each sorted; without recursion."""
    index, low, on_stack, stack, out = {}, {}, set(), [], []
    for start in edges:
        if start in index:
            continue
        work = [(start, iter(edges[start]))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            node, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(edges[other])))
                    break
                if other in on_stack:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = []
                    while not group or group[-1] != node:
                        group.append(stack.pop())
                        on_stack.discard(group[-1])
                    if len(group) > 1 or node in edges[node]:
                        out.append(sorted(group))
    return sorted(out)


def without_texts(source):
    """The same lines, with what stands in comments, strings and characters blanked."""
    token = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'', re.S
    )
    return token.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), source)


def check_uses(root, allowed):
    """Problems of includes and of qualified names, and by module what its own files include."""
    source = root / "src/plimsoll"
    namespaces = "|".join(sorted(m for m in allowed if "." not in m and m != "base"))
    qualified = re.compile(rf"(?:(?<![\w:])|(?<=\bplimsoll::))({namespaces})::(?=\w)")
    problems, included, count = [], {}, 0
    for path in sorted(source.rglob("*")):
        if path.suffix not in SUFFIXES:
            continue
        module = path.relative_to(source).parts[0]
        may = {module, "base", *allowed.get(module, ())}
        tests = path.stem.endswith(("_test", "_bench")) or "testing" in path.relative_to(source).parts
        text = path.read_text()
        for number, (line, code) in enumerate(zip(text.splitlines(), without_texts(text).splitlines()), 1):
            where = f"{path.relative_to(root)}:{number}"
            match = INCLUDE.match(line)
            if match:
                count += 1
                other = match.group(1).split("/")[0]
                if not tests and other != module:
                    included.setdefault(module, set()).add(other)
                if not tests and "/testing/" in match.group(1):
                    problems.append(f"{where}: only tests may include {match.group(1)}")
                if other not in may:
                    problems.append(f"{where}: {module} may not include {other}")
            for other in sorted(set(qualified.findall(code)) - may):
                problems.append(f"{where}: {module} may not use {other}::")
    return problems, included, count


def check_links(root, allowed, included):
    links = {}
    for module in allowed:
        file = root / "src/plimsoll" / module / "CMakeLists.txt"
        if file.is_file():
            call = re.search(rf"plimsoll_module\(\s*{module}\b([^)]*)\)", file.read_text())
            links[module] = [m for m in LINK.findall(call.group(1) if call else "") if m in allowed]
    problems = []
    for module, direct in links.items():
        for other in direct:
            if other not in {"base", *allowed[module]}:
                problems.append(f"src/plimsoll/{module}/CMakeLists.txt: {module} may not link {other}")
        reached, todo = set(), list(direct)
        while todo:
            other = todo.pop()
            if other not in reached:
                reached.add(other)
                todo += links.get(other, ())
        for other in sorted(included.get(module, set()) - reached):
            if other in links:
                problems.append(f"src/plimsoll/{module}/CMakeLists.txt: {module} includes {other} and does not link it")
    return problems


def check_units(root):
    source = root / "src/plimsoll"
    units = {}
    for path in sorted(source.rglob("*")):
        if path.suffix in SUFFIXES and not path.stem.endswith(("_test", "_bench")):
            unit = path.relative_to(source).with_suffix("").as_posix()
            includes = filter(None, map(INCLUDE.match, path.read_text().splitlines()))
            others = {pathlib.PurePosixPath(match.group(1)).with_suffix("").as_posix() for match in includes}
            units.setdefault(unit, set()).update(others - {unit})
    edges = {unit: sorted(other for other in others if other in units) for unit, others in units.items()}
    return circles(edges)


def main(root):
    allowed = read_table(root)
    source = root / "src/plimsoll"
    existing = {path.name for path in source.iterdir() if path.is_dir() or path.suffix == ".h"}
    problems = check_table(allowed, existing)
    uses, included, count = check_uses(root, allowed)
    problems += uses
    problems += check_links(root, allowed, included)
    for circle in check_units(root):
        problems.append(f"units include each other in a circle: {', '.join(circle)}")
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{count} includes between files checked, {len(problems)} problem(s)")
    return 1 if problems else 0


if __name__ == "__main__":
    here = pathlib.Path(__file__).resolve().parent.parent
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else here))
