"""What pyproject.toml says twice agrees with where it is said first."""

import importlib
import os
import re

import attn
import pytest
from attn import _commands
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
                      text("python/attn/_jax_calls.py"))
    assert f'jax = ["jax>={least.group(1)}"]' in project


def test_the_builder_is_pinned():
    assert re.search(r'requires = \["scikit-build-core==[\d.]+"\]',
                     text("pyproject.toml"))


@pytest.fixture
def package_metadata(monkeypatch):
    monkeypatch.syspath_prepend(os.path.join(ROOT, "tools", "dev"))
    return importlib.import_module("package_metadata")


@pytest.mark.parametrize("remote, expected", [
    ("https://code.example/attn/attn.git", "https://code.example/attn/attn"),
    ("https://user:word@code.example/attn/attn/",
     "https://code.example/attn/attn"),
    ("git@code.example:attn/attn.git", "https://code.example/attn/attn"),
    ("ssh://git@code.example:22/attn/attn", "https://code.example/attn/attn"),
    ("/home/somebody/attn", None), ("../attn", None), ("", None)])
def test_the_address_is_that_of_the_remote(package_metadata, remote, expected):
    assert package_metadata.web_address(remote) == expected


def test_pictures_of_the_package_have_absolute_addresses(package_metadata):
    made = package_metadata.readme(text("README.md"), "https://code.example/a",
                                   "1.2.3")
    targets = re.findall(r"\]\(([^)]*)\)", made)
    assert targets and all(t.startswith("https://") for t in targets)
    assert ("](https://code.example/a/raw/v1.2.3/docs/figures/speed.svg)"
            in made)
    assert "](https://code.example/a/blob/v1.2.3/docs/using.md)" in made
    assert package_metadata.readme("[a](b.md)", None, "1.2.3") == "[a](b.md)"


def test_the_metadata_name_the_address(package_metadata, monkeypatch):
    monkeypatch.setenv("ATTN_URL", "https://code.example/a/")
    made = package_metadata.dynamic_metadata({}, {"version": "1.2.3"})
    assert made["urls"] == {
        "Repository": "https://code.example/a",
        "Documentation": "https://code.example/a/blob/v1.2.3/docs/README.md",
        "Changelog": "https://code.example/a/blob/v1.2.3/CHANGELOG.md",
        "Issues": "https://code.example/a/issues"}
    monkeypatch.setenv("ATTN_URL", "")
    made = package_metadata.dynamic_metadata({}, {"version": "1.2.3"})
    assert made["urls"] == {}
    assert made["readme"]["text"] == text("README.md")


def test_the_changelog_has_the_version_or_what_comes():
    heads = re.findall(r"^## (.*)$", text("CHANGELOG.md"), re.M)
    assert heads and (heads[0] == "Unreleased" or re.fullmatch(
        re.escape(attn.__version__) + r", \d{4}-\d\d-\d\d", heads[0]))


def test_every_command_has_a_script():
    scripts = dict(re.findall(r'^(attn-\w+) = "attn\._commands:(\w+)"$',
                              text("pyproject.toml"), re.M))
    assert tuple(scripts) == _commands.NAMES
    for name, function in scripts.items():
        said = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_commands, "run",
                          lambda command, _: said.append(command))
            getattr(_commands, function)()
        assert said == [name]
