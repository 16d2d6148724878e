"""Results that follow from their inputs, for the next run, as ccache has them.

About a fifth of the time of all tests went into ptxas, which mostly got what it
had got in the run before.  Results lie in $XDG_CACHE_HOME/attn-dev, or
~/.cache/attn-dev, until nobody has asked for them for MOST_DAYS days;
ATTN_DEV_CACHE=0 neither reads nor writes any.
"""

import hashlib
import os
import pickle
import tempfile
import time

MOST_DAYS = 14


def folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "attn-dev")


def get(inputs, make):
    """make(), or what it gave for the same inputs (bytes) before."""
    if os.environ.get("ATTN_DEV_CACHE") == "0":
        return make()
    key = hashlib.sha256()
    for part in inputs:
        key.update(b"%d:" % len(part) + part)
    path = os.path.join(folder(), key.hexdigest())
    try:
        with open(path, "rb") as f:
            result = pickle.load(f)
        os.utime(path)
        return result
    except (OSError, EOFError, pickle.UnpicklingError):
        pass
    result = make()
    write(path, result)
    return result


def write(path, result):
    """Whole or not at all; a machine without room for it works all the same."""
    try:
        os.makedirs(folder(), exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder(), delete=False) as f:
            pickle.dump(result, f)
        os.replace(f.name, path)
        forget_old()
    except OSError:
        pass


def forget_old():
    oldest = time.time() - MOST_DAYS * 24 * 3600
    for entry in os.scandir(folder()):
        if entry.stat().st_mtime < oldest:
            os.unlink(entry.path)
