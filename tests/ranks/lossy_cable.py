#!/usr/bin/env python3
"""A cable between two network namespaces that delays every packet, and loses some.

    lossy_cable.py NEAR FAR DELAY_MS LOST_IN_A_THOUSAND

Makes an interface `cable` in each namespace (a TUN device) and carries packets between them until it is killed; prints a
line when both are there. For kernels without netem. Packets are lost by a fixed sequence of random numbers.
"""
import collections
import ctypes
import fcntl
import os
import random
import select
import struct
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
CLONE_NEWNET = 0x40000000


def end_in(namespace):
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/var/run/netns/{namespace}", "rb") as space:
        if libc.setns(space.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns {namespace}")
    end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH22x", b"cable", IFF_TUN | IFF_NO_PI))
    return end


def main():
    delay, lost = float(sys.argv[3]) / 1000, int(sys.argv[4])
    chance = random.Random(1)
    ends = [end_in(name) for name in sys.argv[1:3]]
    other = dict(zip(ends, reversed(ends)))
    print("cable", flush=True)
    travelling = collections.deque()  # (arrives, to, packet), in the order of arrival
    while True:
        wait = max(0, travelling[0][0] - time.monotonic()) if travelling else None
        for end in select.select(ends, [], [], wait)[0]:
            packet = os.read(end, 65536)
            if chance.randrange(1000) >= lost:
                travelling.append((time.monotonic() + delay, other[end], packet))
        while travelling and travelling[0][0] <= time.monotonic():
            _, to, packet = travelling.popleft()
            try:
                os.write(to, packet)
            except OSError:
                pass  # lost: the queue is full, or that end is not up yet


if __name__ == "__main__":
    main()
