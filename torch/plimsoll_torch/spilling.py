"""Tensors that wait in host memory at their own addresses, when the program says so.

    plimsoll_torch.use_allocator(capacity="12GiB", spill="host")
    pt.spill(teacher)            # a module, a tensor, or several: the device memory is free for others
    pt.restore(teacher)          # before it is used again

What the tensors fill of the allocator's slabs (2 to 64 MiB) is copied to pinned host memory, which is mapped where they were:
pointers, views and captured references stay valid, and a kernel that reads them all the same is slow, not wrong. A slab of
which something else uses a part stays; both calls say how much did. Nothing is spilled or restored unasked. Host memory
stays pinned for the next time until torch.cuda.empty_cache().

Before anything is pinned, what this machine and the control groups of this process leave is read. The limit of locked memory
(RLIMIT_MEMLOCK) is not the driver's: it is named where the driver refuses.
"""
import ctypes
import os
import resource
from typing import NamedTuple

from plimsoll_torch.byte_size import show_bytes

_library = None


class Moved(NamedTuple):
    moved: int  # bytes
    stays: int  # bytes of the tensors, in slabs that others use a part of


def begin(library, device):
    """Refuses where the driver cannot map host memory among the device's addresses."""
    global _library
    from plimsoll_torch.allocator import take_text
    refusal = take_text(library, library.plimsoll_spill_refusal(device))
    if refusal:
        raise RuntimeError(f'use_allocator: spill="host": {refusal}')
    _library = library


def _read(path):
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""


def _groups_room(root):
    """What each memory control group above this process leaves, with its file."""
    for line in _read(os.path.join(root, "proc/self/cgroup")).splitlines():
        number, controllers, path = (line.split(":", 2) + ["", ""])[:3]
        second = number == "0" and not controllers
        if not second and "memory" not in controllers.split(","):
            continue
        mounted = os.path.join(root, "sys/fs/cgroup" if second else "sys/fs/cgroup/memory")
        most, used, kept = (("memory.max", "memory.current", "inactive_file") if second
                            else ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"))
        at = path.strip("/")
        while True:
            limit, now = (_read(os.path.join(mounted, at, name)).strip() for name in (most, used))
            if limit.isdigit() and now.isdigit() and int(limit) < 1 << 60:
                files = [line.split() for line in _read(os.path.join(mounted, at, "memory.stat")).splitlines()]
                given_up = next((int(words[1]) for words in files if words[:1] == [kept]), 0)  # pages of files
                yield max(0, int(limit) - max(0, int(now) - given_up)), os.path.join("/", at, most)
            if not at:
                break
            at = os.path.dirname(at)


def host_room(root="/"):
    """(bytes that may be pinned, what says so): the least of what the machine has and what control groups leave."""
    rooms = list(_groups_room(root))
    for line in _read(os.path.join(root, "proc/meminfo")).splitlines():
        if line.startswith("MemAvailable:") and line.split()[1].isdigit():
            rooms.append((int(line.split()[1]) << 10, "MemAvailable"))
    return min(rooms, default=(1 << 62, "nothing known"))


def _addresses(what, kind="cuda"):
    """Device -> addresses of the storages behind a tensor, the parameters and buffers of a module, or several of them."""
    found, work = {}, [what]
    while work:
        one = work.pop()
        if hasattr(one, "parameters") and hasattr(one, "buffers"):
            work += [*one.parameters(), *one.buffers()]
        elif hasattr(one, "untyped_storage"):
            if one.device.type != kind:
                raise ValueError(f"spill, restore: a tensor of {tuple(one.shape)} is on '{one.device.type}', not on a {kind} device")
            if one.untyped_storage().nbytes():
                found.setdefault(one.device.index or 0, set()).add(one.untyped_storage().data_ptr())
        elif isinstance(one, (list, tuple, set, frozenset)):
            work += one
        elif isinstance(one, dict):
            work += one.values()
        else:
            raise TypeError(f"spill, restore: a {type(one).__name__} is neither a tensor nor a module, nor several of them")
    return {device: sorted(addresses) for device, addresses in found.items()}


def _locked_memory():
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return "" if soft == resource.RLIM_INFINITY else f"; this process may lock {show_bytes(soft)} (RLIMIT_MEMLOCK, ulimit -l)"


def _move(call, by_device):
    import json

    from plimsoll_torch.allocator import take_text
    moved = stays = 0
    for device, addresses in by_device.items():
        outcome = json.loads(take_text(_library, call(device, (ctypes.c_void_p * len(addresses))(*addresses), len(addresses))))
        moved, stays = moved + outcome["moved"], stays + outcome["stays"]
        if outcome["problem"]:
            return Moved(moved, stays), outcome["problem"]
    return Moved(moved, stays), ""


def _check_room(by_device, room):
    wanted = sum(_library.plimsoll_to_be_pinned(device, (ctypes.c_void_p * len(at))(*at), len(at)) for device, at in by_device.items())
    left, says = room
    if wanted > left:
        raise MemoryError(f"spill: {show_bytes(wanted)} of host memory would be pinned, and {says} leaves {show_bytes(left)}; spill less")


def _ready(name):
    if _library is None:
        raise RuntimeError(f'{name}: call plimsoll_torch.use_allocator(spill="host") before the first use of CUDA')


def spill(what):
    """Moves a module's parameters and buffers, a tensor, or several to host memory; they may be read as before, slowly."""
    _ready("spill")
    by_device = _addresses(what)
    _check_room(by_device, host_room())
    done, problem = _move(_library.plimsoll_spill, by_device)
    if problem:
        raise RuntimeError(f"spill: {problem}{_locked_memory() if 'host memory' in problem else ''}")
    return done


def restore(what):
    """Moves them back; torch.OutOfMemoryError where the device has no room, with what was moved by then on the device."""
    _ready("restore")
    done, problem = _move(_library.plimsoll_restore, _addresses(what))
    if problem:
        import torch
        raise torch.OutOfMemoryError(f"restore: {problem}")
    return done
