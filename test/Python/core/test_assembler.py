"""ptxas of Python packages: found without importing them, used at need."""

import os
import re
import shutil
import stat

import pytest
from attn import _assembler
from conftest import ROOT

# With the packages of one folder and no others.
PROGRAM = """
    import sys
    import attn
    sys.path[:] = [%r]
    try:
        program = attn.compile(attn.Problem(heads=4, head_dim=64))
        print(program.binaries[0].assembler, program.cubin)
    except attn.CompileError as error:
        print(error)
    assert not {"nvidia", "torch", "triton"} & set(sys.modules)
    """


def ptxas_of(folder, version, log):
    """A program that says a version, notes that it was run, and assembles
    with nothing in it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "ptxas"
    path.write_text(f"""#!/bin/sh
echo "$0" >> {log}
if [ "$1" = --version ]; then
  echo "Cuda compilation tools, release {version}, V{version}.42"
  exit 0
fi
echo "this assembler cannot" >&2
exit 3
""")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def bare(tmp_path):
    """An environment in which nothing but Python packages has a ptxas."""
    if os.path.exists("/usr/local/cuda/bin/ptxas"):
        pytest.skip("this machine has /usr/local/cuda/bin/ptxas")
    (tmp_path / "empty").mkdir()
    return dict(PATH=tmp_path / "empty", CUDA_HOME=None, CUDA_PATH=None,
                ATTN_PTXAS=None, ATTN_CACHE_DIR=tmp_path / "kernels")


def test_packages_are_not_imported(tmp_path, monkeypatch):
    site = tmp_path / "site"
    old = ptxas_of(site / "nvidia" / "cu12" / "bin", "12.8", os.devnull)
    new = ptxas_of(site / "nvidia" / "cu13" / "bin", "13.1", os.devnull)
    torch = ptxas_of(site / "torch" / "bin", "13.0", os.devnull)
    (site / "torch" / "__init__.py").write_text("raise SystemExit(1)")
    triton = ptxas_of(site / "triton" / "backends" / "nvidia" / "bin", "12.8",
                      os.devnull)
    (site / "triton" / "__init__.py").write_text("raise SystemExit(1)")
    monkeypatch.setattr("sys.path", [str(site)])
    monkeypatch.setattr("sys.modules", {
        name: module for name, module in __import__("sys").modules.items()
        if name.split(".")[0] not in ("nvidia", "torch", "triton")})
    assert _assembler.packaged() == [str(p) for p in (new, old, torch,
                                                      triton)]
    new.chmod(0o644)
    assert str(new) not in _assembler.packaged()


@pytest.fixture
def asked(monkeypatch):
    """What the library is asked to use; it takes those of `good`."""
    def call(name, path):
        assert name == "attn_assembler_set"
        call.paths.append(None if path is None else os.fsdecode(path))
        if path is not None and os.fsdecode(path) not in call.good:
            raise ValueError("expects ptxas 13.0 or newer")

    call.paths, call.good = [], set()
    monkeypatch.setattr(_assembler._native, "call", call)
    monkeypatch.setattr(_assembler, "packaged", lambda: ["/old", "/new"])
    monkeypatch.setattr(_assembler, "_installed", lambda: ["/usr/ptxas"])
    monkeypatch.delenv("ATTN_PTXAS", raising=False)
    return call


def test_an_installed_one_goes_first(asked):
    asked.good = {"/usr/ptxas", "/new"}
    _assembler.find()
    assert asked.paths == ["/usr/ptxas", None]


def test_else_the_first_that_is_new_enough(asked):
    asked.good = {"/new"}
    _assembler.find()
    assert asked.paths == ["/usr/ptxas", "/old", "/new"]


def test_else_none(asked):
    _assembler.find()
    assert asked.paths == ["/usr/ptxas", "/old", "/new"]


def test_the_environment_decides(asked, monkeypatch):
    monkeypatch.setenv("ATTN_PTXAS", "")
    _assembler.find()
    assert asked.paths == []


def test_order_is_that_of_the_library(monkeypatch, tmp_path):
    paths = [ptxas_of(tmp_path / name / "bin", "13.0", os.devnull)
             for name in ("path", "home", "also")]
    monkeypatch.setenv("PATH", str(paths[0].parent))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "also"))
    found = list(_assembler._installed())
    assert found[:3] == [str(path) for path in paths]
    with open(os.path.join(ROOT, "lib", "CAPI", "Assembler.cpp"),
              encoding="utf-8") as f:
        order = re.findall(r'"(ptxas|CUDA_HOME|CUDA_PATH|/usr/local/cuda)',
                           f.read().split("candidates()")[1])
    assert order[:4] == ["ptxas", "CUDA_HOME", "CUDA_PATH",
                         "/usr/local/cuda"]


def assembler(tmp_path, script):
    """A ptxas that is new enough and then does as it likes."""
    path = tmp_path / "ptxas"
    path.write_text("#!/bin/sh\n[ $1 = --version ] && exec echo release 13.9, "
                    f"V13.9.1\n{script}\n")
    path.chmod(0o755)
    return path


COMPILE = """
    import attn
    try:
        print(len(attn.compile(attn.Problem(heads=4, head_dim=64)).cubin))
    except attn.CompileError as error:
        print(error)
    """


def test_a_part_of_a_cubin_is_not_kept(python, tmp_path):
    ptxas = shutil.which("ptxas")
    folder = tmp_path / "kernels"
    dying = assembler(tmp_path, f"{ptxas} $1 $2 $3 -o {tmp_path}/all && "
                      f"head -c $CUT {tmp_path}/all > $5")
    for cut, words in (("-1", "ends, at"), ("2000", "ends, at 2000 bytes"),
                       ("0", "expects a cubin, but got 0 bytes")):
        said = python(COMPILE, ATTN_PTXAS=dying, CUT=cut,
                      ATTN_CACHE_DIR=folder)
        assert f"{dying} made no cubin: " in said and words in said
        assert list(folder.iterdir()) == []
    whole = (tmp_path / "all").stat().st_size
    assert python(COMPILE, ATTN_PTXAS=dying, CUT=whole,
                  ATTN_CACHE_DIR=folder) == f"{whole}\n"
    assert len(list(folder.iterdir())) == 1


def test_one_that_hangs_is_named_and_killed(python, tmp_path):
    hung = assembler(tmp_path, "sleep 1000")
    said = python(COMPILE, ATTN_PTXAS=hung, ATTN_PTXAS_SECONDS="0.5")
    assert f"'{hung} -arch=sm_90a -O3 /proc/self/fd/3 -o /proc/self/fd/4' " in (
        said)
    assert "did not end within 0.5 s ($ATTN_PTXAS_SECONDS)" in said
    for wrong in ("-1", "0", "soon", "nan", "1e10"):
        assert (f"$ATTN_PTXAS_SECONDS expects more than 0 and at most 1000000, "
                f"but got '{wrong}'") in python(COMPILE,
                                                ATTN_PTXAS_SECONDS=wrong)


def test_a_name_is_looked_up_in_path(python, tmp_path):
    """Not in the folder where the program happens to run."""
    log = tmp_path / "log"
    ptxas_of(tmp_path, "13.9", log)  # where `python` runs
    there = ptxas_of(tmp_path / "bin", "13.9", log)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    python(COMPILE, ATTN_PTXAS="ptxas", PATH=path)
    assert set(log.read_text().split()) == {str(there)}
    assert "there is no program 'ptxas' in PATH" in python(
        COMPILE, ATTN_PTXAS="ptxas", PATH=tmp_path / "none")


def test_nothing_is_left_of_a_process_that_is_killed(python, tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    hung = assembler(tmp_path, "kill -9 $PPID; sleep 1")
    with pytest.raises(AssertionError):  # its status
        python(COMPILE, ATTN_PTXAS=hung, TMPDIR=temporary,
               ATTN_CACHE_DIR=tmp_path / "kernels")
    assert list(temporary.iterdir()) == []
    assert list((tmp_path / "kernels").iterdir()) == []


def test_a_packaged_one_is_used(python, bare, tmp_path):
    log = tmp_path / "log"
    ptxas_of(tmp_path / "site" / "nvidia" / "cu13" / "bin", "13.9", log)
    said = python(PROGRAM % str(tmp_path / "site"), **bare)
    assert "this assembler cannot" in said
    assert "cu13/bin/ptxas" in log.read_text()


def test_one_that_is_too_old_is_not(python, bare, tmp_path):
    ptxas_of(tmp_path / "site" / "nvidia" / "cu12" / "bin", "12.8",
             os.devnull)
    assert python(PROGRAM % str(tmp_path / "site"), **bare) == "None None\n"
