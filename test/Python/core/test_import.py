"""What `import attn` costs, and what is said when the library is missing."""

import os

import attn
import pytest
from conftest import ROOT


def test_import_pulls_in_nothing_heavy(python):
    loaded = python("""
        import sys
        before = set(sys.modules)
        import attn
        heavy = {"numpy", "torch", "jax", "jaxlib", "cupy", "triton",
                 "attn.torch", "attn.jax"}
        print(sorted(heavy & (set(sys.modules) - before)))
        print("libattn" in open("/proc/self/maps").read())
        """)
    assert loaded.split("\n")[:2] == ["[]", "False"]


def test_everything_public_is_there():
    for name in attn.__all__:
        assert getattr(attn, name) is not None
        assert name in dir(attn)
    assert {"torch", "jax", "__version__"} <= set(dir(attn))
    with pytest.raises(AttributeError, match="'attn' has no attribute 'tpu'"):
        attn.tpu


def test_help_where_no_framework_is_installed(python, tmp_path):
    for name in ("torch", "jax"):
        (tmp_path / f"{name}.py").write_text(
            f"raise ModuleNotFoundError('no module {name} here')")
    said = python("""
        import sys
        sys.path.insert(0, ".")
        import attn
        print(hasattr(attn, "torch"), hasattr(attn, "jax"))
        try:
            attn.torch
        except AttributeError as error:
            print(error)
        try:
            import attn.torch
        except ImportError as error:
            print(error)
        help(attn)
        """)
    lines = said.split("\n")
    assert lines[:3] == ["False False", "attn.torch is not there: no module "
                         "torch here", "no module torch here"]
    assert "an attention compiler" in said and "forward(q: " in said


@pytest.mark.long
def test_help_without_the_library(python):
    said = python("import attn; print(hasattr(attn, '__version__')); "
                  "help(attn)", ATTN_LIBRARY="/nowhere/libattn.so")
    assert said.startswith("False\n") and "forward(q: " in said


def test_version_is_that_of_the_project():
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as f:
        assert f"project(attn VERSION {attn.__version__} " in f.read()


def test_missing_library_names_both_places(python):
    said = python("""
        import attn
        try:
            attn.machines()
        except ImportError as error:
            assert isinstance(error, attn.LibraryError)
            print(error)
        """, ATTN_LIBRARY="/nowhere/libattn.so")
    assert "$ATTN_LIBRARY is /nowhere/libattn.so" in said
    assert os.path.join("attn", "lib", "libattn.so") in said


def test_a_file_that_is_no_library(python, tmp_path):
    broken = tmp_path / "libattn.so"
    broken.write_text("not a library")
    said = python("""
        import attn
        try:
            attn.machines()
        except attn.LibraryError as error:
            print(error)
        """, ATTN_LIBRARY=broken)
    assert f"expects to load {broken}, but the loader says" in said


def test_a_library_of_another_version(monkeypatch):
    from attn import _native
    monkeypatch.setitem(_native.SIGNATURES, "attn_tomorrow", (None, []))
    with pytest.raises(attn.LibraryError, match=r"has attn_tomorrow, but got "
                       r"version \d+\.\d+\.\d+ at .*libattn"):
        _native.function("attn_tomorrow")


def test_errors_are_what_they_say():
    assert issubclass(attn.Error, RuntimeError)
    for kind, base in ((attn.CompileError, attn.Error),
                       (attn.DeviceError, attn.Error),
                       (attn.CacheError, OSError),
                       (attn.UnsupportedError, NotImplementedError),
                       (attn.LibraryError, ImportError)):
        assert issubclass(kind, base) and issubclass(kind, attn.Error)
        assert str(kind("a sentence")) == "a sentence"
        assert kind.__module__ == "attn"
