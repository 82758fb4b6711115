"""The planner and the packer in Python, through libplimsoll.so and ctypes alone: plimsoll/plimsoll.h, field by field.

    from plimsoll_ctypes import Library, RECOMPUTE
    library = Library()                                # or the path of libplimsoll.so
    plan = library.plan(inputs=[[], [0], [0, 1]], outputs=[[0], [1], [2]], bytes=[4096, 1024, 16],
                        seconds=[1e-3, 2e-3, 1e-3], value_flags=[0, 0, KEEP], techniques=RECOMPUTE, budget_bytes=5200)
    for step in plan.steps: print(step.kind, step.id)

    packing = library.pack([(0, 3, 4), (3, 9, 4), (0, 9, 8)])    # (begin, end, bytes), end exclusive
    print(packing.height, packing.offsets)                       # 12 [0, 0, 4]

Copy this file into your project: it needs Python's standard library only.
"""
import ctypes as c
import ctypes.util

OK, INTERNAL, USAGE, BAD_INPUT, DOES_NOT_FIT, NO_ANSWER = range(6)
RECOMPUTE, SWAP, ENCODE, LOSSY, SPLIT = 1, 2, 4, 8, 16
ONCE, RANDOM, COLLECTIVE = 1, 2, 4
KEEP, PINNED, NO_RECOMPUTE, NO_SWAP = 1, 2, 4, 8
VIEW_OF, IN_PLACE_OF, OVERWRITES = 0, 1, 2
SEARCH, LIST, GIVEN = 0, 1, 2
COMPUTE, RECOMPUTED, COPY_OUT, COPY_IN, ENCODED_STEP, DECODED_STEP, FREE, VIEW = range(8)
ON_DEVICE, ENCODED, ON_HOST = range(3)

PROGRESS = c.CFUNCTYPE(c.c_int32, c.c_void_p, c.c_double, c.c_int64, c.c_double)


class Encoding(c.Structure):
    _fields_ = [("value", c.c_int64), ("bytes", c.c_int64), ("encode_seconds", c.c_double),
                ("decode_seconds", c.c_double), ("lossy", c.c_uint32), ("reserved", c.c_uint32)]


class Memory(c.Structure):
    _fields_ = [("bytes", c.c_int64), ("reserved", c.c_int64 * 5)]


class Request(c.Structure):
    _fields_ = [
        ("struct_size", c.c_uint32), ("version", c.c_uint32),
        ("task_count", c.c_int64), ("value_count", c.c_int64),
        ("input_offsets", c.POINTER(c.c_int64)), ("inputs", c.POINTER(c.c_int64)),
        ("output_offsets", c.POINTER(c.c_int64)), ("outputs", c.POINTER(c.c_int64)),
        ("task_seconds", c.POINTER(c.c_double)), ("task_scratch", c.POINTER(c.c_int64)),
        ("task_flags", c.POINTER(c.c_uint32)), ("task_names", c.POINTER(c.c_char_p)),
        ("value_bytes", c.POINTER(c.c_int64)), ("value_flags", c.POINTER(c.c_uint32)),
        ("alias_of", c.POINTER(c.c_int64)), ("alias_kinds", c.POINTER(c.c_uint32)),
        ("value_names", c.POINTER(c.c_char_p)), ("backward_task", c.c_int64),
        ("techniques", c.c_uint32), ("order", c.c_uint32),
        ("to_host_bytes_per_second", c.c_double), ("from_host_bytes_per_second", c.c_double),
        ("copy_latency_seconds", c.c_double), ("encoding_count", c.c_int64), ("encodings", c.POINTER(Encoding)),
        ("budget_bytes", c.c_int64), ("memory_count", c.c_int64), ("memories", c.POINTER(Memory)),
        ("arena_alignment", c.c_int64), ("deadline_seconds", c.c_double), ("work", c.c_int64), ("seed", c.c_uint64),
        ("threads", c.c_int32), ("reserved", c.c_int32), ("cancel", c.POINTER(c.c_int32)), ("progress", PROGRESS),
        ("progress_user", c.c_void_p), ("goal", c.c_uint32), ("reserved2", c.c_uint32), ("slowdown", c.c_double)]


class Step(c.Structure):
    _fields_ = [("kind", c.c_int32), ("stream", c.c_int32), ("id", c.c_int64), ("first_instance", c.c_int64),
                ("reads", c.c_int32), ("writes", c.c_int32), ("first_wait", c.c_int64), ("wait_count", c.c_int64),
                ("seconds", c.c_double), ("scratch_offset", c.c_int64)]


