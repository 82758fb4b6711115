"""A schedule as a graph: the backward half of a joint graph, written anew task by task in the schedule's order.

PyTorch's partitioner takes a set of values to save and makes every other one again at most once. Plans for small budgets
make some values twice and free them in between (resnet50 at 25 %: 5.2 GB instead of 6.5), so whatever is made again is a
copy of its own here, and PyTorch finds everything between the saved values and the gradients spelled out.

What waits in host memory is copied out in the forward half, behind the value that the schedule says, and back in the backward half, where it
is waited for in front of its first reader (swap.py).

Copies keep their meta data. Inlined nodes and views are shared while what they read is the same copy.
"""
import torch.fx as fx
from torch._functorch import partitioners
from torch.utils._pytree import tree_map

from plimsoll_torch.operators import aten, is_fusible, is_tangent, is_view, mutates
from plimsoll_torch import swap
from plimsoll_torch.schedule import BACK, COMPUTE, FREE, OUT
from plimsoll_torch.task_graph import output_of


class CannotRewrite(Exception):
    """The backward pass must stay as it is; a saved set is still possible."""


class _Writer:
    def __init__(self, graph, info, tasks, saved, hosts):
        self.graph, self.info, self.tasks = graph, info, tasks
        self.own = {n for v in tasks.values for n in v.nodes}
        self.current = {n: n for i in saved for n in tasks.values[i].nodes}  # what stands for a value's node now
        self.shared, self.fresh, self.once = {}, {}, {}
        self.hosts, self.coming, self.going = hosts, {}, set()  # of a value's node: where it is on the host, and what is on its way back

    def present(self, n):
        if n.op != "call_function" or self.info.is_required_fw(n) and partitioners.is_sym_node(n):
            return n
        if n not in self.own:
            return self.copy(n)
        if n in self.coming:
            swap.end_in(self.graph, self.coming[n])
            self.current[n] = self.coming.pop(n)
        if n not in self.current:
            raise CannotRewrite(f"the schedule reads '{n}' where it is not in memory")
        return self.current[n]

    def copy(self, n):
        """Of a value, a view, what is inlined, or the operator whose items are taken."""
        reads = None
        if is_fusible(n) or is_view(n):
            reads = {a: self.present(a) for a in n.all_input_nodes}
            pool, key = self.shared, (n, tuple(reads.values()))
        else:  # a backward kernel runs once, a forward one each time the schedule says so
            pool, key = (self.fresh if self.info.is_required_fw(n) else self.once), n
        if key not in pool or n in self.own:
            reads = reads or {a: self.present(a) for a in n.all_input_nodes}
            pool[key] = self.graph.node_copy(n, lambda a: reads[a])
            pool[key].meta = dict(n.meta)
        return pool[key]

    def run(self, steps):
        for what, i in steps:
            value = self.tasks.values[i]
            if what == COMPUTE:
                self.fresh.clear()
                self.current.update({n: n if is_tangent(n) else self.copy(n) for n in value.nodes})
            elif value.forward:
                for n in value.nodes:
                    self._move(what, n)

    def _move(self, what, n):
        if what == BACK:
            if n not in self.hosts:
                raise CannotRewrite(f"the schedule brings '{n}' back, which was never copied out")
            self.current.pop(n, None)
            self.coming[n] = swap.start_in(self.graph, self.hosts[n], n)
        elif what == OUT and n not in self.hosts:
            self.hosts[n] = swap.start_out(self.graph, self.present(n), "backward")
            self.going.add(n)
        elif what == FREE:
            if n in self.going and n in self.current:
                swap.end_out(self.graph, self.hosts[n], self.current[n], "backward")
                self.going.discard(n)
            self.coming.pop(n, None)
            self.current.pop(n, None)


def rewrite_backward(graph, info, tasks, saved, steps, leaving=None):
    """Writes the backward half anew, and the copies that leave the forward half; the nodes to save."""
    old = [n for n in graph.nodes if n.op == "call_function" and not info.is_required_fw(n)]
    if any(mutates(n) for n in old):
        raise CannotRewrite("the backward pass writes in place")
    before, end = list(graph.nodes), output_of(graph)
    arguments = end.args
    hosts = swap.write_copies_out(graph, tasks, leaving or {})
    writer = _Writer(graph, info, tasks, saved, dict(hosts))
    try:
        with graph.inserting_before(end):
            writer.run(steps)
            end.args = tree_map(lambda n: writer.present(n) if isinstance(n, fx.Node) and not info.is_required_fw(n) else n, arguments)
        for n in reversed(old):
            if not n.users:
                graph.erase_node(n)
        graph.lint()
    except CannotRewrite:
        end.args = arguments
        known = set(before)
        for n in reversed([n for n in graph.nodes if n not in known]):
            graph.erase_node(n)
        raise
    left = set(graph.nodes)
    return [n for i in sorted(saved) for n in tasks.values[i].nodes if n in left] + list(hosts.values())


