"""Numbers that Python and C++ agree on without a file: a hash of a name and an index.

tests/training/deterministic.h is the other half. splitmix64 of (FNV-1a of the name + index) gives 64 bits;
the upper 53 make a uniform double in [-1, 1).
"""
import numpy as np

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def fnv1a(name):
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def bits(name, count):
    with np.errstate(over="ignore"):
        z = np.uint64(fnv1a(name)) + (np.arange(count, dtype=np.uint64) + np.uint64(1)) * GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def uniform(name, shape):
    """Uniform in [-1, 1), fp64."""
    count = int(np.prod(shape, dtype=np.int64))
    return ((bits(name, count) >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0).reshape(shape)


def below(name, shape, bound):
    """Integers in [0, bound)."""
    count = int(np.prod(shape, dtype=np.int64))
    return (bits(name, count) % np.uint64(bound)).astype(np.int64).reshape(shape)


def weight(name, shape):
    """A weight that keeps activations sane: matrices by their fan, gains near 1, biases near 0."""
    u = uniform(name, shape)
    if len(shape) >= 2:
        return u * np.sqrt(3.0 / max(1, int(np.prod(shape)) // shape[0]))
    return 1 + 0.1 * u if name.endswith(".weight") else 0.1 * u
