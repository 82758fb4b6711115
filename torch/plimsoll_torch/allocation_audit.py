"""What a compiled graph will allocate, read from the code that Inductor generated for it, before it runs.

The plan is made on a model of Inductor's fusion. What Inductor does in the end stands in its wrapper code, one statement
after the other:

    buf1 = empty_strided_cuda((512, 128), (128, 1), torch.float32)      a new storage
    buf2 = buf1; del buf1                                               another name for it
    buf9 = torch.ops.aten._scaled_dot_product…(…); buf10 = buf9[0]      storages made by an operator, sizes from Inductor's graph
    del buf2                                                            the last name goes: freed

so the code is interpreted with storages in the place of tensors, by reference counts as Python has them. The backward pass
starts from the storages that the forward pass returned. Workspaces inside of library kernels are
added where they were measured (`scratch`). Cost: one pass over the statements.
"""
import ast
import contextlib
import functools
from dataclasses import dataclass, field

import torch
from torch._inductor.graph import GraphLowering

from plimsoll_torch.operators import block_of
from plimsoll_torch.swap import COPY_OUT

_NAMES_ONLY = ("reinterpret_tensor", "view_as", "as_strided", "alias")


@dataclass(eq=False)
class Storage:
    bytes: int
    name: str
    counted: bool = True  # False: parameters and inputs, there before and after
    begin: int = None  # by the clock of the step, which ticks when a storage is taken
    end: int = None  # None: it outlives the step


@dataclass
class Audit:
    peak: int = 0
    at_peak: list = field(default_factory=list)  # (bytes, name), largest first
    outputs: list = field(default_factory=list)  # a Storage or None for each result
    kernels: int = 0
    early: str = ""  # who reads a copy from the host that was not waited for
    clock: int = 0
    buffers: list = field(default_factory=list)  # every counted Storage
    workspaces: list = field(default_factory=list)  # (begin, end, bytes)


