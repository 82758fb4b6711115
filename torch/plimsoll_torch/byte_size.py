"""Sizes as people write them: 8GiB, 500 MB, 1.5g, or a number of bytes."""
import re

UNITS = {"": 1, "b": 1, "k": 2**10, "kib": 2**10, "kb": 10**3, "m": 2**20, "mib": 2**20, "mb": 10**6,
         "g": 2**30, "gib": 2**30, "gb": 10**9, "t": 2**40, "tib": 2**40, "tb": 10**12}


def parse_bytes(size, what="budget"):
    """Bytes of "8GiB" (2**30), "8GB" (10**9), "8G" (2**30) or 8589934592."""
    if isinstance(size, bool) or not isinstance(size, (int, float, str)):
        raise TypeError(f"{what}: {size!r} is not a size; write \"8GiB\" or a number of bytes")
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-z]*)\s*", size) if isinstance(size, str) else None
    if isinstance(size, str) and (found is None or found.group(2).lower() not in UNITS):
        raise ValueError(f"{what}: '{size}' is not a size; write \"8GiB\", \"500MB\" or a number of bytes")
    count = float(found.group(1)) * UNITS[found.group(2).lower()] if found else size
    if not 0 < count < 2**62:
        raise ValueError(f"{what}: {size} is not between 1 byte and 4 EiB")
    return int(count)


def show_bytes(count):
    """8,192.0 MiB; small ones in KiB."""
    return f"{count / 2**20:,.1f} MiB" if abs(count) >= 10 * 2**20 else f"{count / 2**10:,.1f} KiB"
