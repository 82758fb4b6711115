"""What Inductor makes of one node of a joint graph: a view, a part of a fused kernel, a kernel of its own, a random number.

    view        no memory of its own: its base is what lies in memory
    fusible     becomes part of the kernels that read it; costs memory only where it must be stored
    reduction   part of a fused kernel, but its result is stored
    kernel      everything else (mm, convolution, attention): operands and results are stored
    random      must not run twice: it would draw other numbers
"""
import operator

import torch
import torch._inductor.inductor_prims  # registers prims.inductor_*
from torch._functorch import partitioners

aten, prims = torch.ops.aten, torch.ops.prims


def _existing(names):
    """Those that this version of PyTorch has."""
    return {getattr(space, name) for space in (aten, prims) for name in names.split() if hasattr(space, name)}


_VIEWS = _existing("_unsafe_view reshape alias detach broadcast_in_dim lift_fresh_copy")
_FUSIBLE = _existing(
    "embedding constant_pad_nd cat slice_scatter select_scatter tril bernoulli logsumexp split_with_sizes inductor_random "
    "inductor_lookup_seed _low_memory_max_pool_with_offsets _low_memory_max_pool_offsets_to_indices "
    "_low_memory_max_pool2d_with_offsets _low_memory_max_pool2d_offsets_to_indices")
_REDUCTIONS = _existing(
    "sum mean var var_mean std amax amin any all argmax argmin prod min max prepare_softmax_online logsumexp")
_OVER_FIRST = _existing("_unsafe_masked_index_put_accumulate index_put _unsafe_index_put scatter_add scatter")
_SEEDS = _existing("inductor_seeds inductor_seed")
_KINDS = partitioners.get_default_op_list()


def packet(node):
    return getattr(node.target, "_overloadpacket", node.target)


def is_overload(node):
    return isinstance(node.target, torch._ops.OpOverload)


def is_getitem(node):
    return node.target is operator.getitem


def is_view(node):
    return node.op == "call_function" and (packet(node) in _VIEWS or is_overload(node) and node.target.is_view)


def is_fusible(node):
    return (is_getitem(node) or packet(node) in _FUSIBLE or partitioners.get_aten_target(node) in _KINDS.fusible_ops
            or is_overload(node) and torch.Tag.pointwise in node.target.tags)


def is_reduction(node):
    return packet(node) in _REDUCTIONS


def writes_over_first_operand(node):
    return packet(node) in _OVER_FIRST


def is_tangent(node):
    return partitioners._is_tangent(node)


def _dropout_of_attention(node):
    arguments = node.target._schema.arguments
    place = next((i for i, a in enumerate(arguments) if a.name == "dropout_p"), len(node.args))
    return node.kwargs.get("dropout_p", node.args[place] if len(node.args) > place else 0.0)


def is_random(node):
    if not is_overload(node):
        return False
    if packet(node) in _SEEDS or _KINDS.is_random(node):
        return True
    name = str(node.target)
    if "scaled_dot_product" in name or "attention_forward" in name:  # tagged random, but is so with dropout only
        chance = _dropout_of_attention(node)
        return not (isinstance(chance, (int, float)) and chance == 0)
    return torch.Tag.nondeterministic_seeded in node.target.tags


def mutates(node):
    return is_overload(node) and node.target._schema.is_mutable


def may_run_twice(node):
    """Neither random nor tagged MUST_SAVE nor a collective nor somebody's own operator, and writes nothing in place."""
    if node.op != "call_function" or is_random(node):
        return False
    if node.meta.get("recompute") == partitioners.CheckpointPolicy.MUST_SAVE:
        return False
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        return "flex_attention" in str(node.target)
    return not is_overload(node) or not mutates(node) and node.target.namespace in ("aten", "prims")


def tensors(node):
    """The tensors that a node results in, as they are known while compiling."""
    value = node.meta.get("val")
    return [t for t in (value if isinstance(value, (tuple, list)) else [value]) if isinstance(t, torch.Tensor)]


def size_hint(size):
    """Of a symbolic size: the one that this graph was compiled with."""
    if isinstance(size, int):
        return size
    try:
        return int(size.node.hint) if size.node.has_hint() else 4096
    except Exception:  # a size that depends on data has none
        return 4096


def span_bytes(tensor, block=1):
    """Bytes from the first to the last element (an expanded tensor is small), in whole blocks of the allocator."""
    if any(size_hint(s) == 0 for s in tensor.shape):
        return 0
    span = 1 + sum((size_hint(s) - 1) * size_hint(stride) for s, stride in zip(tensor.shape, tensor.stride()))
    return -(-span * tensor.dtype.itemsize // block) * block


def block_of(device):
    return 512 if device.type == "cuda" else 1


def node_bytes(node):
    return sum(span_bytes(t, block_of(t.device)) for t in tensors(node))
