"""What pyproject.toml says twice agrees with where it is said first."""

import os
import re

import attn
from conftest import ROOT


def text(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as f:
        return f.read()


def test_version_comes_from_cmake():
    pattern = re.search(r"^regex = '(.*)'$", text("pyproject.toml"), re.M)
    found = re.search(pattern.group(1), text("CMakeLists.txt"))
    assert found.group("value") == attn.__version__


def test_ptxas_is_the_pinned_one():
    pin = re.search(r"^PTXAS_WHEEL=(\S+)$", text("tools/versions"), re.M)
    assert f'ptxas = ["{pin.group(1)}"]' in text("pyproject.toml")


def test_frameworks_are_those_the_modules_ask_for():
    project = text("pyproject.toml")
    least = re.search(r"^LEAST_TORCH = \((\d+), (\d+)\)$",
                      text("python/attn/_torch_ops.py"), re.M)
    assert f'torch = ["torch>={".".join(least.groups())}"]' in project
    least = re.search(r"expects jax ([\d.]+) or newer",
                      text("python/attn/jax.py"))
    assert f'jax = ["jax>={least.group(1)}"]' in project


def test_the_builder_is_pinned():
    assert re.search(r'requires = \["scikit-build-core==[\d.]+"\]',
                     text("pyproject.toml"))
