"""Runs a plan by its steps and counts bytes: the dumbest reading of plimsoll/plimsoll.h."""
from plimsoll_ctypes import (COMPUTE, COPY_IN, COPY_OUT, DECODED_STEP, ENCODED, ENCODED_STEP, FREE, KEEP, ON_DEVICE,
                             ON_HOST, RECOMPUTED, VIEW, VIEW_OF)

FORMS = {COPY_OUT: (ON_DEVICE, ON_HOST), COPY_IN: (ON_HOST, ON_DEVICE), ENCODED_STEP: (ON_DEVICE, ENCODED),
         DECODED_STEP: (ENCODED, ON_DEVICE)}


def base_of(question, value):
    aliases, kinds = question.get("alias_of"), question.get("alias_kinds")
    while aliases and aliases[value] >= 0 and (not kinds or kinds[value] == VIEW_OF):
        value = aliases[value]
    return value


def replay(question, plan, budget):
    """Asserts that the steps of the plan can be run, compute everything and stay within what the plan says."""
    inputs, outputs = question["inputs"], question["outputs"]
    scratch = question.get("scratch") or [0] * len(inputs)
    views = {value for value in range(len(question["bytes"])) if base_of(question, value) != value}
    made = {value for row in outputs for value in row}
    written = {id for step in plan.steps for id in step.written if step.kind != VIEW}
    alive = {id for id in range(len(plan.instances)) if id not in written}
    assert {plan.instances[id].value for id in alive} == set(range(len(question["bytes"]))) - made
    holds = lambda form: sum(plan.instances[id].bytes for id in alive if (plan.instances[id].form == ON_HOST) == (form == ON_HOST))
    lies_on = {}  # a view's instance -> the instance of its base that it was taken of
    for id in alive:
        if plan.instances[id].value in views:
            lies_on[id] = next((b for b in alive if plan.instances[b].value == base_of(question, plan.instances[id].value)), None)
    peak, runs, seconds, ends = holds(ON_DEVICE), [0] * len(inputs), [0.0] * 3, []
    for at, step in enumerate(plan.steps):
        assert all(id in alive for id in step.read), (at, "reads what is not there")
        values = [plan.instances[id].value for id in step.read]
        if step.kind in (COMPUTE, RECOMPUTED):
            assert (runs[step.id] == 0) == (step.kind == COMPUTE)
            runs[step.id] += 1
            assert set(values) == {v for i in inputs[step.id] for v in (i, base_of(question, i))}
            assert all(plan.instances[id].form == ON_DEVICE for id in step.read)
            for id, value in zip(step.read, values):
                assert value not in views or lies_on[id] in step.read, (at, "reads a view of memory that is gone")
            assert [plan.instances[id].value for id in step.written] == outputs[step.id]
        elif step.kind == VIEW:
            lies_on[step.written[0]] = step.read[0]
            assert values == [base_of(question, step.id)]
        elif step.kind != FREE:
            assert values == [plan.instances[id].value for id in step.written] == [step.id]
            assert (plan.instances[step.read[0]].form, plan.instances[step.written[0]].form) == FORMS[step.kind]
        if step.kind == FREE:
            assert plan.instances[step.read[0]].end == at
            alive.discard(step.read[0])
        elif step.kind != VIEW:
            for id in step.written:
                assert plan.instances[id].begin == at
                alive.add(id)
                alive.discard(plan.instances[id].takes_over)
            for id in step.written:
                if plan.instances[id].value in views:
                    base = base_of(question, plan.instances[id].value)
                    lies_on[id] = max(b for b in alive if plan.instances[b].value == base and plan.instances[b].form == ON_DEVICE)
        running = step.kind in (COMPUTE, RECOMPUTED)
        peak = max(peak, holds(ON_DEVICE) + (scratch[step.id] if running else 0))
        begin = max([seconds[step.stream]] + [ends[other] for other in step.wait])
        ends.append(begin + step.seconds)
        seconds[step.stream] = ends[-1]
    assert all(runs), "a task never ran"
    there = {plan.instances[id].value for id in alive if plan.instances[id].form != ENCODED}
    for value, flags in enumerate(question.get("value_flags") or []):
        assert not flags & KEEP or base_of(question, value) in there
    assert peak == plan.peak_bytes <= budget, (peak, plan.peak_bytes, budget)
    assert abs(max(seconds) - plan.seconds) <= 1e-9 * plan.seconds
    return runs


def check_arena(question, plan, alignment):
    """No two things alive at the same step share a byte of the arena."""
    scratch = question.get("scratch") or [0] * len(question["inputs"])
    places = [(i.begin, i.end, i.offset, i.bytes, id) for id, i in enumerate(plan.instances) if i.form != ON_HOST and i.bytes]
    places += [(at, at + 1, step.scratch_offset, scratch[step.id], None) for at, step in enumerate(plan.steps)
               if step.kind in (COMPUTE, RECOMPUTED) and scratch[step.id]]
    for begin, end, offset, size, _ in places:
        assert offset >= 0 and offset % alignment == 0 and offset + size <= plan.arena_bytes
    for i, (begin, end, offset, size, id) in enumerate(places):
        for other_begin, other_end, other_offset, other_size, other in places[:i]:
            if begin < other_end and other_begin < end:
                assert offset + size <= other_offset or other_offset + other_size <= offset, (id, other)
    for id, it in enumerate(plan.instances):
        assert it.takes_over < 0 or it.offset == plan.instances[it.takes_over].offset
