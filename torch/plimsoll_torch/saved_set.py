"""What PyTorch's own partitioner makes of a set of saved values, and the best such set that a greedy search finds.

One forward pass, then one backward pass in which every value that was not saved is made once more, just in time. That is
less than a schedule can say (a value may be made twice, and freed in between): it is what is left where the backward
pass cannot be written anew because it mutates, and what PyTorch's own choice is judged by.
"""
from dataclasses import dataclass, field


@dataclass
class Outcome:
    peak: int = 0  # bytes beside the resident ones
    at_peak: set = field(default_factory=set)
    saved_bytes: int = 0
    crossing: set = field(default_factory=set)  # values that wait from the forward to the backward pass
    again: list = field(default_factory=list)  # values in the order in which they are made again
    seconds: float = 0.0  # of what is made again
    flops: float = 0.0
    timeline: list = field(default_factory=list)  # (live bytes, whether in the forward pass), task by task


def _needed(graph, saved):
    values, needed = graph.values, set()
    work = [i for v in values[graph.first_backward:] for i in v.inputs]
    while work:
        i = work.pop()
        if i not in needed and values[i].forward:
            needed.add(i)
            work += [] if i in saved else values[i].inputs
    return needed


def _backward_order(graph, saved):
    """Backward tasks, each behind what it needs made again."""
    values, order, done = graph.values, [], set()
    for i in range(graph.first_backward, len(values)):
        stack = [(k, False) for k in reversed(values[i].inputs)]
        while stack:
            j, ready = stack.pop()
            if j in done or j in saved or not values[j].forward:
                continue
            if ready:
                done.add(j)
                order.append(j)
            else:
                stack += [(j, True)] + [(k, False) for k in reversed(values[j].inputs)]
        order.append(i)
    return order


def _play(graph, order, held, hold, outcome, forward, until):
    """Runs tasks in order from `held` on, frees what nobody reads any more but `hold`; what is there at the end. until[value]: the task
    behind which a value may be freed, though nobody reads it any more."""
    values = graph.values
    last = {k: s for s, i in enumerate(order) for k in [i, *values[i].inputs]}
    waits = {}
    for k, s in until.items():
        if s > last[k]:
            last[k] = s
            waits.setdefault(s, []).append(k)
    live, inside = sum(values[i].bytes for i in held), set(held)
    for s, i in enumerate(order):
        value = values[i]
        dead = [k for k in value.inputs if k in inside and last[k] == s and k not in hold]
        over = value.fused and any(values[k].bytes == value.bytes for k in dead)
        now = live + (0 if over else value.bytes) + value.scratch
        if now > outcome.peak:
            outcome.peak, outcome.at_peak = now, inside | {i}
        outcome.timeline.append((now, forward))
        live += value.bytes
        inside.add(i)
        for k in dead + [k for k in waits.get(s, ()) if k not in hold and k != i] + ([i] if last[i] == s and i not in hold else []):
            inside.discard(k)
            live -= values[k].bytes
    return inside


def simulate(graph, saved, only_forward=False, until=None):
    values = graph.values
    saved = set(saved) | {i for i, v in enumerate(values) if v.forward and not v.recompute and i not in (until or {})}
    crossing = _needed(graph, saved) & saved
    outcome = Outcome(crossing=crossing, saved_bytes=sum(values[i].bytes for i in crossing))
    results = {i for i in graph.forward_values() if values[i].out}
    inside = _play(graph, range(graph.first_backward), (), crossing | results, outcome, True, until or {})
    if only_forward:
        return outcome
    order = _backward_order(graph, saved)
    _play(graph, order, inside, {i for i, v in enumerate(values) if v.keep}, outcome, False, {})
    outcome.again = [i for i in order if values[i].forward]
    outcome.seconds = sum(values[i].seconds for i in outcome.again)
    outcome.flops = sum(values[i].flops for i in outcome.again)
    return outcome


def _price(graph, i, saved, again):
    """Seconds a byte of dropping value i, with what was dropped in front of it."""
    values, cost, seen, work = graph.values, 0.0, set(), [i]
    while work:
        j = work.pop()
        if j not in seen and values[j].forward and (j == i or j not in saved):
            seen.add(j)
            cost += 0 if j in again else values[j].seconds
            work += values[j].inputs
    return cost / values[i].bytes


def _dropping(graph, budget):
    """From saving all: at the peak, what costs least time a byte is dropped, until it fits or nothing is left to drop. (saved, Outcome) each time."""
    values, saved = graph.values, graph.forward_values()
    now = simulate(graph, saved)
    yield saved, now
    while now.peak > budget:
        again = set(now.again)
        options = [i for i in now.at_peak & now.crossing if values[i].recompute and values[i].bytes]
        if not options:
            return
        saved = saved - {min(options, key=lambda i: (_price(graph, i, saved, again), i))}
        now = simulate(graph, saved)
        yield saved, now


def _take_back(graph, saved, now, budget):
    """What still fits."""
    values = graph.values
    for i in sorted(now.again, key=lambda i: -values[i].seconds / max(values[i].bytes, 1)):
        then = simulate(graph, saved | {i})
        if then.peak <= budget and then.seconds < now.seconds:
            saved, now = saved | {i}, then
    return now


def greedy(graph, budget):
    """The best set within the budget that a greedy search finds; None: stuck."""
    for saved, now in _dropping(graph, budget):
        pass
    return _take_back(graph, saved, now, budget) if now.peak <= budget else None


def least(graph):
    """The set with the lowest peak on the way to where the search is stuck; it knows nothing of a budget."""
    saved, now = min(_dropping(graph, 0), key=lambda one: one[1].peak)
    return _take_back(graph, saved, now, now.peak)
