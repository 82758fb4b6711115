"""PyTorch on Plimsoll's allocator.

    import plimsoll_torch
    plimsoll_torch.use_allocator()      # before anything touches CUDA

PyTorch refuses statistics, snapshots and history for a plugged-in allocator, so use_allocator() points
torch.cuda's memory functions to ours: loops and loggers that call them keep working. What cannot work
is listed in UNSUPPORTED; PyTorch raises an error that says so when it is tried.
"""
import ctypes
import json
import os
import sys
import warnings

UNSUPPORTED = {
    "sharing CUDA tensors between processes (torch.multiprocessing)":
        "PyTorch asks only its own allocator for handles of other processes",
    "cudagraph trees (torch.compile with mode='reduce-overhead')":
        "they save and restore the state of PyTorch's own pools; plain torch.cuda.graph works",
    "torch.backends.cudnn.benchmark = True":
        "it asks PyTorch's own allocator for the largest free block; use_allocator() turns it off",
    "memory_snapshot of a single MemPool": "snapshots are of a whole device",
}

_library = None
_fraction = {}


def library_path():
    """The plug-in: PLIMSOLL_TORCH_LIBRARY, or libplimsoll_torch.so beside this file or in build/."""
    named = os.environ.get("PLIMSOLL_TORCH_LIBRARY")
    if named:
        return named
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.dirname(os.path.dirname(here))
    places = [os.path.join(here, "libplimsoll_torch.so")]
    places += [os.path.join(root, "build", preset, "torch", "libplimsoll_torch.so")
               for preset in ("cuda", "release")]
    for place in places:
        if os.path.exists(place):
            return place
    raise FileNotFoundError(
        "libplimsoll_torch.so not found; build it (cmake --preset cuda, target plimsoll_torch) or set "
        "PLIMSOLL_TORCH_LIBRARY")


def _load(path):
    library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    library.plimsoll_count.restype = ctypes.c_int64
    library.plimsoll_statistics.restype = ctypes.c_void_p
    library.plimsoll_snapshot.restype = ctypes.c_void_p
    library.plimsoll_free_text.argtypes = [ctypes.c_void_p]
    library.plimsoll_record_history.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64]
    library.plimsoll_memory_fraction.argtypes = [ctypes.c_double, ctypes.c_int]
    library.plimsoll_problem.restype = ctypes.c_char_p
    library.plimsoll_set_capacity.argtypes = [ctypes.c_int64]
    library.plimsoll_spill_refusal.restype = ctypes.c_void_p
    library.plimsoll_to_be_pinned.restype = ctypes.c_int64
    for move in (library.plimsoll_to_be_pinned, library.plimsoll_spill, library.plimsoll_restore):
        move.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int64]
    library.plimsoll_spill.restype = library.plimsoll_restore.restype = ctypes.c_void_p
    return library


def take_text(library, pointer):
    text = ctypes.string_at(pointer).decode()
    library.plimsoll_free_text(pointer)
    return text


def _take_json(pointer):
    return json.loads(take_text(_library, pointer))


def _device(device=None):
    import torch
    return torch.cuda._utils._get_device_index(device, optional=True)


# What torch.cuda's functions become. Signatures are PyTorch's.

def memory_stats(device=None):
    stats = _take_json(_library.plimsoll_statistics(_device(device)))
    for name in ("oversize_allocations", "oversize_segments"):
        for field in ("current", "peak", "allocated", "freed"):
            stats.setdefault(f"{name}.{field}", 0)
    for pool in ("small_pool", "large_pool"):
        for name in ("reserved_bytes", "segment", "inactive_split", "inactive_split_bytes"):
            for field in ("current", "peak", "allocated", "freed"):
                stats.setdefault(f"{name}.{pool}.{field}", 0)
    stats.setdefault("num_sync_all_streams", 0)
    stats.setdefault("max_split_size", -1)
    return dict(sorted(stats.items()))


def memory_stats_as_nested_dict(device=None):
    nested = {}
    for key, value in memory_stats(device).items():
        at = nested
        *parents, last = key.split(".")
        for parent in parents:
            at = at.setdefault(parent, {})
        at[last] = value
    return nested


def memory_allocated(device=None):
    return _library.plimsoll_count(_device(device), 0)


def max_memory_allocated(device=None):
    return _library.plimsoll_count(_device(device), 1)


def memory_reserved(device=None):
    return _library.plimsoll_count(_device(device), 2)


def max_memory_reserved(device=None):
    return _library.plimsoll_count(_device(device), 3)


def reset_peak_memory_stats(device=None):
    _library.plimsoll_reset_peaks(_device(device))


def reset_accumulated_memory_stats(device=None):
    _library.plimsoll_reset_totals(_device(device))


def empty_cache():
    _library.plimsoll_reset()


def set_per_process_memory_fraction(fraction, device=None):
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    index = _device(device)
    _fraction[index] = fraction
    _library.plimsoll_memory_fraction(fraction, index)


def get_per_process_memory_fraction(device=None):
    return _fraction.get(_device(device), 1.0)


