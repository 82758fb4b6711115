"""python -m plimsoll_torch [--budget 8GiB] [--allocator] script.py ARGS

With --budget the script's calls of torch.compile (and of Module.compile) hold that budget; the script is not changed.
Without, or with --allocator, PyTorch allocates from Plimsoll.
"""
import argparse
import runpy
import sys


def patch_compile(budget):
    """torch.compile and Module.compile under a budget. What cannot be budgeted is compiled as before."""
    import functools

    import torch

    from plimsoll_torch.session import REFUSED_MODES, compile as budgeted
    original, used = torch.compile, []

    def compile(model=None, **options):
        if model is None:
            return functools.partial(compile, **options)
        refused = options.get("backend", "inductor") != "inductor" or options.get("mode") in REFUSED_MODES or options.get("disable")
        if refused:
            print(f"plimsoll: torch.compile({', '.join(f'{k}={v!r}' for k, v in options.items())}) is left as it is: no budget is held for it", file=sys.stderr)
            return original(model, **options)
        used.append(model)
        torch.compile = original  # our own calls are PyTorch's
        try:
            return budgeted(model, budget, **{k: v for k, v in options.items() if k in ("dynamic", "fullgraph", "mode", "options")})
        finally:
            torch.compile = compile
    torch.compile = compile
    torch.nn.Module.compile = lambda self, *args, **options: compile(self, **options)
    return used


def main(arguments):
    parser = argparse.ArgumentParser(prog="python -m plimsoll_torch", usage="%(prog)s [--budget SIZE] [--allocator] script.py [arguments]")
    parser.add_argument("--budget", help="bytes that a training step may allocate, as 8GiB")
    parser.add_argument("--allocator", action="store_true", help="PyTorch allocates from Plimsoll (without --budget: always)")
    parser.add_argument("script")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    given = parser.parse_args(arguments)
    used = None
    if given.allocator or not given.budget:
        import plimsoll_torch
        plimsoll_torch.use_allocator()
    if given.budget:
        from plimsoll_torch.byte_size import parse_bytes
        try:
            budget = parse_bytes(given.budget)
        except ValueError as problem:
            parser.error(str(problem))
        used = patch_compile(budget)
    sys.argv = [given.script, *given.rest]
    runpy.run_path(given.script, run_name="__main__")
    if used is not None and not used:
        sys.exit(f"plimsoll: {given.script} never called torch.compile, so no budget was held; add model = torch.compile(model)")


if __name__ == "__main__":
    main(sys.argv[1:])
