"""Libraries that are compiled on this machine and then loaded: where they are kept, and whom we believe.

Loading a library runs its code, so one that somebody else could have put there must not be loaded. A name in the
temporary folder is anybody's; this is a folder of the user's own:

    PLIMSOLL_CACHE, or XDG_CACHE_HOME/plimsoll, or ~/.cache/plimsoll       mode 0700

Before a library is loaded from it, checked are
  - the folder, behind all links: ours, and nobody else may even look into it;
  - every folder above it: ours or root's, and nobody else may write there, or it is sticky as /tmp is; else its owner
    or a stranger could rename our folder away and put another in its place;
  - the library: a regular file, ours, that nobody else may write.
What fails a check is not repaired but refused: whoever could write there may have been there before.
"""
import os
import stat
import tempfile


class UnsafePlace(Exception):
    """Somebody else could have written what we would load."""


def cache_folder(environ=os.environ):
    """Where compiled libraries are kept; nothing is made or checked."""
    named = environ.get("PLIMSOLL_CACHE")
    if named:
        return os.path.abspath(named)
    base = environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the specification says to ignore what is not absolute
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "plimsoll")


def _require(condition, path, problem, remedy):
    if not condition:
        raise UnsafePlace(f"{path}: {problem}; {remedy}")


def _check_above(folder, user):
    while folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
        info = os.stat(folder)
        _require(info.st_uid in (0, user), folder, f"belongs to user {info.st_uid}, who could replace what is below it",
                 "set PLIMSOLL_CACHE to a folder of your own")
        _require(not info.st_mode & 0o022 or info.st_mode & stat.S_ISVTX, folder,
                 f"others may write in it (mode {stat.S_IMODE(info.st_mode):04o})", f"chmod go-w {folder}, or set PLIMSOLL_CACHE")


def private_folder(path, user=None):
    """The folder behind all links, made if it is not there; UnsafePlace where it is not ours alone."""
    user = os.geteuid() if user is None else user
    os.makedirs(os.path.dirname(os.path.abspath(path)), mode=0o700, exist_ok=True)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    folder = os.path.realpath(path)
    info = os.lstat(folder)
    _require(stat.S_ISDIR(info.st_mode), folder, "is not a folder", "set PLIMSOLL_CACHE to one")
    _require(info.st_uid == user, folder, f"belongs to user {info.st_uid}, not to {user}", "set PLIMSOLL_CACHE to a folder of your own")
    _require(not info.st_mode & 0o077, folder, f"others may use it (mode {stat.S_IMODE(info.st_mode):04o}, expected 0700)",
             f"remove it, or look at what is in it and chmod 700 {folder}")
    _check_above(folder, user)
    return folder


def check_library(path, user=None):
    """UnsafePlace unless the file is ours and nobody else may write it."""
    user = os.geteuid() if user is None else user
    info = os.lstat(path)
    _require(stat.S_ISREG(info.st_mode), path, "is not a regular file", "remove it")
    _require(info.st_uid == user, path, f"belongs to user {info.st_uid}, not to {user}", "remove it")
    _require(not info.st_mode & 0o022, path, f"others may write it (mode {stat.S_IMODE(info.st_mode):04o})", "remove it")


def built_library(name, build, folder=None):
    """The path of library `name`; where it is not there yet, build(path) makes it under another name first.

    Two processes that build at once both succeed, and nobody sees half a library.
    """
    folder = private_folder(cache_folder() if folder is None else folder)
    target = os.path.join(folder, name)
    if not os.path.lexists(target):
        descriptor, part = tempfile.mkstemp(prefix=name + ".", suffix=".part", dir=folder)
        os.close(descriptor)
        try:
            build(part)
            os.chmod(part, 0o700)
            os.replace(part, target)
        finally:
            if os.path.lexists(part):
                os.unlink(part)
    check_library(target)
    return target