class Instance(c.Structure):
    _fields_ = [("value", c.c_int64), ("form", c.c_int32), ("reserved", c.c_int32), ("encoding", c.c_int64),
                ("bytes", c.c_int64), ("takes_over", c.c_int64), ("begin", c.c_int64), ("end", c.c_int64),
                ("offset", c.c_int64)]


class Limit(c.Structure):
    _fields_ = [("value", c.c_int64), ("bytes", c.c_int64)]


class Answer(c.Structure):
    _fields_ = [
        ("struct_size", c.c_uint32), ("version", c.c_uint32), ("status", c.c_int32), ("optimal", c.c_int32),
        ("message", c.c_char_p), ("peak_bytes", c.c_int64), ("host_peak_bytes", c.c_int64), ("seconds", c.c_double),
        ("bound_seconds", c.c_double), ("keep_all_bytes", c.c_int64), ("keep_all_seconds", c.c_double),
        ("floor_bytes", c.c_int64), ("smallest_budget_bytes", c.c_int64), ("arena_bytes", c.c_int64),
        ("step_count", c.c_int64), ("steps", c.POINTER(Step)), ("instance_count", c.c_int64),
        ("instances", c.POINTER(Instance)), ("step_instances", c.POINTER(c.c_int64)), ("waits", c.POINTER(c.c_int64)),
        ("limiting_count", c.c_int64), ("limiting", c.POINTER(Limit)), ("limiting_task", c.c_int64),
        ("search_seconds", c.c_double)]


class Plan:
    """An answer whose arrays are Python lists; the numbers keep the names of the C struct."""

    def __init__(self, answer):
        for name in ("status", "peak_bytes", "host_peak_bytes", "seconds", "bound_seconds", "keep_all_bytes",
                     "keep_all_seconds", "floor_bytes", "smallest_budget_bytes", "arena_bytes", "limiting_task",
                     "search_seconds"):
            setattr(self, name, getattr(answer, name))
        self.optimal = bool(answer.optimal)
        self.message = answer.message.decode(errors="replace")
        self.instances = [Instance.from_buffer_copy(answer.instances[i]) for i in range(answer.instance_count)]
        self.limiting = [(answer.limiting[i].value, answer.limiting[i].bytes) for i in range(answer.limiting_count)]
        self.steps = []
        for i in range(answer.step_count):
            step = Step.from_buffer_copy(answer.steps[i])
            at = step.first_instance
            step.read = answer.step_instances[at:at + step.reads]
            step.written = answer.step_instances[at + step.reads:at + step.reads + step.writes]
            step.wait = answer.waits[step.first_wait:step.first_wait + step.wait_count]
            self.steps.append(step)


class PlanError(Exception):
    """What plimsoll_plan_dag() refused; `plan` has the lower bound, the smallest budget and the limiting values."""

    def __init__(self, plan):
        super().__init__(plan.message)
        self.plan = plan


