"""A budget and what is planned under it: from the first call of a compiled model to a measured step.

    call 1    resident bytes are read, every graph is planned and compiled, forward and backward; does it not fit,
              DoesNotFit is raised here, before anything of that graph has been launched
    call 2    the step is measured (on a GPU), from the start of this call to the start of the next
    call 3    measured > budget: the difference becomes a margin, everything is planned again, at most twice;
              then a BudgetExceeded warning says what is missing

    budget = resident + optimizer state to come + reserve + margin + gradients of later graphs + room of this graph

Every graph is judged by the code that Inductor generates for it (allocation_audit.py), before it is launched: where the model
of Inductor was wrong, the graph is planned again with what it did not see.
Graph breaks: the room of a later graph is what earlier ones left. Where that is not enough, the graph that saved most
is told to save less, and the call starts again with random numbers and buffers as they were.
Dynamic shapes: planned for the sizes of the call that compiles; a later call with more bytes plans anew.
"""
import contextlib
import dataclasses
import hashlib
import inspect
import json
import os
import warnings

import torch
import torch._dynamo.utils
import torch._inductor.config

from plimsoll_torch import fusion, padding, resident, stored, swap
from plimsoll_torch.allocation_audit import Watcher
from plimsoll_torch.attempts import Attempts
from plimsoll_torch.byte_size import parse_bytes, show_bytes
from plimsoll_torch.cache_folder import cache_folder
from plimsoll_torch.errors import BudgetExceeded, DoesNotFit
from plimsoll_torch.partitioner import VERSION, GraphPlan, Partitioner
from plimsoll_torch.recompiling import as_often_as_asked
from plimsoll_torch.step_in_backward import PlaceSteps, StepInBackward, end_for

_GRAIN = 2**20  # resident bytes are rounded up to it: PyTorch's caches are found again
_torch_compile = torch.compile  # python -m plimsoll_torch puts another in its place
_MOST_REPLANS = 2
REFUSED_MODES = ("reduce-overhead", "max-autotune")


class _PlanAgain(BaseException):
    """A later graph has too little room; passes through torch.compile, which wraps only Exceptions."""


