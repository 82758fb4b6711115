"""The loss over a large vocabulary, a part of the tokens at a time.

    loss = F.cross_entropy(F.linear(hidden, weight), target)              # logits, their softmax, their gradient: 3 x 1.6 GB for GPT-2
    loss = pt.linear_cross_entropy(hidden, weight, target, chunks=8)      # an eighth of that

The same number and the same gradients, up to the order of additions. Each part's gradients are computed with its logits, while they are there: the
forward pass does the work of the backward pass, nothing is computed twice, and only gradients of the size of `hidden` and
`weight` wait for the backward pass. How many labels count enters there only: Inductor makes that number in one kernel with
the mean of all parts, and a gradient that needed it would wait, with its logits, for the last part.
"""
import torch


def _add_product(total, first, second):
    """As one kernel where there is one: Inductor makes a sum of sums in one go, when all products are there."""
    return torch.addmm(total, first, second) if total.dtype == first.dtype else total + first @ second


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, hidden, weight, target, ignore_index, chunks):
        count = (target != ignore_index).sum().clamp(min=1)
        total = hidden.new_zeros((), dtype=torch.float32)
        wanted = ctx.needs_input_grad[0] or ctx.needs_input_grad[1]
        of_hidden, of_weight = [], torch.zeros_like(weight, dtype=torch.float32) if wanted else None
        for part, labels in zip(hidden.chunk(chunks), target.chunk(chunks)):
            valid = labels != ignore_index
            labels = torch.where(valid, labels, 0)
            logits = torch.nn.functional.linear(part, weight)
            scaled = logits if logits.dtype == torch.float64 else logits.float()
            log_sum = scaled.logsumexp(-1)
            picked = scaled.gather(1, labels[:, None])[:, 0]
            total = total + torch.where(valid, log_sum - picked, 0.0).sum()
            if wanted:
                places = torch.arange(scaled.shape[1], device=scaled.device)
                gradient = (scaled - log_sum[:, None]).exp() - (places == labels[:, None]).to(scaled.dtype)
                gradient = torch.where(valid[:, None], gradient / target.shape[0], 0.0).to(logits.dtype)
                of_hidden.append((gradient @ weight.to(logits.dtype)).to(hidden.dtype))
                of_weight = _add_product(of_weight, gradient.t(), part.to(logits.dtype))
        if wanted:
            ctx.save_for_backward(torch.cat(of_hidden), of_weight.to(weight.dtype), count)
        return total / count

    @staticmethod
    def backward(ctx, gradient):
        of_hidden, of_weight, count = ctx.saved_tensors
        gradient = gradient * of_hidden.shape[0] / count
        return of_hidden * gradient.to(of_hidden.dtype), of_weight * gradient.to(of_weight.dtype), None, None, None


def linear_cross_entropy(hidden, weight, target, *, ignore_index=-100, chunks=8):
    """The mean cross entropy of F.linear(hidden, weight) against `target`, without ever holding all logits.

    hidden [..., d], weight [vocabulary, d], target [...] of class numbers; those equal to ignore_index do not count.
    """
    if hidden.shape[:-1] != target.shape:
        raise ValueError(f"linear_cross_entropy: hidden has {tuple(hidden.shape[:-1])} vectors, target {tuple(target.shape)} labels; they must agree")
    if weight.dim() != 2 or weight.shape[1] != hidden.shape[-1]:
        raise ValueError(f"linear_cross_entropy: weight {tuple(weight.shape)} does not multiply vectors of {hidden.shape[-1]}")
    if not isinstance(chunks, int) or chunks < 1:
        raise ValueError(f"linear_cross_entropy: chunks {chunks!r} is not a number of parts")
    return _LinearCrossEntropy.apply(hidden.flatten(0, -2), weight, target.flatten(), ignore_index, chunks)
