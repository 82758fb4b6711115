"""What PyTorch documents of its allocator, on ours or on the native one.

    python behaviours.py plimsoll|native        prints one line per behaviour, exits 1 if one fails
"""
import gc
import os
import sys
import time
import traceback

which = sys.argv[1]
import torch

if which == "plimsoll":
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    import plimsoll_torch
    plimsoll_torch.use_allocator()
MiB = 1 << 20


def statistics_count_tensors():
    before = torch.cuda.memory_allocated()
    x = torch.empty(10 * MiB, dtype=torch.uint8, device="cuda")
    assert torch.cuda.memory_allocated() - before >= 10 * MiB
    assert torch.cuda.max_memory_allocated() >= torch.cuda.memory_allocated()
    assert torch.cuda.memory_reserved() >= torch.cuda.memory_allocated()
    assert torch.cuda.memory_stats()["allocation.all.current"] >= 1
    assert "Allocated memory" in torch.cuda.memory_summary()
    del x
    assert torch.cuda.memory_allocated() == before


def a_freed_block_is_used_again_on_its_stream():
    x = torch.empty(64 * MiB, dtype=torch.uint8, device="cuda")
    pointer = x.data_ptr()
    del x
    y = torch.empty(64 * MiB, dtype=torch.uint8, device="cuda")
    assert y.data_ptr() == pointer


def record_stream_keeps_data_until_the_other_stream_is_done():
    side = torch.cuda.Stream()
    for _ in range(20):
        x = torch.full((16 * MiB,), 7, dtype=torch.uint8, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(2_000_000)
            total = x.clone()
        x.record_stream(side)
        del x
        y = torch.zeros(16 * MiB, dtype=torch.uint8, device="cuda")
        torch.cuda.current_stream().wait_stream(side)
        assert bool((total == 7).all()), "the block was reused too early"
        del y, total


def other_streams_do_not_overwrite_each_other():
    streams = [torch.cuda.Stream() for _ in range(4)]
    for turn in range(10):
        results = []
        for index, stream in enumerate(streams):
            with torch.cuda.stream(stream):
                a = torch.full((4 * MiB,), index + turn, dtype=torch.int32, device="cuda")
                b = a * 2
                results.append((b.sum(), (index + turn) * 2 * 4 * MiB))
                del a, b
        torch.cuda.synchronize()
        for got, expected in results:
            assert int(got) == expected


def empty_cache_gives_memory_back():
    x = torch.empty(512 * MiB, dtype=torch.uint8, device="cuda")
    del x
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() < 512 * MiB


def out_of_memory_is_an_error_and_the_next_call_works():
    free, total = torch.cuda.mem_get_info()
    try:
        torch.empty(2 * total, dtype=torch.uint8, device="cuda")
        assert False, "expected an error"
    except torch.OutOfMemoryError as error:
        assert "out of memory" in str(error)
    torch.empty(64 * MiB, dtype=torch.uint8, device="cuda").fill_(1)


def a_limit_is_kept_and_the_cache_makes_room():
    _, total = torch.cuda.mem_get_info()
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 1024 * MiB) / total)
    try:
        for size in (900, 300, 700, 200, 950):
            torch.empty(size * MiB, dtype=torch.uint8, device="cuda").fill_(1)
        try:
            torch.empty(3000 * MiB, dtype=torch.uint8, device="cuda")
            assert False, "expected an error"
        except torch.OutOfMemoryError:
            pass
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def captured_graphs_keep_their_memory():
    x = torch.ones(MiB, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = (x * 2).relu() + 1
    torch.cuda.current_stream().wait_stream(side)
    del y
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = (x * 2).relu() + 1
        z = y.sum()
    for value in (1.0, 5.0, -3.0):
        x.fill_(value)
        junk = [torch.full((MiB,), 99.0, device="cuda") for _ in range(8)]
        graph.replay()
        torch.cuda.synchronize()
        assert float(y[0]) == max(0.0, 2 * value) + 1, float(y[0])
        del junk
    del graph, y, z


def history_and_snapshot_have_pytorchs_layout():
    torch.cuda.memory._record_memory_history(max_entries=1000)
    x = torch.empty(3 * MiB, dtype=torch.uint8, device="cuda")
    del x
    snapshot = torch.cuda.memory._snapshot()
    torch.cuda.memory._record_memory_history(enabled=None)
    actions = [entry["action"] for entry in snapshot["device_traces"][0]]
    assert "alloc" in actions and "free_completed" in actions, actions
    assert {"address", "total_size", "blocks"} <= set(snapshot["segments"][0])
    from torch.cuda import _memory_viz
    assert len(_memory_viz.trace_plot(snapshot)) > 1000


def threads_share_the_allocator():
    import threading
    def work(seed):
        for i in range(300):
            torch.empty((seed * 37 + i * 101) % 5000 * 1024 + 1, dtype=torch.uint8, device="cuda")
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]


failed = 0
for check in (statistics_count_tensors, a_freed_block_is_used_again_on_its_stream,
              record_stream_keeps_data_until_the_other_stream_is_done,
              other_streams_do_not_overwrite_each_other, empty_cache_gives_memory_back,
              out_of_memory_is_an_error_and_the_next_call_works, a_limit_is_kept_and_the_cache_makes_room,
              captured_graphs_keep_their_memory, history_and_snapshot_have_pytorchs_layout,
              threads_share_the_allocator):
    try:
        check()
        print(f"  ok    {which} {check.__name__}")
    except Exception as error:
        failed += 1
        print(f"  FAIL  {which} {check.__name__}: {type(error).__name__}: {str(error)[:300]}")
        traceback.print_exc(limit=3)
    gc.collect()
    torch.cuda.synchronize()
sys.exit(1 if failed else 0)
