"""The commands of the package are the programs, from one library."""

import os
import subprocess
import sys

import attn
import pytest
from attn import _native
from conftest import ROOT

EXAMPLE = os.path.join(ROOT, "examples", "attention.mlir")
PROGRAMS = os.path.join(os.path.dirname(os.path.dirname(
    os.path.realpath(attn.get_library()))), "bin")


def outcome(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # A program names itself by its path, a command by its name.
    out, err = (text.replace(PROGRAMS + os.sep, "")
                for text in (done.stdout, done.stderr))
    return done.returncode, out, err


def of_package(*command):
    return outcome(sys.executable, "-m", "attn", *command)


@pytest.mark.parametrize("command", [
    ["attn-plan", "--queries", "300", "--head-dim", "64", "--explain"],
    ["attn-plan", "--queries", "300"],
    ["attn-plan", "--machines"],
    ["attn-plan", "--no-such-option"],
    ["attn-plan", "--help"],
    ["attn-opt", "-attn-to-nvvm", EXAMPLE],
    ["attn-opt", "/no/such/file"],
    ["attn-opt", "--version"],
    ["attn-run", "--on", "interpreter", EXAMPLE],
    ["attn-run", "--on", "interpreter", "--machine", "h1000", EXAMPLE],
    ["attn-run", "--version"],
], ids=" ".join)
def test_it_does_what_the_program_does(command):
    program = os.path.join(PROGRAMS, command[0])
    if not os.path.exists(program):
        pytest.skip("the library comes from a wheel, without programs")
    expected = outcome(program, *command[1:])
    assert of_package(*command) == expected
    assert expected[1] or expected[2]


def test_an_unknown_command_is_an_error():
    status, out, err = of_package("attn-plot")
    assert (status, out) == (2, "")
    assert "expects a command, attn-opt, attn-plan, attn-run" in err
    status, out, _ = of_package("--help")
    assert status == 0 and "attn-plan" in out


@pytest.mark.parametrize("name", [b"attn-plot", b"", None])
def test_the_library_knows_no_other_command(name):
    assert _native.function("attn_main")(name, 0, None) == 127


def test_the_header_is_where_it_says():
    folder = os.path.join(attn.get_include(), "attn-c")
    assert {"Attn.h", "Executables.h", "Requests.h"} <= set(os.listdir(folder))
    assert os.path.exists(attn.get_library())
