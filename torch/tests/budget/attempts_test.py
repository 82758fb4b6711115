"""A refusal names a budget that works, whatever the generated code takes. attempts_test.py

The step that is planned here is made up: graphs whose code takes more or less than the model saw, another number of bytes each time the
search ran against a clock, the same only for the least plan. PyTorch is not needed.
"""
import importlib.util
import os
import random
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
_spec = importlib.util.spec_from_file_location("attempts", os.path.join(HERE, "..", "..", "plimsoll_torch", "attempts.py"))
attempts = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(attempts)


class Refused(Exception):
    def __init__(self, smallest):
        super().__init__(smallest)
        self.smallest = smallest


class Graph:
    """The least plan of the model and what its code takes; what a plan saves of its peak."""

    def __init__(self, rng):
        self.by_model = rng.randrange(100, 2000)
        self.by_code, self.saved = self.by_model + rng.randrange(-50, 900), rng.randrange(0, 80)

    def planned(self, room, strict, least, clock):
        """Bytes by the model, by the code, and saved."""
        if least or room < self.by_model:
            seen = self.by_code if strict else self.by_code + clock.randrange(-200, 200)
            return self.by_model, max(1, seen), self.saved
        asked = clock.randrange(self.by_model, room + 1)
        return asked, max(1, asked + clock.randrange(-300, 900)), clock.randrange(0, max(1, room // 4))


def step(graphs, budget, clock, most_calls=200):
    """What Session does with one budget; the bytes of each graph."""
    tried, retries = attempts.Attempts(), 0
    for _ in range(most_calls):
        saved, peaks, again = [], [], False
        for index, graph in enumerate(graphs):
            beside = sum(saved) + tried.later.get(index, 0)
            room, unseen = budget - beside - tried.unseen.get(index, 0), tried.unseen.get(index, 0)
            model, code, keeps = graph.planned(room, tried.strict, index in tried.least, clock)
            if code <= room + unseen:
                again = tried.fits(index, room + unseen, code, code - model, True)
            else:
                again = tried.over(index, room + unseen, code - model, model <= room)
                if not again:
                    short = code - room
                    if not tried.short(index, short, saved, retries):
                        raise Refused(budget + short)
                    again = True
            if again:
                break
            saved.append(keeps)
            peaks.append(beside + code)
        if not again:
            return peaks
        retries += 1
    raise AssertionError("planned without end")


class Budgets(unittest.TestCase):
    def test_the_budget_that_a_refusal_names_works(self):
        refusals = 0
        for seed in range(3000):
            rng = random.Random(seed)
            graph, clock = Graph(rng), random.Random(~seed)
            budget = rng.randrange(1, 3000)
            try:
                peaks = step([graph], budget, clock)
            except Refused as refused:
                refusals += 1
                self.assertGreater(refused.smallest, budget)
                budget = refused.smallest
                peaks = step([graph], budget, clock)  # refused again: the test fails with it
            self.assertLessEqual(max(peaks), budget)
        self.assertGreater(refusals, 500)

    def test_steps_of_several_graphs_are_refused_once_for_each_graph_at_most(self):
        """A graph behind a break is not known before what is in front of it has run."""
        for seed in range(2000):
            rng = random.Random(seed)
            graphs, clock = [Graph(rng) for _ in range(rng.randrange(2, 5))], random.Random(~seed)
            budget, refusals = rng.randrange(1, 3000), 0
            while True:
                try:
                    peaks = step(graphs, budget, clock)
                    break
                except Refused as refused:
                    self.assertGreater(refused.smallest, budget)
                    budget, refusals = refused.smallest, refusals + 1
            self.assertLessEqual(refusals, len(graphs))
            self.assertLessEqual(max(peaks), budget)

    def test_what_was_learned_is_read_as_it_was_told(self):
        tried = attempts.Attempts(True, {0: 7}, {1: 9}, {2})
        self.assertEqual(attempts.Attempts.read(tried.told()).key(), tried.key())


if __name__ == "__main__":
    unittest.main()
