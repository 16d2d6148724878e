"""What all tests of the Python package share."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def session_cache(tmp_path_factory):
    """Kernels are compiled here, and not found in the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTN_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield
