"""From a task graph and a budget to the fastest schedule within it: Plimsoll's planner, through its C interface.

    found = find_schedule(graph, budget=2 << 30)      # bytes beside the resident ones
    found.saved, found.backward                       # values that wait for the backward pass; its steps in order

No file and no process: libplimsoll.so is called by ctypes. It lies beside this file in the wheel, in build/release in a
checkout, or where PLIMSOLL_LIBRARY says.
"""
import functools
import os
from dataclasses import dataclass, field

from plimsoll_torch import plimsoll_ctypes as capi
from plimsoll_torch.saved_set import simulate

COMPUTE, FREE, OUT, BACK, NOTHING = "compute", "free", "out", "back", "nothing"
_ABOVE_SMALLEST = (1.005, 1.02, 1.05)  # where the smallest plan is looked for
_LEAST_SECONDS = 10.0


def library_path(name="libplimsoll.so.0", variable="PLIMSOLL_LIBRARY"):
    named = os.environ.get(variable)
    if named:
        return named
    here = os.path.dirname(os.path.abspath(__file__))
    build = os.path.join(os.path.dirname(os.path.dirname(here)), "build", "release")
    for place in (os.path.join(here, name), os.path.join(build, "src", "plimsoll", "capi", name)):
        if os.path.exists(place):
            return place
    raise FileNotFoundError(f"{name} not found beside {here} or under {build}; install the wheel (make wheel), build the "
                            f"target plimsoll_shared, or set {variable}")


@functools.cache
def library():
    return capi.Library(library_path())


@dataclass
class Schedule:
    fits: bool
    asked: int = 0  # the budget
    message: str = ""
    peak: int = 0
    keep_all_bytes: int = 0
    floor_bytes: int = 0  # proven: no plan needs less
    smallest_bytes: int = 0  # the smallest budget for which a plan is known
    limiting: list = field(default_factory=list)  # values by index, largest first, that meet at the floor
    saved: set = field(default_factory=set)
    saved_bytes: int = 0
    backward: list = field(default_factory=list)  # (COMPUTE, FREE, OUT to the host or BACK, value), from the first backward task on
    leaving: dict = field(default_factory=dict)  # in the forward pass, value -> (value behind which it is copied out, behind which it may be freed)
    again: list = field(default_factory=list)
    seconds: float = 0.0  # of what is made again, and of waiting for copies
    bound_seconds: float = 0.0  # proven: no plan of this order spends less
    search_seconds: float = 0.0
    timeline: list = field(default_factory=list)  # (live bytes, whether in the forward pass), task by task
    at_peak: list = field(default_factory=list)  # values


def plan_request(graph, budget, copies=None, deadline=1.0, threads=0, work=0, names=None, progress=None):
    """The arguments of plimsoll_plan_dag: one task a value."""
    values = graph.values
    over = [graph.overwritten_by(v) for v in values]
    may_leave = lambda v: copies is not None and v.forward and not v.keep and not v.out and v.bytes >= copies.smallest
    rates = {} if copies is None else dict(to_host_bytes_per_second=copies.out, from_host_bytes_per_second=copies.back, copy_latency_seconds=copies.latency)
    return dict(
        inputs=[v.inputs for v in values], outputs=[[i] for i in range(len(values))], bytes=[v.bytes for v in values],
        seconds=[v.seconds for v in values], scratch=[v.scratch for v in values], task_flags=[0 if v.recompute else capi.ONCE for v in values],
        value_flags=[(capi.KEEP if v.keep or v.out else 0) | (0 if may_leave(v) else capi.NO_SWAP) for v in values],
        alias_of=[-1 if k is None else k for k in over], alias_kinds=[capi.IN_PLACE_OF] * len(values),
        value_names=names, techniques=capi.RECOMPUTE | (capi.SWAP if copies else 0), order=capi.GIVEN, budget_bytes=max(0, int(budget)),
        backward_task=graph.first_backward if graph.first_backward < len(values) else 0,
        deadline_seconds=deadline, threads=threads, work=work, progress=progress, **rates)