def memory_snapshot(mempool_id=None, include_traces=True):
    import torch
    if mempool_id is not None:
        raise RuntimeError("plimsoll: " + "memory_snapshot of a single MemPool is not supported; "
                           + UNSUPPORTED["memory_snapshot of a single MemPool"])
    segments = []
    for device in range(torch.cuda.device_count()):
        segments += _segments_and_trace(device)["segments"]
    return segments


def _segments_and_trace(device):
    raw = _take_json(_library.plimsoll_snapshot(device))
    for segment in raw["segments"]:
        segment["segment_pool_id"] = tuple(segment["segment_pool_id"])
    return raw


def _snapshot(device=None, augment_with_fx_traces=False):
    import torch
    segments, traces = [], []
    for index in range(torch.cuda.device_count()):
        raw = _segments_and_trace(index)
        segments += raw["segments"]
        traces.append(raw["trace"])
    return {"segments": segments, "device_traces": traces,
            "allocator_settings": {"expandable_segments": True, "backend": "plimsoll"},
            "external_annotations": []}


def _dump_snapshot(filename="dump_snapshot.pickle", augment_with_fx_traces=False):
    import pickle
    with open(filename, "wb") as file:
        pickle.dump(_snapshot(), file)


def _record_memory_history(enabled="all", *args, max_entries=sys.maxsize, device=None, **kwargs):
    on = 0 if enabled in (None, False) else 1
    _library.plimsoll_record_history(_device(device), on, min(max_entries, 2**40))


def get_allocator_backend():
    return "plimsoll"


_REPLACED = (
    memory_stats, memory_stats_as_nested_dict, memory_allocated, max_memory_allocated, memory_reserved,
    max_memory_reserved, reset_peak_memory_stats, reset_accumulated_memory_stats, empty_cache,
    set_per_process_memory_fraction, get_per_process_memory_fraction, memory_snapshot, _snapshot,
    _dump_snapshot, _record_memory_history, get_allocator_backend,
)


def _patch(torch):
    for function in _REPLACED:
        for module in (torch.cuda.memory, torch.cuda):
            if hasattr(module, function.__name__):
                setattr(module, function.__name__, function)
    for module in (torch.cuda.memory, torch.cuda):
        module.memory_cached = memory_reserved
        module.max_memory_cached = max_memory_reserved
        module.reset_max_memory_allocated = reset_peak_memory_stats
        module.reset_max_memory_cached = reset_peak_memory_stats


def _set_functions(torch, allocator):
    address = lambda name: ctypes.cast(getattr(_library, name), ctypes.c_void_p).value
    inner = allocator._allocator
    inner.set_init_fn(address("plimsoll_init"))
    inner.set_reset_fn(address("plimsoll_reset"))
    inner.set_memory_fraction_fn(address("plimsoll_memory_fraction"))
    inner.set_base_alloc_fn(address("plimsoll_base_alloc"))
    inner.set_record_stream_fn(address("plimsoll_record_stream"))
    inner.set_begin_allocate_to_pool(address("plimsoll_begin_pool"))
    inner.set_end_allocate_to_pool_fn(address("plimsoll_end_pool"))
    inner.set_release_pool(address("plimsoll_release_pool"))


def use_allocator(capacity=None, spill=None):
    """Makes PyTorch allocate from Plimsoll. Must come before the first use of CUDA.

    capacity   "12GiB" or bytes that each device may hold at most
    spill      "host": pt.spill() and pt.restore() may be called; refused here where the driver cannot map host memory
    """
    global _library
    import torch
    from plimsoll_torch.byte_size import parse_bytes
    if spill not in (None, "host"):
        raise ValueError(f"use_allocator: spill={spill!r}: tensors can be spilled to the \"host\" only")
    if _library is not None:
        if capacity is not None or spill is not None:
            raise RuntimeError("use_allocator: PyTorch allocates from Plimsoll already; capacity and spill belong to the first call")
        return
    capacity = parse_bytes(capacity, "capacity") if capacity is not None else 0
    if torch.cuda.is_initialized():
        raise RuntimeError("plimsoll_torch.use_allocator(): CUDA has started already; call it before the "
                           "first tensor, or run `python -m plimsoll_torch script.py`")
    for variable in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        if os.environ.get(variable):
            warnings.warn(f"plimsoll_torch: {variable} is for PyTorch's own allocator and has no effect")
    path = library_path()
    _library = _load(path)
    _library.plimsoll_set_capacity(capacity)
    allocator = torch.cuda.memory.CUDAPluggableAllocator(path, "plimsoll_device_alloc", "plimsoll_device_free")
    _set_functions(torch, allocator)
    torch.cuda.memory.change_current_allocator(allocator)
    if torch.backends.cudnn.benchmark:
        torch.backends.cudnn.benchmark = False
        warnings.warn("plimsoll_torch: torch.backends.cudnn.benchmark is off: it needs PyTorch's own allocator")
    _patch(torch)
    if spill is not None:
        from plimsoll_torch import spilling
        spilling.begin(_library, torch.cuda.current_device())
