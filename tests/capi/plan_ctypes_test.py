#!/usr/bin/env python3
"""The C interface as Python meets it: plan_ctypes_test.py LIBPLIMSOLL.SO PLIMSOLL EXAMPLES_FOLDER WORK_FOLDER"""
import ctypes as c
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import threading
import unittest

LIBRARY, PROGRAM, EXAMPLES, WORK = sys.argv[1:5]
sys.path.insert(0, EXAMPLES)

import plimsoll_ctypes as api  # noqa: E402
from replay import check_arena, replay  # noqa: E402

INT64 = 2**63 - 1


def training(layers, seconds=1e-3):
    """Layers forward, gradients back; gradient i reads what layer i made."""
    inputs = [[t - 1] if t else [] for t in range(layers)]
    inputs += [[layers + i - 1, layers - 1 - i] if i else [layers - 1] for i in range(layers)]
    count = 2 * layers
    return dict(inputs=inputs, outputs=[[t] for t in range(count)], bytes=[1 << 20] * count, seconds=[seconds] * count,
                value_flags=[0] * (count - 1) + [api.KEEP])


def drawn(seed, tasks):
    """Any DAG: sources, several outputs, scratch, kept and pinned values, views, in-place results, encodings."""
    r = random.Random(seed)
    q = dict(inputs=[], outputs=[], bytes=[], seconds=[], scratch=[], task_flags=[], value_flags=[], alias_of=[], alias_kinds=[],
             encodings=[])

    def value(bytes, of=-1, kind=0):
        q["bytes"].append(bytes)
        q["value_flags"].append(r.choice([0] * 12 + [api.KEEP, api.PINNED, api.NO_RECOMPUTE, api.NO_SWAP]))
        q["alias_of"].append(of)
        q["alias_kinds"].append(kind)
        return len(q["bytes"]) - 1

    for _ in range(r.randint(1, 3)):
        value(r.randint(0, 1000))
    for _ in range(tasks):
        known = list(range(len(q["bytes"])))
        read = sorted(set(r.choices(known[-12:] + known, k=r.randint(0, 3))))
        made = [value(r.randint(0, 1000)) for _ in range(r.choice([1, 1, 1, 2, 3]))]
        if read and r.random() < 0.25:
            made.append(value(7, r.choice(read), api.VIEW_OF))
        elif read and r.random() < 0.3:
            of = r.choice(read)
            if q["alias_of"][of] < 0 or q["alias_kinds"][of] != api.VIEW_OF:
                made.append(value(q["bytes"][of], of, api.IN_PLACE_OF))
        q["inputs"].append(read)
        q["outputs"].append(made)
        q["seconds"].append(r.choice([0, r.random(), 10 * r.random()]))
        q["scratch"].append(r.choice([0, 0, r.randint(0, 300)]))
        q["task_flags"].append(r.choice([0] * 10 + [api.ONCE, api.RANDOM, api.COLLECTIVE]))
    for v, bytes in enumerate(q["bytes"]):
        if r.random() < 0.2 and q["alias_of"][v] < 0:
            q["encodings"].append(api.Encoding(v, bytes // 3, 0.01, 0.01, r.randint(0, 1), 0))
    return q


RATES = dict(to_host_bytes_per_second=500.0, from_host_bytes_per_second=400.0, copy_latency_seconds=0.01)
EVERYTHING = api.RECOMPUTE | api.SWAP | api.ENCODE | api.LOSSY


class Loading(unittest.TestCase):
    def test_a_library_that_is_not_found_says_how_to_name_it(self):
        with self.assertRaisesRegex(OSError, "no_such.so.*name the file, Library"):
            api.Library("/nowhere/no_such.so")

    def test_the_folder_can_be_named_in_the_environment(self):
        code = "import plimsoll_ctypes; print(plimsoll_ctypes.Library().version())"
        found = subprocess.run([sys.executable, "-c", code], cwd=EXAMPLES, capture_output=True, text=True,
                               env={**os.environ, "LD_LIBRARY_PATH": str(pathlib.Path(LIBRARY).resolve().parent)})
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertEqual(found.stdout.strip(), api.Library(LIBRARY).version())


class Packing(unittest.TestCase):
    def test_packs_and_refuses_as_the_header_says(self):
        library = api.Library(LIBRARY)
        packing = library.pack([(0, 3, 4), (3, 9, 4), (0, 9, 8)])
        self.assertEqual((packing.height, packing.lower_bound, packing.status), (12, 12, "optimal"))
        self.assertEqual(packing.offsets[0], packing.offsets[1])
        self.assertEqual(library.pack([(0, 1, 4), (0, 1, 4)], fixed={0: 4}).offsets, [4, 0])
        self.assertEqual(library.pack([(0, 1, 3), (0, 1, 3)], alignment=8, deterministic=True).height, 11)
        self.assertEqual(library.pack([]).offsets, [])
        for buffers, how, code, words in (([(0, 3, -4)], {}, 3, "sizes are 0 or more"), ([(3, 0, 4)], {}, 3, "nothing ends before it begins"),
                                          ([(0, 3, 4)], {"alignment": 0}, 3, "alignments 1 or more"), ([(0, 1, 4), (0, 1, 4)], {"capacity": 7}, 4, ""),
                                          ([(0, 1, 4)], {"fixed": {9: 0}}, 2, "")):
            with self.assertRaises(api.PackError) as caught:
                library.pack(buffers, **how)
            self.assertEqual(caught.exception.code, code, (buffers, how))
            self.assertIn(words, str(caught.exception))


class Plans(unittest.TestCase):
    def setUp(self):
        self.library = api.Library(LIBRARY)

    def test_the_least_memory_for_so_much_more_time(self):
        before = 2**62
        for slowdown in (0, 0.1, 0.5, 2):
            plan = self.library.plan(**training(8), techniques=api.RECOMPUTE, work=1, goal=1, slowdown=slowdown)
            self.assertLessEqual(plan.seconds, plan.keep_all_seconds * (1 + slowdown) * (1 + 1e-9))
            self.assertLessEqual(plan.peak_bytes, before)
            before = plan.peak_bytes
        self.assertLess(before, plan.keep_all_bytes)
        self.refuse(2, "goal", goal=2, budget_bytes=-1)
        self.refuse(2, "budget must be -1", goal=1)
        self.refuse(2, "slowdown", slowdown=0.1)
        self.refuse(2, "slowdown", goal=1, budget_bytes=-1, slowdown=-1)
        self.refuse(2, "slowdown", goal=1, budget_bytes=-1, slowdown=math.nan)

    def refuse(self, status, words, **changes):
        question = training(4) | dict(techniques=api.RECOMPUTE, budget_bytes=10 << 20, work=1) | changes
        plan = self.library.answer(self.library.request(**question))
        self.assertEqual(plan.status, status, plan.message)
        self.assertIn(words, plan.message)
        self.assertEqual(plan.steps, [])
        return plan

    def test_recomputes_within_a_budget(self):
        question = training(9)
        kept = self.library.plan(**question)
        replay(question, kept, kept.peak_bytes)
        self.assertEqual(kept.peak_bytes, kept.keep_all_bytes)
        budget = kept.peak_bytes * 6 // 10
        plan = self.library.plan(**question, techniques=api.RECOMPUTE, budget_bytes=budget, work=1)
        self.assertGreater(max(replay(question, plan, budget)), 1)
        self.assertLessEqual(plan.floor_bytes, plan.peak_bytes)
        self.assertLessEqual(plan.keep_all_seconds, plan.bound_seconds)
        self.assertLessEqual(plan.bound_seconds, plan.seconds)
        self.assertEqual(sum(bytes for _, bytes in plan.limiting), plan.floor_bytes)

    def test_counts_work_and_repeats_itself(self):
        question = training(9) | dict(techniques=EVERYTHING, work=1, seed=7, arena_alignment=64) | RATES
        kept = self.library.plan(**question)
        first, second = (self.library.plan(**question, budget_bytes=kept.peak_bytes // 2) for _ in range(2))
        self.assertEqual([bytes(step) for step in first.steps], [bytes(step) for step in second.steps])
        self.assertEqual([bytes(i) for i in first.instances], [bytes(i) for i in second.instances])

    def test_swaps_where_copies_are_cheap(self):
        question = training(12, seconds=1.0)
        fast = dict(to_host_bytes_per_second=1e9, from_host_bytes_per_second=1e9)
        kept = self.library.plan(**question)
        budget = kept.peak_bytes // 2
        plan = self.library.plan(**question, techniques=api.SWAP, budget_bytes=budget, work=1, **fast)
        replay(question, plan, budget)
        self.assertIn(api.COPY_OUT, [step.kind for step in plan.steps])
        self.assertGreater(plan.host_peak_bytes, 0)

    def test_encodes_where_it_is_offered(self):
        question = training(12) | dict(encodings=[api.Encoding(v, 1 << 16, 1e-6, 1e-6, 0, 0) for v in range(12)])
        budget = self.library.plan(**question).peak_bytes // 2
        plan = self.library.plan(**question, techniques=api.ENCODE, budget_bytes=budget, work=1)
        replay(question, plan, budget)
        encoded = {i.encoding for i in plan.instances if i.form == api.ENCODED}
        self.assertTrue(encoded and encoded <= set(range(12)))

    def test_lossy_encodings_only_when_asked(self):
        question = training(12) | dict(encodings=[api.Encoding(v, 1 << 16, 1e-6, 1e-6, 1, 0) for v in range(12)])
        budget = self.library.plan(**question).peak_bytes // 2
        question |= dict(budget_bytes=budget, work=1)
        self.assertNotEqual(self.library.answer(self.library.request(**question, techniques=api.ENCODE)).status, api.OK)
        self.assertEqual(self.library.plan(**question, techniques=api.ENCODE | api.LOSSY).status, api.OK)

    def test_takes_views_again_when_their_base_was_made_again(self):
        # 0 makes the base, 1 a view of it; a large value in between drives the base out before 4 reads the view.
        question = dict(inputs=[[], [0], [1], [2], [1, 3]], outputs=[[0], [1], [2], [3], [4]],
                        bytes=[1000, 1000, 10, 900, 10], seconds=[1.0] * 5, alias_of=[-1, 0, -1, -1, -1],
                        scratch=[0, 0, 0, 900, 0])
        plan = self.library.plan(**question, techniques=api.RECOMPUTE, budget_bytes=1950, work=1)
        replay(question, plan, 1950)
        kinds = [(step.kind, step.id) for step in plan.steps]
        self.assertIn((api.RECOMPUTED, 0), kinds)
        self.assertIn((api.VIEW, 1), kinds)
        self.assertEqual(plan.keep_all_bytes, 1000 + 10 + 900 + 900)

    def test_overwrites_after_every_reader(self):
        # A weight, a task that updates it (given first), a task that reads the old one; the new one is kept.
        question = dict(inputs=[[0], [0]], outputs=[[1], [2]], bytes=[100, 100, 30], seconds=[1.0, 1.0],
                        alias_of=[-1, 0, -1], alias_kinds=[0, api.OVERWRITES, 0], value_flags=[0, api.KEEP, api.KEEP])
        plan = self.library.plan(**question, techniques=api.RECOMPUTE, budget_bytes=130, work=1)
        replay(question, plan, 130)
        self.assertEqual([step.id for step in plan.steps if step.kind == api.COMPUTE], [1, 0])

    def test_random_graphs_replay(self):
        fitted, count = 0, int(os.environ.get("PLIMSOLL_GRAPHS", "12"))
        for seed in range(count):
            with self.subTest(seed=seed):
                question = drawn(seed, 5 + (seed % 25 if count > 12 else seed % 8))
                kept = self.library.plan(**question)
                replay(question, kept, kept.peak_bytes)
                budget = max(0, kept.floor_bytes + (kept.peak_bytes - kept.floor_bytes) * (seed % 4) // 4)
                asked = self.library.request(**question, **RATES, techniques=EVERYTHING, budget_bytes=budget, work=1,
                                             arena_alignment=(seed % 3) * 8)
                plan = self.library.answer(asked)
                self.assertIn(plan.status, (api.OK, api.NO_ANSWER), plan.message)
                if plan.status != api.OK:
                    self.assertGreaterEqual(plan.smallest_budget_bytes, plan.floor_bytes)
                    continue
                fitted += 1
                replay(question, plan, budget)
                if asked.arena_alignment:
                    check_arena(question, plan, asked.arena_alignment)
                    self.assertLessEqual(plan.arena_bytes, budget)
        self.assertGreater(fitted, count // 2)

    def test_agrees_with_the_program(self):
        pathlib.Path(WORK).mkdir(parents=True, exist_ok=True)
        fitted = 0
        for seed in range(5):
            r = random.Random(seed)
            count = r.randint(8, 20)
            inputs = [sorted(set(r.choices(range(t), k=2))) if t else [] for t in range(count)]
            question = dict(inputs=inputs, outputs=[[t] for t in range(count)], bytes=[r.randint(1, 1000) for _ in range(count)],
                            seconds=[r.choice([1e-3, 1e12]) * r.random() for _ in range(count)])
            question["value_flags"] = [r.choice([0] * 5 + [api.KEEP]) for _ in range(count)]
            nodes = [dict(inputs=inputs[t], bytes=question["bytes"][t], seconds=question["seconds"][t],
                          keep=bool(question["value_flags"][t])) for t in range(count)]
            path = pathlib.Path(WORK) / "dag.json"
            path.write_text(json.dumps({"nodes": nodes}))
            done = subprocess.run([PROGRAM, "plan", "--dag", path, "--budget", "75%", "--deterministic", "--seed", "3", "--json"],
                                  capture_output=True, text=True)
            theirs = json.loads(done.stdout)
            ours = self.library.answer(self.library.request(**question, techniques=api.RECOMPUTE, work=1, seed=3,
                                                            budget_bytes=theirs["budget_bytes"]))
            self.assertEqual(ours.status, done.returncode, ours.message)
            self.assertEqual(ours.keep_all_bytes, theirs["keep_all_bytes"])
            self.assertEqual(ours.smallest_budget_bytes if ours.status else ours.floor_bytes, theirs["smallest_budget_bytes"])
            if ours.status == api.OK:
                fitted += 1
                self.assertEqual((ours.peak_bytes, ours.seconds), (theirs["peak_bytes"], theirs["predicted_seconds"]))
        self.assertGreater(fitted, 2)

    def test_costs_in_any_unit(self):
        for seconds in (1e-300, 1e-12, 1.6e12, 1e290):
            question = training(5, seconds)
            kept = self.library.plan(**question)
            plan = self.library.plan(**question, techniques=api.RECOMPUTE, budget_bytes=kept.peak_bytes * 7 // 10, work=1)
            replay(question, plan, plan.peak_bytes)
            self.assertAlmostEqual(kept.seconds / (10 * seconds), 1)

    def test_nothing_to_do(self):
        plan = self.library.plan([], [], [], [], techniques=EVERYTHING, budget_bytes=0, arena_alignment=1, **RATES)
        self.assertEqual((plan.peak_bytes, plan.steps), (0, []))
        self.assertEqual(self.library.plan([[]], [[0]], [0], [0.0], budget_bytes=0).status, api.OK)

    def test_below_the_floor_does_not_fit(self):
        plan = self.refuse(api.DOES_NOT_FIT, "no plan can do with less", budget_bytes=1 << 20)
        self.assertEqual(plan.floor_bytes, 3 << 20)
        self.assertEqual(len(plan.limiting), 3)
        self.assertGreaterEqual(plan.smallest_budget_bytes, plan.floor_bytes)

    def test_memories(self):
        self.refuse(api.USAGE, "memory_count: 2", memories=[api.Memory(1 << 30), api.Memory(1 << 40)])
        self.refuse(api.DOES_NOT_FIT, "too little", budget_bytes=-1, memories=[api.Memory(1 << 20)])

    def test_options_that_make_no_sense(self):
        nan, infinite = math.nan, math.inf
        self.refuse(api.USAGE, "splitting", techniques=api.SPLIT)
        self.refuse(api.USAGE, "unknown bits", techniques=1 << 20)
        self.refuse(api.USAGE, "copy rates", techniques=api.SWAP)
        for rate in (nan, infinite, -1.0):
            self.refuse(api.USAGE, "copy rates", techniques=api.SWAP, to_host_bytes_per_second=rate, from_host_bytes_per_second=1.0)
        self.refuse(api.USAGE, "copy_latency", techniques=api.SWAP, **(RATES | dict(copy_latency_seconds=nan)))
        self.refuse(api.USAGE, "budget_bytes", budget_bytes=-2)
        self.refuse(api.USAGE, "order", order=3)
        for deadline in (nan, infinite, -1.0):
            self.refuse(api.USAGE, "deadline_seconds", deadline_seconds=deadline)
        self.refuse(api.USAGE, "work", work=-1)
        self.refuse(api.USAGE, "threads", threads=-1)
        self.refuse(api.USAGE, "arena_alignment", arena_alignment=-1)
        self.refuse(api.USAGE, "reserved", reserved=1)
        self.refuse(api.USAGE, "version: 2", version=2)
        self.refuse(api.USAGE, "struct_size: 8 bytes", struct_size=8)

    def test_graphs_that_make_no_sense(self):
        bad = lambda words, **changes: self.refuse(api.BAD_INPUT, words, **changes)
        offsets = lambda *items: api.array(c.c_int64, items)
        bad("input_offsets[0]: is 1", input_offsets=offsets(1, 2, 3, 4, 5, 6, 7, 8, 9))
        bad("must ascend", input_offsets=offsets(0, 2, 1, 4, 5, 6, 7, 8, 9))
        bad("must ascend", input_offsets=offsets(0, 0, 0, 0, 0, 0, 0, 0, INT64))
        bad("input_offsets: is NULL", input_offsets=None)
        bad("makes nothing", output_offsets=offsets(0, 1, 2, 3, 4, 5, 6, 7, 7))
        bad("there is no value 8 of 8", inputs=[[8]] + training(4)["inputs"][1:])
        bad("there is no value -1 of 8", inputs=[[-1]] + training(4)["inputs"][1:])
        bad("made by task", outputs=[[0], [0], [2], [3], [4], [5], [6], [7]])
        bad("cycle", inputs=[[1], [0], [], [], [], [], [], []])
        bad("cycle", inputs=[[0], [], [], [], [], [], [], []])
        bad("task '3'", seconds=[0, 0, 0, math.nan, 0, 0, 0, 0])
        bad("task '3'", seconds=[0, 0, 0, -1e-300, 0, 0, 0, 0])
        bad("task 'third'", seconds=[0, 0, 0, math.inf, 0, 0, 0, 0], task_names=["a", "b", "c", "third", "e", "f", "g", "h"])
        bad("choose a larger unit", seconds=[1e308] * 8)
        bad("value '1': -1 bytes", bytes=[0, -1] + [0] * 6)
        bad("out of range", bytes=[INT64] * 8)
        bad("out of range", scratch=[INT64] * 8)
        bad("out of range", scratch=[-1] * 8)
        bad("task_flags", task_flags=[1 << 31] * 8)
        bad("value_flags", value_flags=[16] * 8)
        bad("task_count", task_count=-1)
        bad("task_count", task_count=INT64)
        bad("value_count", value_count=1 << 40)
        bad("task_seconds: is NULL", task_seconds=None)
        bad("value_bytes: is NULL", value_bytes=None)
        bad("encodings: is NULL", encoding_count=3)
        bad("encodings[0]: there is no value 99", encodings=[api.Encoding(99, 1, 0, 0, 0, 0)])
        bad("out of range", encodings=[api.Encoding(0, -1, 0, 0, 0, 0)])
        bad("out of range", encodings=[api.Encoding(0, 1, math.nan, 0, 0, 0)])
        bad("more than 64 encodings", encodings=[api.Encoding(0, 1, 0, 0, 0, 0)] * 65)
        bad("alias_of[0]: there is no value 8", alias_of=[8] + [-1] * 7)
        bad("alias_of[0]: there is no value -2", alias_of=[-2] + [-1] * 7)
        bad("alias_kinds[1]: 3", alias_of=[-1, 0] + [-1] * 6, alias_kinds=[3] * 8)
        bad("view of itself", alias_of=[1, 2, 0] + [-1] * 5)
        bad("neither reads nor makes", alias_of=[-1, -1, 0] + [-1] * 5)
        bad("does not read", alias_of=[-1, -1, 0] + [-1] * 5, alias_kinds=[api.IN_PLACE_OF] * 8)
        bad("cannot lie in place", alias_of=[-1, 0] + [-1] * 6, alias_kinds=[api.IN_PLACE_OF] * 8, bytes=[1] + [2] * 7)
        bad("backward_task", backward_task=9)

    def test_null_pointers(self):
        plan, free = self.library.c.plimsoll_plan_dag, self.library.c.plimsoll_plan_answer_free
        out = c.POINTER(api.Answer)()
        self.assertEqual(plan(None, c.byref(out)), api.USAGE)
        self.assertFalse(out)
        self.assertEqual(plan(c.byref(self.library.request(**training(2))), None), api.USAGE)
        free(None)

    def test_longer_requests_of_newer_callers(self):
        request = self.library.request(**training(4))
        size = c.sizeof(api.Request)
        longer = (c.c_char * (size + 16)).from_buffer_copy(bytes(request) + b"\0" * 16)
        newer = c.cast(longer, c.POINTER(api.Request)).contents
        newer.struct_size = size + 16
        self.assertEqual(self.library.answer(newer).status, api.OK)
        longer[size + 3] = b"\1"
        self.assertIn("install a newer one", self.library.answer(newer).message)

    def test_cancels(self):
        question = training(400) | dict(techniques=api.RECOMPUTE, budget_bytes=100 << 20, deadline_seconds=60.0, threads=1)
        cancel = c.c_int32(0)
        timer = threading.Timer(0.2, lambda: setattr(cancel, "value", 1))
        timer.start()
        plan = self.library.answer(self.library.request(**question, cancel=c.pointer(cancel)))
        timer.join()
        self.assertLess(plan.search_seconds, 30)
        self.assertIn(plan.status, (api.OK, api.NO_ANSWER))
        if plan.status == api.OK:
            replay(training(400), plan, 100 << 20)

    def test_progress_is_told_and_can_end_the_search(self):
        told = []
        question = training(100) | dict(techniques=api.RECOMPUTE, budget_bytes=40 << 20, deadline_seconds=60.0, threads=2)
        plan = self.library.answer(self.library.request(**question, progress=lambda *news: told.append(news) or True))
        self.assertEqual(plan.status, api.OK, plan.message)
        self.assertTrue(told)
        self.assertLess(plan.search_seconds, 30)
        self.assertLessEqual(plan.seconds, told[0][0])

    def test_deadline(self):
        question = training(2000) | dict(techniques=api.RECOMPUTE, budget_bytes=200 << 20, deadline_seconds=0.2, threads=1)
        plan = self.library.answer(self.library.request(**question))
        self.assertIn(plan.status, (api.OK, api.NO_ANSWER))

    def test_many_threads_at_once(self):
        question = training(10) | dict(techniques=api.RECOMPUTE, budget_bytes=7 << 20, work=1)
        answers = [None] * 4
        def work(i):
            answers[i] = self.library.plan(**question)
        workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(len({(plan.peak_bytes, plan.seconds) for plan in answers}), 1)

    def test_arrays_of_anything(self):
        """Whatever the arrays hold, as long as they are as long as they should be: an answer and no crash."""
        seen = {}
        for seed in range(int(os.environ.get("PLIMSOLL_HOSTILE", "100"))):
            r = random.Random(seed)
            question = drawn(seed, r.randint(1, 10))
            question |= dict(techniques=r.randint(0, 15), budget_bytes=r.choice([-1, r.randint(0, 20000)]), work=1, arena_alignment=r.choice([0, 0, 1, 48])) | RATES
            strange = [0, 1, -1, 2, 7, 63, 64, 255, 2**31 - 1, -2**31, 2**40, INT64, -INT64 - 1]
            odd = [0.0, -0.0, -1.0, math.nan, math.inf, -math.inf, 1e308, 5e-324]
            count = sum(map(len, question["inputs"]))
            request = self.library.request(**question)
            arrays = [("inputs", count, strange), ("outputs", sum(map(len, question["outputs"])), strange),
                      ("task_scratch", request.task_count, strange), ("value_bytes", request.value_count, strange),
                      ("alias_of", request.value_count, strange), ("task_seconds", request.task_count, odd)]
            for name, length, choice in r.sample(arrays, r.randint(1, 2)):
                near = lambda: r.choice(choice) if r.random() < 0.5 or name == "task_seconds" else r.randrange(request.value_count)
                for _ in range(r.randint(1, 2)):
                    if length:
                        getattr(request, name)[r.randrange(length)] = near()
            if r.random() < 0.3:
                for i in range(request.value_count):
                    request.alias_kinds[i] = r.randint(0, 2)
            status = self.library.answer(request).status
            self.assertIn(status, (api.OK, api.USAGE, api.BAD_INPUT, api.DOES_NOT_FIT, api.NO_ANSWER), seed)
            seen[status] = seen.get(status, 0) + 1
        self.assertGreater(seen.get(api.OK, 0), 10)
        self.assertGreater(seen.get(api.BAD_INPUT, 0), 25)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