def find_schedule(graph, budget, copies=None, **search):
    plan = library().answer(library().request(**plan_request(graph, budget, copies, **search)))
    found = Schedule(fits=plan.status == capi.OK, asked=int(budget), message=plan.message, peak=plan.peak_bytes,
                     keep_all_bytes=plan.keep_all_bytes, floor_bytes=plan.floor_bytes,
                     smallest_bytes=plan.smallest_budget_bytes, limiting=[v for v, _ in plan.limiting],
                     search_seconds=plan.search_seconds,
                     bound_seconds=max(0.0, plan.bound_seconds - plan.keep_all_seconds))
    if plan.status not in (capi.OK, capi.DOES_NOT_FIT, capi.NO_ANSWER):
        raise RuntimeError(f"plimsoll's planner refused the graph: {plan.message}")
    if found.fits:
        _read_steps(graph, plan, found)
    return found


def least_schedule(graph, copies=None):
    """The smallest that is known, the same each time it is asked for: nothing of a budget is in the request, what needs least is found by
    counted work, and the first plan within that ends the search (a hundredth of its deadline, so that no clock matters)."""
    floor = find_schedule(graph, 0, copies, work=1, threads=1)
    for more in _ABOVE_SMALLEST:
        found = find_schedule(graph, int(floor.smallest_bytes * more), copies, deadline=_LEAST_SECONDS, threads=1, progress=lambda *_: True)
        if found.fits:
            break
    found.limiting = floor.limiting
    return found


def _read_steps(graph, plan, found):
    values, steps = graph.values, []
    for step in plan.steps:
        if step.kind in (capi.COMPUTE, capi.RECOMPUTED):
            steps.append((COMPUTE, step.id))
        elif step.kind == capi.FREE:
            steps.append((FREE if plan.instances[step.read[0]].form == capi.ON_DEVICE else NOTHING, step.id))
        elif step.kind in (capi.COPY_OUT, capi.COPY_IN):
            steps.append((OUT if step.kind == capi.COPY_OUT else BACK, step.id))
        else:
            raise RuntimeError(f"plimsoll's planner answered a step of kind {step.kind} that was not asked for")
    first = next((at for at, (what, i) in enumerate(steps) if what == COMPUTE and not values[i].forward), len(steps))
    # By instances, not by steps: what is written over ends without a step that frees it.
    there = {one.value for one in plan.instances if one.form == capi.ON_DEVICE and one.begin < first < one.end and values[one.value].forward}
    found.saved, found.backward = there, steps[first:]
    found.timeline, found.at_peak = _timeline(plan, steps, first)
    found.again = [i for what, i in found.backward if what == COMPUTE and values[i].forward]
    found.seconds = sum(values[i].seconds for i in found.again)
    found.leaving = _leaving(plan, steps, first, there)
    if found.leaving:
        found.seconds = max(found.seconds, plan.seconds - plan.keep_all_seconds)
    until = {i: end for i, (_, end) in found.leaving.items()}
    ahead = simulate(graph, there, only_forward=True, until=until)  # the forward graph makes everything once
    found.peak, found.saved_bytes = max(found.peak, ahead.peak), ahead.saved_bytes
    found.smallest_bytes = max(found.smallest_bytes, ahead.peak)


def _leaving(plan, steps, first, there):
    """What the forward pass copies out for the backward pass. Between its copy and its last reader a value stays where it is."""
    made, so_far = [], 0  # the last value made before each step
    for what, i in steps[:first]:
        so_far = max(so_far, i) if what == COMPUTE else so_far
        made.append(so_far)
    back = {i for what, i in steps[first:] if what == BACK}
    starts = {}
    for at, (what, i) in enumerate(steps[:first]):
        if what == OUT and i in back:
            starts.setdefault(i, made[at])
    ends = dict.fromkeys(there, so_far)
    for one in plan.instances:
        if one.form == capi.ON_DEVICE and one.end < first:
            ends[one.value] = max(ends.get(one.value, 0), made[one.end])
    return {i: (start, max(start, ends.get(i, so_far))) for i, start in starts.items()}


def _timeline(plan, steps, first):
    """Live bytes at each task, and the values that are live where most are."""
    change = [0] * (len(steps) + 1)
    for one in plan.instances:
        if one.form != capi.ON_DEVICE:
            continue
        change[one.begin] += one.bytes
        change[one.end] -= one.bytes
        if one.takes_over >= 0:  # both are named at the step that writes the one over the other
            before = plan.instances[one.takes_over]
            change[one.begin] -= before.bytes
            change[before.end] += before.bytes
    live, line, most, at = 0, [], -1, 0
    for s, (what, _) in enumerate(steps):
        live += change[s]
        if what == COMPUTE:
            line.append((live, s < first))
            most, at = (live, s) if live > most else (most, at)
    return line, [one.value for one in plan.instances if one.form == capi.ON_DEVICE and one.begin <= at < one.end]