def keep_sums_apart(graph, info):
    """After partitioning, Inductor turns mm(a, b) + c into addmm(c, a, b). Where c is a gradient made much later (tied
    embeddings), a and b - one is the gradient of the logits - would wait for the whole backward pass: 10,581 KiB
    instead of 8,825 on a small GPT-2. c - (-mm) is the same sum and is left alone."""
    place = {n: i for i, n in enumerate(graph.nodes)}
    for n in list(graph.nodes):
        if n.target is not aten.add.Tensor or n.kwargs or n not in info.tangents_closure:
            continue
        if not all(isinstance(x, fx.Node) for x in n.args):
            continue
        for product, other in (n.args, n.args[::-1]):
            if product.target is aten.mm.default and place[other] - place[product] > 40:
                with graph.inserting_before(n):
                    minus = graph.call_function(aten.neg.default, (product,))
                minus.meta, minus.dist_from_bw = dict(product.meta), 0
                info.required_bw_nodes.add(minus)
                info.tangents_closure.add(minus)
                n.target, n.args = aten.sub.Tensor, (other, minus)
                break


def _transposed(node):
    """What a node is the transpose of, or None."""
    if node.target is aten.permute.default and list(node.args[1]) == [1, 0] or node.target is aten.t.default:
        return node.args[0]
    return None


def _padding(node):
    """A padded matrix as (base, padding of its rows, of its columns, value, whether it is of the base's transpose)."""
    if node.target is not aten.constant_pad_nd.default or not isinstance(node.args[0], fx.Node):
        return None
    amounts = list(node.args[1]) + [0, 0, 0, 0]
    value = node.args[2] if len(node.args) > 2 else 0
    if len(node.args[1]) > 4 or node.args[0].meta["val"].dim() != 2 or not all(isinstance(a, int) for a in amounts):
        return None
    columns, rows, base = tuple(amounts[0:2]), tuple(amounts[2:4]), _transposed(node.args[0])
    return (node.args[0], rows, columns, value, False) if base is None else (base, columns, rows, value, True)


def _stands_for(made, n, info):
    """A node that is made in the place of n, and belongs to the pass that n does."""
    made.dist_from_bw = getattr(n, "dist_from_bw", 0)
    for nodes in (info.required_bw_nodes, info.tangents_closure):
        if n in nodes:
            nodes.add(made)
    return made


def _turned(graph, info, padded, n):
    """The transpose of a padded matrix, in the place of n."""
    with graph.inserting_before(n):
        made = graph.call_function(aten.permute.default, (padded, [1, 0]))
    made.meta = {**n.meta, "val": padded.meta["val"].permute(1, 0)}
    return _stands_for(made, n, info)


def _pad_base(graph, info, n, padding):
    """Of a padded transpose in the backward pass: the base padded as it lies. Its own layout is that of what it is computed
    from, which it can then be written over."""
    base, rows, columns, value, _ = padding
    with graph.inserting_before(n):
        made = graph.call_function(aten.constant_pad_nd.default, (base, [*columns, *rows], value))
    made.meta = {**n.meta, "val": n.meta["val"].new_empty(tuple(reversed(n.meta["val"].shape)))}
    return _stands_for(made, n, info)


def share_padding(graph, info):
    """Inductor pads odd matrices before it multiplies them, once for each product: the gradient of GPT-2's logits twice,
    1.6 GB each, as it is and transposed. The second is a transpose of the first."""
    made = {}
    for n in list(graph.nodes):
        padding = _padding(n) if n.op == "call_function" else None
        if padding is None:
            continue
        key, turned = padding[:4], padding[4]
        if key in made and info.is_required_fw(made[key][0]) != info.is_required_fw(n):
            continue
        if key not in made:
            if not turned or n not in info.tangents_closure:
                made[key] = (n, turned)
                continue
            made[key] = (_pad_base(graph, info, n, padding), False)
        first, was_turned = made[key]
        n.replace_all_uses_with(_turned(graph, info, first, n) if turned != was_turned else first)
        graph.erase_node(n)
