"""One measuring bench per machine: two would measure each other."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.errors import HostError

VARIABLE = "BENCH_LOCK"


def lock_path() -> Path:
    """`BENCH_LOCK`, else a file in the temporary folder that all users share.

    /tmp is named first, because TMPDIR differs between users and would give each a lock of their own.
    """
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    shared = Path("/tmp")
    return (shared if os.access(shared, os.W_OK) else Path(tempfile.gettempdir())) / "inference-bench.lock"


@contextlib.contextmanager
def machine_lock(path: Path | None = None, *, on_wait: Callable[[str], None]) -> Iterator[None]:
    """Hold the machine; wait while another bench does, saying so once through `on_wait`.

    The kernel drops the lock with the process, however it ends, so a file left behind means
    nothing. Not reentrant. Raises HostError when the file cannot be opened.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl

    path = path or lock_path()
    told = False
    while True:
        handle = _open(path)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not told:
                    on_wait(f"another bench ({_holder(handle)}) is measuring on this machine; waiting")
                    told = True
                fcntl.flock(handle, fcntl.LOCK_EX)
            # A cleaner of old files may have removed the name while we waited: lock the new file.
            if _same(handle, path):
                _sign(handle, f"pid {os.getpid()}: {_command()}\n")
                try:
                    yield
                finally:
                    _sign(handle, "")
                return
        finally:
            os.close(handle)


def _open(path: Path) -> int:
    """Open or create, without following a link that someone else put there.

    O_CREAT is used only for a file that isn't there: kernels with fs.protected_regular refuse it
    for another user's file in a sticky folder, even to root. Reading is enough for a lock.
    """
    flags = os.O_CLOEXEC | os.O_NOFOLLOW
    for _ in range(100):
        try:
            return os.open(path, os.O_RDWR | flags)
        except FileNotFoundError:
            pass
        except PermissionError:
            with contextlib.suppress(OSError):
                return os.open(path, os.O_RDONLY | flags)
            raise _refused(path, "permission denied") from None
        except OSError as error:
            raise _refused(path, error.strerror) from None
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | flags, 0o666)
        except FileExistsError:
            continue
        except OSError as error:
            raise _refused(path, error.strerror) from None
        with contextlib.suppress(OSError):
            os.fchmod(handle, 0o666)  # the umask does not count: everyone takes turns
        return handle
    raise _refused(path, "it appears and disappears")


def _refused(path: Path, reason: str | None) -> HostError:
    return HostError(
        f"The machine's lock {path} cannot be opened ({reason}); set {VARIABLE} to a file that every user may write."
    )


def _same(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except OSError:
        return False


def _sign(handle: int, text: str) -> None:
    with contextlib.suppress(OSError):  # opened for reading only
        os.ftruncate(handle, 0)
        os.pwrite(handle, text.encode(), 0)


def _holder(handle: int) -> str:
    for _ in range(5):
        text = os.pread(handle, 300, 0).decode(errors="replace")
        if text.strip():
            break
        time.sleep(0.02)  # locked, not signed yet
    return " ".join("".join(c for c in text if c.isprintable() or c.isspace()).split()) or "pid unknown"


def _command() -> str:
    """Our command line as the message shows it, without passwords of database addresses."""
    command = " ".join([Path(sys.argv[0]).name or "python", *sys.argv[1:]])
    return re.sub(r"(://[^:/@\s]*):[^@\s]*@", r"\1:…@", command)[:200]
