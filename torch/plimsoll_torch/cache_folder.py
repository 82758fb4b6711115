"""Where measured times and plans are kept between runs: PLIMSOLL_CACHE, or XDG_CACHE_HOME/plimsoll, or ~/.cache/plimsoll.

They are JSON and are read as such: nothing from this folder is ever run.
"""
import os


def cache_folder(environ=os.environ):
    named = environ.get("PLIMSOLL_CACHE")
    if named:
        return os.path.abspath(named)
    base = environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the specification says to ignore what is not absolute
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "plimsoll")
