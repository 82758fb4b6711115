"""How far apart Inductor fuses kernels that share an operand.

Fusing two kernels of different places in the schedule makes what one of them reads wait for the other: the order that was
planned is lost, and with it up to 17 % of a tight budget. Inductor refuses when they are more than 64 places apart; under a
budget that its code did not meet, it refuses from 8 on, and (where the version can) whatever raises its own estimate of the peak.
"""
import contextlib

import torch._inductor.config as config
from torch._inductor.scheduler import Scheduler

_NEAR = 8


def strict_options():
    """Inductor's own guard; 2.11 does not have it."""
    name = "fusion_memory_timeline_peak_memory_pct_threshold"
    return {name: 0.0} if hasattr(config, name) else {}


@contextlib.contextmanager
def distance(strict):
    """While compiling: only neighbours are fused for what they share."""
    original = getattr(Scheduler, "are_long_distant_nodes", None)
    if not strict or original is None:
        yield
        return

    def far(self, node1, node2):
        return max(abs(node1.min_order - node2.max_order), abs(node2.min_order - node1.max_order)) > _NEAR
    Scheduler.are_long_distant_nodes = far
    try:
        yield
    finally:
        Scheduler.are_long_distant_nodes = original