class Session:
    """Callable in the place of the model; `model.plimsoll`."""

    def __init__(self, function, model, budget, optimizer=None, reserve=0, verify=True, search=None, measure=True, stepper=None, offload=False, **compile_options):
        self.function, self.model, self.optimizer = function, model, optimizer
        self.budget, self.reserve, self.verify = budget, reserve, verify
        self.search, self.measure, self.compile_options = dict(search or {}), measure, compile_options
        self.margin, self.replans, self.measured = 0, 0, None
        self.plans, self.attempts, self.problem, self.audit = [], Attempts(), None, None
        self.resident = self.state_to_come = 0
        self.stored_at = self.known = None
        self.stepper, self.steps_in_backward, self.offload = stepper, stepper is not None, offload
        self.before_optimizer = None  # measured up to the optimizer's step
        if optimizer is not None and verify:
            optimizer.register_step_pre_hook(self._optimizer_steps)
        self.state, self.meter, self.planned_arguments, self.dynamic = "new", None, 0, False
        self._compile()

    def __deepcopy__(self, memo):
        return None  # a copy of the model is not compiled

    def __reduce__(self):
        return (_nothing, ())

    # What PyTorch compiles with.

    def _compile(self, caches=True):
        self.partitioner = Partitioner(self, self.search, self.measure)
        options = dict(self.compile_options.get("options") or {})
        # Inductor keeps dead buffers for later ones up to its own estimate of the peak, which knows nothing of writing in
        # place; partitions are for CUDA graphs.
        options.update({"custom_partitioner_fn": self.partitioner, "allow_buffer_reuse": False})
        if hasattr(torch._inductor.config, "graph_partition"):
            options["graph_partition"] = False
        if self.steps_in_backward:
            options["post_grad_custom_post_pass"] = PlaceSteps()
        if self.offload and hasattr(torch._inductor.config, "reorder_for_peak_memory"):
            options["reorder_for_peak_memory"] = False  # it would put each copy next to its wait
        if self.attempts.strict:
            options.update(fusion.strict_options())
        if not caches:
            options.update({"fx_graph_cache": False, "fx_graph_remote_cache": False})
        self.caches = caches
        others = {k: v for k, v in self.compile_options.items() if k != "options"}
        inductor = torch._TorchCompileInductorWrapper(None, options, others.get("dynamic"))

        def compile_graph(graph, inputs):  # another function each time: Dynamo compiles anew for it
            return self._compile_graph(inductor, graph, inputs)
        self.compiled = _torch_compile(self.function, backend=compile_graph, **others)

    def _compile_graph(self, inductor, graph, inputs):
        """What changes PyTorch is around a compilation, not around each call: a step that compiles nothing is as fast as with torch.compile."""
        functorch = {"force_non_lazy_backward_lowering": True} if self.caches else {"force_non_lazy_backward_lowering": True, "enable_autograd_cache": False}
        with Watcher(self._generated), fusion.distance(self.attempts.strict), padding.decided(), stored.as_planned(), swap.order_kept(), torch._functorch.config.patch(**functorch):
            return inductor(graph, inputs)

    def key(self):
        # What is planned depends on the bytes that are left, whoever has the others: AdamW under a budget larger by its state
        # finds what was compiled with SGD.
        left = self.budget - self.margin - self.reserve - self.resident - self.state_to_come
        return (left, self.attempts.key(), tuple(sorted(self.search.items())), self.steps_in_backward, self.offload)

    # What the partitioner asks and tells.

    def _fixed(self, own_gradients):
        """Bytes beside the room of a graph, by what they are."""
        now = self.resident
        if self.in_call:  # a later graph of the same call
            now = (self.meter.allocated(self.model, self.arguments, self.optimizer) if self.meter.cuda
                   else self.resident + sum(p.saved_bytes for p in self.in_call))
        parameters = resident.trained_parameters(self.model, self.optimizer)
        # Backward passes run from the last graph to the first: gradients of earlier graphs are not there yet.
        others = max(0, resident.gradient_bytes(parameters) - own_gradients - sum(p.gradient_bytes + p.stepped_bytes for p in self.in_call))
        return {"parameters, inputs and whatever else is allocated": now, "optimizer state to come": self.state_to_come,
                "gradients of later graphs": others, "reserve": self.reserve, "margin": self.margin,
                "later graphs": self.attempts.later.get(len(self.in_call), 0), "beyond the model": self.attempts.unseen.get(len(self.in_call), 0)}

    def room(self, tasks):
        own = sum(v.bytes for i, v in enumerate(tasks.values) if not v.forward and (v.keep or v.node in tasks.passing))
        return self.budget - sum(self._fixed(own).values())

    def least(self):
        """Whether the graph that is planned now is to be planned for the least."""
        return len(self.in_call) in self.attempts.least

    def done(self, planned, tasks):
        self.dynamic = self.dynamic or any(isinstance(n.meta.get("val"), torch.SymInt) for n in tasks.nodes if n.op == "placeholder")
        planned.modelled_bytes = planned.peak
        self.in_call.append(planned)

    def cut(self, audit):
        self.audit = audit

    def _generated(self, graph, source):
        """Inductor wrote the code of a graph: what it allocates is what counts."""
        if self.audit is None or not self.in_call:
            return
        self.audit.told(graph, source)
        if self.audit.early():
            raise RuntimeError(f"offload: in the code that PyTorch {torch.__version__} generated, {self.audit.early()} reads a value before its copy from the "
                               "host was waited for, which would be wrong; compile without offload, and please report it")
        peak, at_peak = self.audit.peak()
        if peak is None:
            if graph.is_backward and not self.in_call[-1].fits:  # code of another kind: the model's word is all there is
                planned = self.in_call.pop()
                self._short(planned, planned.peak - planned.room)
            return
        planned, audit, self.audit = self.in_call[-1], self.audit, None
        index, unseen = len(self.in_call) - 1, peak - planned.modelled_bytes
        room = planned.room + self.attempts.unseen.get(index, 0)
        planned.peak, planned.audited, planned.fits = peak, True, peak <= room
        planned.at_peak = [{"name": name, "bytes": size} for size, name in at_peak[:24]]
        planned.buffers = audit.lifetimes()
        if planned.fits and not self.attempts.fits(index, room, peak, unseen, planned.again_seconds > 0):
            return
        self.in_call.pop()
        if planned.fits or self.attempts.over(index, room, unseen, planned.modelled_bytes <= planned.room):
            raise _PlanAgain
        self._short(planned, peak - room)

    def _short(self, planned, short):
        """This many bytes are missing: an earlier graph saves less, or nothing helps."""
        if self.attempts.short(len(self.in_call), short, [p.saved_bytes for p in self.in_call], self.retries):
            raise _PlanAgain
        parts = self._fixed(planned.gradient_bytes + planned.stepped_bytes)
        remedy = "" if planned.by != "saved set" else f"the backward pass could not be written anew: {planned.why}"
        with_offload = planned.smallest_with_offload + max(0, planned.peak - planned.modelled_bytes)
        if planned.smallest_with_offload and with_offload <= planned.peak - short and self._has_a_host():
            remedy = "with offload=True it may fit: values that wait for the backward pass then wait in host memory"
        self.problem = DoesNotFit(self.budget, self.budget + short, planned.limiting or planned.at_peak[:8], parts, remedy, planned.at_peak if planned.audited else ())
        raise self.problem

    def _has_a_host(self):
        return self.meter.cuda

    # Calls.

    def __call__(self, *args, **kwargs):
        self.arguments = (args, kwargs)
        try:
            return self._called(args, kwargs)
        finally:
            self.arguments = None  # a batch is not held until the next one is there

    def _called(self, args, kwargs):
        if not torch.is_grad_enabled():
            self.in_call = []
            return self.compiled(*args, **kwargs)
        if self.stepper is None:
            return self._train(args, kwargs)
        self.stepper.forward_begins()
        try:
            return self._train(args, kwargs)
        except BaseException:
            self.stepper.forwards = 0
            raise

    def _train(self, args, kwargs):
        self._before(args, kwargs)
        snapshot = _Snapshot(self.model) if not self.plans else None
        self.retries = 0
        while True:
            self.in_call, self.audit = [], None
            hits = _cache_hits()
            try:
                with contextlib.nullcontext() if self.plans else as_often_as_asked():
                    out = self.compiled(*args, **kwargs)
                break
            except _PlanAgain:
                self.retries += 1
                snapshot = snapshot or _Snapshot(self.model)
                snapshot.restore()
                self._compile(self.caches)
            except Exception:
                if self.problem is not None:
                    problem, self.problem = self.problem, None
                    self._plan_again()  # nothing of what failed is kept
                    raise problem from None
                raise
        if self._complete(_cache_hits() - hits, out):
            return out
        out = None  # with what it saved
        self._compile(caches=False)
        snapshot.restore()
        return self._train(args, kwargs)

    def _before(self, args, kwargs):
        if self.meter is None:
            self.meter = resident.Meter(resident.device_of(self.model, (args, kwargs)))
        self._judge()
        size = resident.storages(resident.tensors_in(args, kwargs)) if self.dynamic or not self.plans else 0
        if self.plans and self.dynamic and size > self.planned_arguments:
            self._plan_again()
        if not self.plans:
            now = self.meter.allocated(self.model, self.arguments, self.optimizer)
            self.planned_arguments = size
            self.resident = -(-now // _GRAIN) * _GRAIN if self.meter.cuda else now
            self.state_to_come = resident.optimizer_bytes(self.optimizer)
            self.stored_at = self._store_path()
            self.known = self._load()
            if self.known:  # where planning ended last time, which PyTorch's caches may have
                self.attempts = self.known["attempts"]
                self._compile(self.caches)

    def _complete(self, hits, out):
        """Takes over what was planned in this call; False: some of it came from PyTorch's caches and is not known here."""
        if hits and self.known:
            self.plans, self.dynamic = self.known["plans"], self.dynamic or self.known["dynamic"]
        elif hits and not self.plans and self.caches and any(t.requires_grad for t in resident.tensors_in(out)):
            return False
        elif self.in_call:
            self.plans = list(self.in_call)
            self._store()
        elif not self.plans and not hits and any(t.requires_grad for t in resident.tensors_in(out)):
            warnings.warn("plimsoll: PyTorch compiled nothing of this model (TORCH_LOGS=recompiles,graph_breaks tells why), so no budget is held", BudgetExceeded, stacklevel=5)
        return True

    # After the first step: what was measured.

    def _judge(self):
        if not self.verify or not self.meter.cuda or not self.plans:
            return
        if self.state == "new":
            self.state, self.before_optimizer = "measuring", None
            self.meter.reset_peak()
        elif self.state == "measuring":
            self.measured = self.meter.peak()
            self.state = "measured"
            if self.measured > self.budget:
                self._over()

    def _optimizer_steps(self, *_):
        if self.state == "measuring":
            self.before_optimizer = max(self.before_optimizer or 0, self.meter.peak())

    def _over(self):
        over = self.measured - self.budget
        if self.before_optimizer is not None and self.before_optimizer <= self.budget:
            warnings.warn(f"plimsoll: forward and backward pass stay within the budget of {show_bytes(self.budget)}, but {type(self.optimizer).__name__}.step() "
                          f"allocates up to {show_bytes(self.measured)}; construct it with fused=True, or with foreach=False", BudgetExceeded, stacklevel=4)
            return
        if self.replans >= _MOST_REPLANS:
            warnings.warn(f"plimsoll: a step needed {show_bytes(self.measured)}, {show_bytes(over)} more than the budget of "
                          f"{show_bytes(self.budget)}, although it was planned with {show_bytes(self.margin)} in reserve", BudgetExceeded, stacklevel=4)
            return
        self.replans += 1
        # Planning below what was planned is what helps, wherever the unseen bytes lie.
        self.margin += over + max(0, self.budget - self.planned_peak())
        self._plan_again(self.attempts.for_less())

    def _plan_again(self, attempts=None):
        self.plans, self.attempts, self.state = [], attempts or Attempts(), "new"
        self._compile(self.caches)

    # What is known.

    def planned_peak(self):
        """Bytes of a whole step as planned."""
        if not self.plans:
            return None
        beside, peak = self.resident + self.state_to_come + self.reserve + self.margin, 0
        total = resident.gradient_bytes(resident.trained_parameters(self.model, self.optimizer))
        for planned in self.plans:
            total -= planned.gradient_bytes + planned.stepped_bytes
            peak = max(peak, beside + planned.peak + max(0, total))
            beside += planned.saved_bytes
        return peak

    def summary(self):
        """One dictionary: budget, planned and measured bytes, and what was planned for each graph."""
        graphs = [{k: v for k, v in dataclasses.asdict(p).items() if k not in ("tensors", "timeline", "buffers")} for p in self.plans]
        return {"budget_bytes": self.budget, "planned_bytes": self.planned_peak(), "measured_bytes": self.measured,
                "resident_bytes": self.resident, "optimizer_bytes_to_come": self.state_to_come, "margin_bytes": self.margin,
                "replans": self.replans, "graphs": graphs}

    def arena(self, deadline=2.0):
        """Of each graph: the bytes of one arena in which every buffer of its code has a fixed offset, what is live at most,
        and whether no smaller arena exists. What an allocator reserves beyond the first is fragmentation."""
        from plimsoll_torch.schedule import library
        told = []
        for planned in self.plans:
            packing = library().pack([tuple(b) for b in planned.buffers], deadline_seconds=deadline)
            told.append({"arena_bytes": packing.height, "live_bytes": planned.peak, "optimal": packing.status == "optimal", "offsets": packing.offsets})
        return told

    def report(self, path=None):
        """The plan as text; with a path, written there as HTML."""
        from plimsoll_torch import report
        if path is not None:
            report.write_html(self, path)
        return report.text(self)

    def _store_path(self):
        shape = [(tuple(map(str, t.shape)), str(t.dtype)) for t in resident.tensors_in(self.arguments)]
        autocast = [(kind, torch.is_autocast_enabled(kind), str(torch.get_autocast_dtype(kind))) for kind in ("cpu", "cuda")]
        made_of = repr((VERSION, torch.__version__, self.key(), shape, autocast, fingerprint(self.model or self.function)))
        return os.path.join(cache_folder(), "plans", hashlib.sha256(made_of.encode()).hexdigest()[:24] + ".json")

    def _store(self):
        told = {"dynamic": self.dynamic, "attempts": self.attempts.told(), "plans": [dataclasses.asdict(p) for p in self.plans]}
        try:
            os.makedirs(os.path.dirname(self.stored_at), mode=0o700, exist_ok=True)
            with open(self.stored_at + ".new", "w", encoding="utf-8") as file:
                json.dump(told, file)
            os.replace(self.stored_at + ".new", self.stored_at)
        except OSError:
            pass  # the next run compiles without caches

    def _load(self):
        """What was stored for the same request; None where nothing was, or nothing that makes sense."""
        try:
            with open(self.stored_at, encoding="utf-8") as file:
                told = json.load(file)
            plans = [GraphPlan(**one) for one in told["plans"]]
            return {"dynamic": bool(told["dynamic"]), "attempts": Attempts.read(told["attempts"]), "plans": plans} if plans else None
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None


def fingerprint(model):
    """What a model computes, as far as it can be told without tracing it: its modules, their numbers and their sources."""
    def source(code):
        try:
            return inspect.getsource(code)
        except (OSError, TypeError):
            return repr(code)
    if not isinstance(model, torch.nn.Module):
        return source(model)
    plain = lambda m: sorted((k, v) for k, v in vars(m).items() if isinstance(v, (bool, int, float, str)))
    modules = [(name, type(m).__qualname__, plain(m)) for name, m in model.named_modules()]
    parameters = [(name, tuple(p.shape), str(p.dtype), p.requires_grad) for name, p in model.named_parameters()]
    return repr((modules, parameters, sorted({source(type(m)) for m in model.modules()})))


def _cache_hits():
    """Joint graphs that PyTorch took from its cache: the partitioner is not asked about them."""
    return torch._dynamo.utils.counters["aot_autograd"]["autograd_cache_hit"]


def _nothing():
    return None


class _Snapshot:
    """Random numbers and buffers as they are before a call that may have to start again."""

    def __init__(self, model):
        self.model = model if isinstance(model, torch.nn.Module) else None
        self.buffers = [(b, b.detach().clone()) for b in self.model.buffers()] if self.model is not None else []
        self.cpu = torch.get_rng_state()
        self.cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None

    def restore(self):
        with torch.no_grad():
            for buffer, was in self.buffers:
                buffer.copy_(was)
        torch.set_rng_state(self.cpu)
        if self.cuda is not None:
            torch.cuda.set_rng_state_all(self.cuda)


def refuse_modes(mode, options):
    if mode in REFUSED_MODES or (options or {}).get("triton.cudagraphs"):
        raise ValueError(f"compile: mode '{mode or 'triton.cudagraphs'}' records CUDA graphs, whose pools keep memory that no budget "
                         "can be held with; use mode=None or mode='max-autotune-no-cudagraphs'")


def compile(model, budget, *, optimizer=None, reserve=0, verify=True, mode=None, options=None, search=None, measure=True,
            step_in_backward=False, offload=False, **others):
    """torch.compile under a budget: what a training step allocates on the device stays within it.

    model      a module, which is compiled in place and returned, or a function
    budget     "8GiB" or bytes; parameters, gradients, optimizer state and inputs count
    optimizer  its state, allocated at its first step, is then counted from the start
    reserve    bytes that somebody else will allocate during the step
    step_in_backward   use each gradient where it is made, so that they never exist together; clipping, gradient scalers and
               accumulation are then refused
    offload    values may wait in host memory for the backward pass, where that is faster than computing them again: priced by the copies that
               the GPU was measured to make, or by this many bytes a second ("20GiB")
    verify     measure a step on the GPU and plan again if it is over
    mode, options, dynamic, fullgraph   as torch.compile's
    """
    budget, reserve = parse_bytes(budget), parse_bytes(reserve, "reserve") if reserve else 0
    refuse_modes(mode, options)
    if mode is not None:
        options = {**torch._inductor.list_mode_options(mode), **(options or {})}
    for unknown in set(others) - {"dynamic", "fullgraph"}:
        raise TypeError(f"compile: unknown option '{unknown}'; torch.compile's dynamic, fullgraph, mode and options are passed on")
    if step_in_backward and (options or {}).get("post_grad_custom_post_pass") is not None:
        raise ValueError("compile: step_in_backward needs Inductor's post_grad_custom_post_pass for itself; leave one of the two out")
    offload = _offload(offload, model)
    end_for(optimizer)
    stepper = StepInBackward(model, optimizer) if step_in_backward else None
    if not isinstance(model, torch.nn.Module):
        session = Session(model, None, budget, optimizer, reserve, verify, search, measure, offload=offload, options=options, **others)
        return _function(model, session)
    session = Session(model._call_impl, model, budget, optimizer, reserve, verify, search, measure, stepper, offload, options=options, **others)
    model._compiled_call_impl = session
    object.__setattr__(model, "plimsoll", session)
    return model


def _offload(given, model):
    if given in (False, None):
        return False
    if given is not True:
        return parse_bytes(given, "offload")
    on_gpu = resident.device_of(model).type == "cuda" if isinstance(model, torch.nn.Module) else torch.cuda.is_available()
    if not on_gpu:
        raise ValueError("offload: True asks for the rates of a GPU's copies, and the model is on none; move it first, or say how many bytes "
                         'a second to plan with, offload="20GiB"')
    return True


def _function(function, session):
    import functools

    @functools.wraps(function)
    def budgeted(*args, **kwargs):
        return session(*args, **kwargs)
    budgeted.plimsoll = session
    return budgeted
