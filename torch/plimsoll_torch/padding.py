"""Which products Inductor pads to a multiple of what tensor cores like: for large ones, all that may be.

Inductor runs each product both ways and takes the faster. The three products over GPT-2's 50,257 words are then padded by the noise of
the measurement: the gradient of the logits is needed padded for one of them and as it is for another, 3.1 GB twice in
fp32, and what is planned for one compilation does not hold for the next. Padded in all of them, logits and their gradient have one
layout, and the gradient is written over the logits: GPT-2 in bf16 needs 1.6 GB less where most is needed.
"""
import contextlib

import torch
import torch._inductor.fx_passes.pad_mm as pad_mm

from plimsoll_torch.operators import size_hint

_LARGE = 64 << 20  # bytes of the largest of the three matrices


def _is_large(first, second, operator):
    if operator is not torch.ops.aten.mm and operator is not torch.ops.aten.addmm:
        return False
    (rows, inner), columns = map(size_hint, first.shape), size_hint(second.shape[1])
    largest = max(rows * inner, inner * columns, rows * columns) * first.dtype.itemsize
    return largest >= _LARGE and pad_mm.is_mm_compute_bound(rows, inner, columns, first.dtype)


@contextlib.contextmanager
def decided():
    """While compiling."""
    original = getattr(pad_mm, "_should_pad", None)
    if original is None:  # a version that decides elsewhere
        yield
        return

    def should_pad(match, first, second, operator, *more, **named):
        return _is_large(first, second, operator) or original(match, first, second, operator, *more, **named)
    pad_mm._should_pad = should_pad
    try:
        yield
    finally:
        pad_mm._should_pad = original
