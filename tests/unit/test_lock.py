"""One measuring bench per machine."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from bench.errors import HostError
from runners import lock
from runners.lock import lock_path, machine_lock

HOLD = """
import subprocess, sys
from pathlib import Path
from runners.lock import machine_lock
sys.argv = ["/usr/bin/bench", "run", "--database", "postgresql://ada:secret@db/bench"]
with machine_lock(Path({path!r}), on_wait=print):
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock and has a child, as a bench with a worker has."""
    path = tmp_path / "lock"
    code = HOLD.format(path=str(path))
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    assert process.stdout.readline() == "held\n"
    yield path, process
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


def take(path, told):
    """Enter the lock in a thread; the returned event tells that we are in."""
    inside = threading.Event()

    def body():
        with machine_lock(path, on_wait=told.append):
            inside.set()

    thread = threading.Thread(target=body)
    thread.start()
    return thread, inside


def wait_for(told):
    pause = threading.Event()
    for _ in range(3000):
        if told:
            return
        pause.wait(0.01)
    raise AssertionError("nobody was told")


def test_a_second_bench_waits_says_for_whom_and_goes_on(holder):
    path, process = holder
    told = []
    thread, inside = take(path, told)
    wait_for(told)
    assert not inside.is_set()
    process.stdin.write("\n")
    process.stdin.flush()
    assert inside.wait(30)
    thread.join()
    assert told == [
        f"another bench (pid {process.pid}: bench run --database postgresql://ada:…@db/bench)"
        " is measuring on this machine; waiting"
    ]


def test_kill_minus_nine_releases_it(holder):
    path, process = holder
    told = []
    thread, inside = take(path, told)
    wait_for(told)
    process.send_signal(signal.SIGKILL)
    assert inside.wait(30)
    thread.join()


def test_a_stale_file_means_nothing(tmp_path):
    path = tmp_path / "lock"
    path.write_text("pid 1: bench run\n")
    told = []
    with machine_lock(path, on_wait=told.append):
        assert path.read_text().startswith("pid ")
        assert "pid 1:" not in path.read_text()
    assert (told, path.read_text()) == ([], "")


def test_an_error_inside_releases_it(tmp_path):
    path = tmp_path / "lock"
    with pytest.raises(KeyError), machine_lock(path, on_wait=print):
        raise KeyError
    with machine_lock(path, on_wait=lambda text: pytest.fail(text)):
        pass


def test_a_file_removed_while_we_wait_is_not_a_lock(tmp_path, monkeypatch):
    """Else two would measure: one on the removed file, one on the new one."""
    path = tmp_path / "lock"
    opened = []
    real = lock._open

    def removed_once(wanted):
        handle = real(wanted)
        opened.append(handle)
        if len(opened) == 1:
            wanted.unlink()
        return handle

    monkeypatch.setattr(lock, "_open", removed_once)
    with machine_lock(path, on_wait=print):
        assert path.read_text().startswith("pid ")
    assert len(opened) == 2


def test_every_user_may_take_it(tmp_path):
    path = tmp_path / "lock"
    with machine_lock(path, on_wait=print):
        assert path.stat().st_mode & 0o777 == 0o666


def test_a_file_that_may_only_be_read_locks_too(tmp_path, monkeypatch):
    path = tmp_path / "lock"
    path.touch()
    real = lock.os.open

    def read_only(target, flags, *mode):
        if flags & lock.os.O_RDWR:
            raise PermissionError(13, "Permission denied")
        return real(target, flags, *mode)

    monkeypatch.setattr(lock.os, "open", read_only)
    with machine_lock(path, on_wait=print):
        pass


@pytest.mark.parametrize("make", ["missing/lock", "folder", "link"])
def test_a_path_that_cannot_be_locked_is_one_sentence(tmp_path, make):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(HostError, match="set BENCH_LOCK"), machine_lock(tmp_path / make, on_wait=print):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_the_variable_chooses_the_path(monkeypatch, tmp_path):
    monkeypatch.setenv("BENCH_LOCK", str(tmp_path / "x"))
    assert lock_path() == tmp_path / "x"
    monkeypatch.delenv("BENCH_LOCK")
    first = lock_path()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert lock_path() == first
