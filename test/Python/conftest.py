"""What all tests of the Python package share."""

import os
import sys

import pytest

# Tests run beside each other: threads that wait for work would take it away.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Folders of tests have the names of packages: where one is not installed its
# tests must not be taken for it.
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [path for path in sys.path if os.path.abspath(path) != HERE]
sys.path.insert(0, os.path.join(
    os.path.dirname(__file__), "..", "..", "tools", "dev"))
import shares  # noqa: E402  (found by the line above)


@pytest.fixture(autouse=True, scope="session")
def session_cache(tmp_path_factory):
    """Kernels are compiled here, and not found in the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTN_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "long: runs in its part of the days (tools/dev/shares.py)")


def pytest_collection_modifyitems(config, items):
    others = [item for item in items if item.get_closest_marker("long")
              and not shares.has(item.nodeid.rsplit("/", 1)[-1])]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item not in others]