class PackError(Exception):
    """What the packer refused or could not do; `code` is the exit code of the same failure on the command line."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Packing:
    """Offsets, in the order of the buffers; `status` is "optimal" or "feasible"."""

    def __init__(self, offsets, height, lower_bound, status):
        self.offsets, self.height, self.lower_bound, self.status = offsets, height, lower_bound, status


def array(kind, items):
    return None if items is None else (kind * max(1, len(items)))(*items)


def rows(lists):
    """Lists one behind the other: offsets and items."""
    offsets, items = [0], []
    for row in lists:
        items.extend(row)
        offsets.append(len(items))
    return array(c.c_int64, offsets), array(c.c_int64, items)


class Library:
    def __init__(self, path=None):
        try:
            self.c = c.CDLL(path or ctypes.util.find_library("plimsoll") or "libplimsoll.so.0")
        except OSError as missing:
            raise OSError(f"{missing}; name the file, Library('.../lib/libplimsoll.so.0'), or its folder in LD_LIBRARY_PATH") from None
        self.c.plimsoll_plan_dag.argtypes = [c.POINTER(Request), c.POINTER(c.POINTER(Answer))]
        self.c.plimsoll_plan_dag.restype = c.c_int
        self.c.plimsoll_plan_answer_free.argtypes = [c.POINTER(Answer)]
        self.c.plimsoll_plan_answer_free.restype = None
        self.c.plimsoll_version.restype = c.c_char_p
        for name, result, arguments in (
                ("new", c.c_void_p, []), ("free", None, [c.c_void_p]), ("add_buffer", c.c_int64, [c.c_void_p] + 4 * [c.c_int64]),
                ("fix", c.c_int, [c.c_void_p, c.c_int64, c.c_int64]), ("solve", c.c_int, [c.c_void_p, c.c_int64, c.c_double, c.c_int]),
                ("offset", c.c_int64, [c.c_void_p, c.c_int64]), ("height", c.c_int64, [c.c_void_p]),
                ("lower_bound", c.c_int64, [c.c_void_p]), ("status", c.c_char_p, [c.c_void_p]), ("message", c.c_char_p, [c.c_void_p])):
            function = getattr(self.c, "plimsoll_pack_" + name)
            function.restype, function.argtypes = result, arguments

    def version(self):
        return self.c.plimsoll_version().decode()

    def request(self, inputs, outputs, bytes, seconds, *, scratch=None, task_flags=None, task_names=None,
                value_flags=None, alias_of=None, alias_kinds=None, value_names=None, encodings=(), memories=(),
                progress=None, **options):
        """A Request; `options` are fields of the struct by their names, arrays live as long as it does."""
        text = lambda names: None if names is None else [name.encode() for name in names]
        made = Request(struct_size=c.sizeof(Request), version=1, task_count=len(seconds), value_count=len(bytes),
                       budget_bytes=-1, encoding_count=len(encodings), memory_count=len(memories))
        made.input_offsets, made.inputs = rows(inputs)
        made.output_offsets, made.outputs = rows(outputs)
        for name, kind, items in (
                ("task_seconds", c.c_double, seconds), ("task_scratch", c.c_int64, scratch),
                ("task_flags", c.c_uint32, task_flags), ("task_names", c.c_char_p, text(task_names)),
                ("value_bytes", c.c_int64, bytes), ("value_flags", c.c_uint32, value_flags),
                ("alias_of", c.c_int64, alias_of), ("alias_kinds", c.c_uint32, alias_kinds),
                ("value_names", c.c_char_p, text(value_names)), ("encodings", Encoding, encodings or None),
                ("memories", Memory, memories or None)):
            setattr(made, name, array(kind, items))
        if progress is not None:
            made.progress = PROGRESS(lambda user, seconds, peak, elapsed: int(bool(progress(seconds, peak, elapsed))))
        for name, value in options.items():
            if name not in dict(Request._fields_):
                raise TypeError(f"a request has no field '{name}'")
            setattr(made, name, value)
        return made

    def answer(self, request):
        """Runs any request; a Plan whatever its status."""
        out = c.POINTER(Answer)()
        status = self.c.plimsoll_plan_dag(c.byref(request), c.byref(out))
        if not out:
            raise MemoryError(f"plimsoll_plan_dag returned {status} and no answer")
        try:
            return Plan(out.contents)
        finally:
            self.c.plimsoll_plan_answer_free(out)

    def plan(self, *arguments, **options):
        plan = self.answer(self.request(*arguments, **options))
        if plan.status != OK:
            raise PlanError(plan)
        return plan

    def pack(self, buffers, *, capacity=None, alignment=1, fixed=None, deadline_seconds=10.0, deterministic=False):
        """Offsets for (begin, end, bytes) with half-open lifetimes; without a capacity as low as possible.
        `fixed` is {index: offset}. PackError for what makes no sense, does not fit, or was not found in time."""
        handle = self.c.plimsoll_pack_new()
        if not handle:
            raise MemoryError("plimsoll_pack_new returned NULL")
        refused = lambda code: PackError(code, self.c.plimsoll_pack_message(handle).decode(errors="replace"))
        try:
            for begin, end, size in buffers:
                if self.c.plimsoll_pack_add_buffer(handle, begin, end, size, alignment) < 0:
                    raise refused(BAD_INPUT)
            for index, offset in (fixed or {}).items():
                code = self.c.plimsoll_pack_fix(handle, index, offset)
                if code:
                    raise refused(code)
            code = self.c.plimsoll_pack_solve(handle, -1 if capacity is None else capacity, deadline_seconds, int(deterministic))
            if code:
                raise refused(code)
            return Packing([self.c.plimsoll_pack_offset(handle, i) for i in range(len(buffers))], self.c.plimsoll_pack_height(handle),
                           self.c.plimsoll_pack_lower_bound(handle), self.c.plimsoll_pack_status(handle).decode())
        finally:
            self.c.plimsoll_pack_free(handle)
