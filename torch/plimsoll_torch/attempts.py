"""Which plan of a graph is tried next when its generated code takes more than there is room for.

    1  as fast as fits                     the model's word for what the code will take
    2  the same with what was unseen       fusing less where that was much, or where it was tried before
    3  the least                           fusing less, from a request that does not know the budget

The last is the same plan, with the same code, whatever the budget is: what it takes is the budget that a refusal names. Given that
budget, whatever is tried before, the least is tried in the end and fits, so the promise cannot contradict itself. That asks two
things of the least plan: no clock in its search and nothing of the budget in its request (partitioner.py), and of a later graph, whose room
is what earlier ones leave, that those are planned for the least too.
"""
from dataclasses import dataclass, field

_WORTH_PLANNING_AGAIN = 0.05  # share of a graph's room that its code leaves unused
_LITTLE_UNSEEN = 0.06  # share of a graph's room that its code takes beyond the model
_MOST_RETRIES = 4  # for graphs that make an earlier one save less


@dataclass
class Attempts:
    """What was learned of the graphs of a step, in the order of their forward passes. True: plan again."""
    strict: bool = False  # Inductor fuses only neighbours
    unseen: dict = field(default_factory=dict)  # graph -> bytes that the model does not see
    later: dict = field(default_factory=dict)  # graph -> bytes that it saves less for later ones
    least: set = field(default_factory=set)  # graphs that are planned for the least
    widened: dict = field(default_factory=dict)  # graph -> what was taken as unseen before it was planned for the difference

    def key(self):
        return (self.strict, tuple(sorted(self.unseen.items())), tuple(sorted(self.later.items())), tuple(sorted(self.least)))

    def for_less(self):
        """Of the same graphs under a smaller budget: what was learned of their code holds."""
        return Attempts(self.strict, dict(self.unseen), least=set(self.least), widened=self.widened)

    def fits(self, index, room, peak, unseen, recomputes):
        """The code fits. What was unseen before kernels were fused less is not what is unseen now: plan once more for the difference?"""
        unused, allowed = room - peak, self.unseen.get(index, 0)
        if index in self.widened or index in self.least or not recomputes or unused < _WORTH_PLANNING_AGAIN * room or allowed <= max(0, unseen):
            return False
        self.widened[index] = allowed
        self.unseen[index] = max(0, unseen) + unused // 8
        return True

    def over(self, index, room, unseen, by_model):
        """The code takes more than `room`; `by_model`: although the model said that it fits. False: it was the least."""
        if index in self.least:
            return False
        if self.widened.get(index):  # it was too much: as it was before
            self.unseen[index], self.widened[index] = self.widened[index], 0
        elif not self.strict and by_model:
            # A little more than the model saw is planned for; fusing less would cost time.
            self.strict = unseen > _LITTLE_UNSEEN * room or index in self.unseen
            self.unseen[index] = unseen
        else:
            self._plan_for_least(index)
        return True

    def _plan_for_least(self, *graphs):
        self.strict = True
        for index in graphs:
            self.least.add(index)
            self.unseen.pop(index, None)
            self.later.pop(index, None)

    def short(self, index, short, saved, retries):
        """`short` bytes are missing for the least of graph `index`; `saved`: what each earlier one saves. An earlier one saves less. False:
        all are planned for the least."""
        earlier = [i for i in range(index) if i not in self.least]
        most = max(earlier, key=lambda i: saved[i], default=None)
        if most is None:
            return False
        if retries < _MOST_RETRIES and saved[most] > short:
            self.later[most] = self.later.get(most, 0) + short
        else:
            self._plan_for_least(*earlier)
        return True

    # In the file of a plan.

    def told(self):
        return {"strict": self.strict, "unseen": list(self.unseen.items()), "later": list(self.later.items()), "least": sorted(self.least)}

    @staticmethod
    def read(told):
        numbers = lambda pairs: {int(k): int(v) for k, v in pairs}
        return Attempts(bool(told["strict"]), numbers(told["unseen"]), numbers(told["later"]), {int(i) for i in told["least"]})