class _Interpreter:
    def __init__(self, sizes, symbols, block, scratch):
        self.sizes, self.symbols, self.block, self.scratch = sizes, symbols, block, scratch
        self.names, self.count, self.live = {}, {}, 0
        self.children, self.audit = {}, Audit()
        self.coming = set()  # storages that a copy is on its way to

    # Reference counts.

    def hold(self, held):
        for storage in held:
            if storage not in self.count:
                self.count[storage] = 0
                self.audit.clock += 1
                if storage.begin is None and storage.counted:
                    storage.begin = self.audit.clock
                    self.audit.buffers.append(storage)
                self.live += storage.bytes if storage.counted else 0
            self.count[storage] += 1
        self.look()

    def look(self, scratch=0, name=""):
        if self.live + scratch > self.audit.peak:
            self.audit.peak = self.live + scratch
            self.audit.at_peak = [(s.bytes, s.name) for s in self.count if s.counted] + ([(scratch, f"workspace of {name}")] if scratch else [])

    def release(self, held):
        for storage in held:
            self.count[storage] -= 1
            if self.count[storage] == 0:
                del self.count[storage]
                storage.end = self.audit.clock + 1
                self.live -= storage.bytes if storage.counted else 0

    def bind(self, name, held):
        self.hold(held)
        if name in self.scratch:
            self.audit.workspaces.append((self.audit.clock, self.audit.clock + 1, self.scratch[name]))
            self.look(self.scratch[name], name)
        self.release(self.names.pop(name, ()))
        self.names[name] = held

    # What expressions are.

    def _span(self, call):
        value = lambda node: eval(compile(ast.Expression(node), "shape", "eval"), {"__builtins__": {}}, self.symbols)  # noqa: S307 - Inductor's own text
        shape, stride = value(call.args[0]), value(call.args[1])
        dtype = getattr(torch, call.args[2].attr)
        if any(s == 0 for s in shape):
            return 0
        return self._blocks((1 + sum((s - 1) * st for s, st in zip(shape, stride))) * dtype.itemsize)

    def _blocks(self, size):
        return -(-size // self.block) * self.block

    def storages_of(self, value, target):
        if isinstance(value, ast.Name):
            return self.names.get(value.id, ())
        if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name):
            held = self.names.get(value.value.id, ())
            items = self.children.get(value.value.id)
            if items and isinstance(value.slice, ast.Constant) and value.slice.value in items and len(held) == len(items):
                return (held[sorted(items).index(value.slice.value)],)
            return held
        if not isinstance(value, ast.Call):
            return ()
        function = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
        if function.startswith("empty_strided"):
            return (Storage(self._span(value), target),)
        if function in _NAMES_ONLY and value.args and isinstance(value.args[0], ast.Name):
            return self.names.get(value.args[0].id, ())
        items = self.children.get(target)
        if items:
            return tuple(Storage(self._blocks(self.sizes.get(items[i], 0)), items[i]) for i in sorted(items))
        return (Storage(self._blocks(self.sizes[target]), target),) if target in self.sizes else ()

    # Copies from the host.

    def look_at_copies(self, call):
        operator = call.func.value.attr if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Attribute) else ""
        function = getattr(call.func, "id", "")
        read = {s for n in ast.walk(call) if isinstance(n, ast.Name) for s in self.names.get(n.id, ())}
        if operator == "copied_in":
            self.coming -= read
        elif self.coming & read and not function.startswith("assert") and function not in _NAMES_ONLY:
            self.audit.early = self.audit.early or ast.unparse(call.func)
        return operator == "copy_in"

    # Statements.

    def find_children(self, body):
        """Names of the items that are taken from each result of several tensors."""
        for node in ast.walk(ast.Module(body, [])):
            if (isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript) and isinstance(node.value.value, ast.Name)
                    and isinstance(node.value.slice, ast.Constant) and isinstance(node.value.slice.value, int)):
                self.children.setdefault(node.value.value.id, {})[node.value.slice.value] = node.targets[0].id

    def run(self, body, inputs):
        for statement in body:
            call = getattr(statement, "value", None)
            copied = isinstance(call, ast.Call) and self.look_at_copies(call)
            if isinstance(statement, ast.Assign):
                target = statement.targets[0]
                if isinstance(statement.value, ast.Name) and statement.value.id == "args":
                    for one in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
                        self.bind(one.id, inputs.get(one.id, ()))
                    self.release(self.names.pop("args", ()))
                elif isinstance(target, ast.Name):
                    self.bind(target.id, self.storages_of(statement.value, target.id))
                    self.coming.update(self.names[target.id] if copied else ())
            elif isinstance(statement, ast.Delete):
                for one in statement.targets:
                    if isinstance(one, ast.Name):
                        self.release(self.names.pop(one.id, ()))
            elif isinstance(statement, (ast.With, ast.If, ast.While, ast.For)):
                self.run(statement.body, inputs)
            elif isinstance(statement, ast.Return):
                self._return(statement.value)
            elif isinstance(statement, ast.Expr):
                self.audit.kernels += isinstance(statement.value, ast.Call)

    def _return(self, value):
        for one in value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]:
            held = self.storages_of(one, "") if not isinstance(one, ast.Constant) else ()
            self.audit.outputs.append(held[0] if len(held) == 1 else None)


