"""The disk cache: where it is, what it saves, what happens to bad folders."""

import os

import attn
import pytest
from attn import _cache

pytestmark = pytest.mark.usefixtures("own_cache")

PROGRAM = """
    import attn
    for head_dim in (64, 72):
        attn.compile(attn.Problem(heads=4, head_dim=head_dim))
    info = attn.cache_info()
    print(info["folder"], info["compiled"], info["hits"], info["damaged"])
    """


def entries(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_second_process_compiles_nothing(python, tmp_path):
    folder = tmp_path / "kernels"
    assert python(PROGRAM, ATTN_CACHE_DIR=folder).split() == [
        str(folder), "2", "0", "0"]
    assert python(PROGRAM, ATTN_CACHE_DIR=folder).split() == [
        str(folder), "0", "2", "0"]


@pytest.mark.long
@pytest.mark.parametrize("damage", [
    b"", b"nonsense", None])
def test_damaged_entries_are_made_again(python, tmp_path, damage):
    folder = tmp_path / "kernels"
    python(PROGRAM, ATTN_CACHE_DIR=folder)
    files = [f for f in entries(folder) if f.stat().st_size > 1000]
    assert len(files) == 2
    content = files[0].read_bytes()
    middle = len(content) // 2
    files[0].write_bytes(
        content[:middle] + bytes([content[middle] ^ 255]) +
        content[middle + 1:] if damage is None else damage)
    _, compiled, hits, damaged = python(
        PROGRAM, ATTN_CACHE_DIR=folder).split()
    assert (compiled, hits, damaged) == ("1", "1", "1")
    assert python(PROGRAM, ATTN_CACHE_DIR=folder).split()[1:] == [
        "0", "2", "0"]


@pytest.mark.long
def test_processes_at_once(tmp_path):
    import subprocess
    import sys
    import textwrap
    folder = tmp_path / "kernels"
    environment = {**os.environ, "ATTN_CACHE_DIR": str(folder),
                   "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    running = [subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)], env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)]
    for process in running:
        out, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        _, compiled, hits, damaged = out.split()
        assert int(compiled) + int(hits) == 2 and damaged == "0"
    assert len([f for f in entries(folder) if f.stat().st_size > 1000]) == 2


def test_default_folder(own_cache, monkeypatch, tmp_path):
    info = attn.cache_info()
    assert info["folder"] == str(own_cache) == _cache.default_folder()
    assert info["max_bytes"] == 512 << 20
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert _cache.default_folder() == os.path.expanduser("~/.cache/attn")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert _cache.default_folder() == str(tmp_path / ".cache" / "attn")


def test_configuring(tmp_path):
    attn.configure_cache(tmp_path / "mine", max_bytes=1 << 20)
    info = attn.cache_info()
    assert info["folder"] == str(tmp_path / "mine")
    assert info["max_bytes"] == 1 << 20
    attn.configure_cache(None)
    assert attn.cache_info()["folder"] is None
    attn.compile(attn.Problem(heads=4, head_dim=40))
    assert entries(tmp_path) == []
    attn.configure_cache(str(tmp_path / "other"))
    attn.compile(attn.Problem(heads=4, head_dim=40))
    assert entries(tmp_path / "other")
    attn.configure_cache(max_bytes=0)
    assert attn.cache_info()["folder"] is None
    attn.configure_cache()
    assert attn.cache_info()["folder"] == _cache.default_folder()


@pytest.mark.long
def test_the_bound_holds(tmp_path):
    bound = 300_000  # three or four kernels
    attn.configure_cache(tmp_path / "small", max_bytes=bound)
    dims = range(16, 80, 8)
    for head_dim in dims:
        attn.compile(attn.Problem(heads=4, head_dim=head_dim))
    sizes = [f.stat().st_size for f in entries(tmp_path / "small")]
    assert bound / 3 < sum(sizes) <= bound
    before = attn.cache_info()
    attn.compile(attn.Problem(heads=4, head_dim=dims[-1]))  # the newest
    attn.compile(attn.Problem(heads=4, head_dim=dims[0]))  # the oldest
    after = attn.cache_info()
    assert after["hits"] == before["hits"] + 1
    assert after["compiled"] == before["compiled"] + 1


def test_bytes_of_the_environment(monkeypatch):
    monkeypatch.setenv("ATTN_CACHE_BYTES", "1000000")
    assert attn.cache_info()["max_bytes"] == 1000000
    monkeypatch.setattr(_cache, "_ready", False)
    monkeypatch.setenv("ATTN_CACHE_BYTES", "0")
    assert attn.cache_info()["folder"] is None
    monkeypatch.setattr(_cache, "_ready", False)
    for text in ("much", "-5"):
        monkeypatch.setenv("ATTN_CACHE_BYTES", text)
        with pytest.raises(ValueError, match=r"\$ATTN_CACHE_BYTES expects .*"
                           f"but got .*{text}"):
            attn.cache_info()


def test_a_named_folder_must_work(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("in the way")
    before = attn.cache_info()["folder"]
    with pytest.raises(attn.CacheError, match=str(file)):
        attn.configure_cache(file)
    with pytest.raises(OSError, match=str(file)):
        attn.configure_cache(file / "below")
    assert attn.cache_info()["folder"] == before
    monkeypatch.setattr(_cache, "_ready", False)
    monkeypatch.setenv("ATTN_CACHE_DIR", str(file))
    for _ in range(2):  # it is not forgotten
        with pytest.raises(attn.CacheError,
                           match=rf"\$ATTN_CACHE_DIR is {file}: "):
            attn.compile(attn.Problem(heads=4, head_dim=64))
    attn.configure_cache(None)  # says that it shall be without
    assert attn.compile(attn.Problem(heads=4, head_dim=64)).kernels


@pytest.mark.long
@pytest.mark.parametrize("mode", [0o770, 0o777, 0o1777])
def test_a_folder_that_others_can_write_is_not_used(python, tmp_path, mode):
    folder = tmp_path / "kernels"
    folder.mkdir()
    python(PROGRAM, ATTN_CACHE_DIR=folder)  # entries to be planted
    files = entries(folder)
    assert len(files) == 2
    folder.chmod(mode)
    said = python(PROGRAM, ATTN_CACHE_DIR=folder)
    assert said.split() == ["None", "2", "0", "0"]
    assert said.errors.count("RuntimeWarning: ") == 1
    assert said.errors.startswith("<string>:4: RuntimeWarning: compiled kernels "
                                  "are not kept on disk: cannot keep kernels "
                                  f"in '{folder}': expects a folder that only "
                                  "this user can write, but")
    assert "chmod go-w" in said.errors and entries(folder) == files
    said = python("import attn; attn.configure_cache(%r)\n"
                  "print(attn.cache_info()['folder'])" % str(folder))
    assert said == "None\n" and "<string>:1: RuntimeWarning" in said.errors


def test_a_cache_that_fails_later_costs_only_time(python, tmp_path):
    folder = tmp_path / "kernels"
    assert python("""
        import os, shutil, attn
        attn.configure_cache(%r)
        shutil.rmtree(%r)
        attn.compile(attn.Problem(heads=4, head_dim=64))
        info = attn.cache_info()
        print(info["compiled"], info["hits"], info["last_failure"])
        """ % (str(folder), str(folder))) == (
            f"1 0 cannot open '{folder}': No such file or directory\n")


def test_a_pipe_in_place_of_an_entry(python, tmp_path):
    folder = tmp_path / "kernels"
    python(PROGRAM, ATTN_CACHE_DIR=folder)
    first = entries(folder)[0]
    first.unlink()
    os.mkfifo(first, 0o600)
    assert python(PROGRAM, ATTN_CACHE_DIR=folder).split()[1:] == [
        "1", "1", "1"]
    assert python(PROGRAM, ATTN_CACHE_DIR=folder).split()[1:] == [
        "0", "2", "0"]


@pytest.mark.long
def test_entries_that_change_names(python, tmp_path):
    folder = tmp_path / "kernels"
    python(PROGRAM, ATTN_CACHE_DIR=folder)
    one, other = entries(folder)
    one.rename(folder / "meanwhile")
    other.rename(one)
    (folder / "meanwhile").rename(other)
    assert python(PROGRAM, ATTN_CACHE_DIR=folder).split()[1:] == [
        "2", "0", "2"]


def test_the_default_folder_may_fail(python, tmp_path):
    file = tmp_path / "file"
    file.write_text("in the way")
    said = python(PROGRAM, XDG_CACHE_HOME=file)
    assert said.split() == ["None", "2", "0", "0"]
    assert said.errors.count("RuntimeWarning: compiled kernels are not kept "
                             "on disk: ") == 1
    assert "attn.configure_cache" in said.errors and str(file) in said.errors


@pytest.mark.parametrize("folder, kind", [
    (7, TypeError), ("", ValueError), ("a\0b", ValueError)])
def test_what_is_no_folder(folder, kind):
    with pytest.raises(kind):
        attn.configure_cache(folder)
    with pytest.raises(TypeError, match="max_bytes expects an integer"):
        attn.configure_cache("/tmp", max_bytes="1 GB")
    with pytest.raises(ValueError, match="max_bytes expects 0"):
        attn.configure_cache("/tmp", max_bytes=-1)