def _function(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name == "call":
            return node
    return None


def interpret(source, sizes, symbols, inputs, block=1, held_outside=(), scratch=None, clock=0):
    """Runs the `call` of a wrapper with storages: inputs[name] is a Storage, sizes[name] the bytes of what operators make.
    None: it cannot be read."""
    function = _function(source)
    if function is None:
        return None
    try:
        return _interpret(function, sizes, symbols, inputs, block, held_outside, scratch or {}, clock)
    except (ArithmeticError, AttributeError, LookupError, NameError, TypeError, ValueError):
        return None  # statements that this version of PyTorch did not write when this was written


def _interpret(function, sizes, symbols, inputs, block, held_outside, scratch, clock):
    run = _Interpreter(sizes, symbols, block, scratch)
    run.audit.clock = clock
    run.find_children(function.body)
    held = {name: (storage,) for name, storage in inputs.items()}
    run.bind("(held outside)", tuple(held_outside))
    run.bind("args", tuple(storage for (storage,) in held.values()))
    run.run(function.body, held)
    run.audit.at_peak.sort(key=lambda one: -one[0])
    return run.audit


def _hint(graph, expression):
    if isinstance(expression, int):
        return expression
    guess = getattr(graph.sizevars, "optimization_hint", None) or graph.sizevars.size_hint
    return int(guess(expression, fallback=4096))


def _layout_bytes(graph, node):
    layout = node.get_layout() if hasattr(node, "get_layout") else None
    if layout is None or not hasattr(layout, "stride") or not hasattr(layout, "dtype"):
        return None
    size = [_hint(graph, s) for s in layout.size]
    if any(s == 0 for s in size):
        return 0
    span = 1 + sum((s - 1) * _hint(graph, st) for s, st in zip(size, layout.stride))
    return (span + _hint(graph, layout.offset)) * layout.dtype.itemsize


def _sizes(graph):
    found = {}
    for buffer in graph.buffers:
        if getattr(buffer, "op_overload", None) is COPY_OUT:  # lies on the host
            continue
        with contextlib.suppress(Exception):  # a buffer without a layout has no bytes
            size = _layout_bytes(graph, buffer)
            if size is not None:
                found[buffer.get_name()] = size
    return found


def _scratch(graph, scratch_of):
    """Of each buffer that a library's kernel makes: the workspace that it takes."""
    found = {}
    for buffer in graph.buffers:
        kernels = [n for n in getattr(buffer, "origins", ()) if n.op == "call_function"]
        size = max((scratch_of(n) for n in kernels), default=0)
        if size:
            found[buffer.get_name()] = size
    return found


def _symbols(graph):
    values = getattr(graph.sizevars, "backed_var_to_val", None) or getattr(graph.sizevars, "var_to_val", {})
    return {str(symbol): int(value) for symbol, value in values.items()}


def input_bytes(graph, name):
    with contextlib.suppress(Exception):  # a number, not a tensor
        return _layout_bytes(graph, graph.graph_inputs[name])
    return None


class Watcher:
    """Audits every graph that Inductor generates code for while it is entered; told(graph, source) for each."""

    def __init__(self, told):
        self.told = told

    def __enter__(self):
        self.original = GraphLowering.codegen

        @functools.wraps(self.original)
        def codegen(graph):
            made = self.original(graph)
            self.told(graph, getattr(made[0], "value", made[0]))
            return made
        GraphLowering.codegen = codegen
        return self

    def __exit__(self, *_):
        GraphLowering.codegen = self.original


class StepAudit:
    """The audits of one joint graph: its forward half, then its backward half from what the forward half saved."""

    def __init__(self, forward_outputs, backward_inputs, results, scratch_of=lambda node: 0):
        self.forward_outputs, self.backward_inputs, self.results = forward_outputs, backward_inputs, results
        self.scratch_of = scratch_of
        self.forward = self.backward = None

    def told(self, graph, source):
        device = next((d for d in graph.device_types if d != "cpu"), "cpu")
        block = block_of(torch.device(device))
        scratch = _scratch(graph, self.scratch_of)
        if not graph.is_backward:
            inputs = {name: Storage(0, name, counted=False) for name in graph.graph_inputs}
            self.forward = interpret(source, _sizes(graph), _symbols(graph), inputs, block, scratch=scratch)
            return
        if self.forward is None:
            return
        saved = dict(zip(self.forward_outputs, self.forward.outputs))
        # The caller has the results; autograd holds their gradients until the backward pass returns.
        outside = {s for s in self.forward.outputs[:self.results] if s is not None and s.counted}
        inputs = {}
        for name, own in zip(graph.graph_inputs, self.backward_inputs):
            if own in saved and saved[own] is not None:
                inputs[name] = saved[own]
            elif "tangents" in own:
                inputs[name] = Storage(-(-(input_bytes(graph, name) or 0) // block) * block, name)
                outside.add(inputs[name])
            else:  # a parameter that was passed on
                inputs[name] = Storage(0, name, counted=False)
        self.backward = interpret(source, _sizes(graph), _symbols(graph), inputs, block, outside, scratch, self.forward.clock)

    def peak(self):
        """Bytes beside the resident ones, and what is live then; None where the code could not be read."""
        if self.forward is None or self.backward is None:
            return None, []
        larger = max(self.forward, self.backward, key=lambda audit: audit.peak)
        return larger.peak, larger.at_peak

    def lifetimes(self):
        """(begin, end, bytes) of everything that both passes allocate, for one arena with fixed offsets."""
        last = self.backward.clock + 2
        held = [(s.begin, s.end or last, s.bytes) for audit in (self.forward, self.backward) for s in audit.buffers if s.bytes]
        return held + self.forward.workspaces + self.backward.workspaces

    def early(self):
        """Who reads a copy from the host before it has arrived; "": nobody."""
        return next((audit.early for audit in (self.forward, self.backward) if audit is not None and audit.early), "")

    def saved_bytes(self):
        held = {s for s in self.forward.outputs if s is not None and s.counted}
        return sum(s.bytes for s in held)
