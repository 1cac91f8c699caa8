"""The parent's side: starts workers, asks, waits with a deadline, survives their deaths.

A session never times anything. Whatever a worker does, its arm gets a result or a Failure. A worker is
a fresh process, or the fork of one that imported a suite (see bench.measure.parents).
"""

from __future__ import annotations

import hashlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol

from bench.errors import MeasureError
from bench.measure.channel import ESCAPED, Message
from bench.model import Failure, FailureKind, Target

SCRATCH = "BENCH_SCRATCH"
"""Variable that names a worker the folder where what its target built once is kept for later launches."""

TAIL_BYTES = 2000
"""How much of what a worker printed a failure keeps."""

REAP_S = 5.0
"""How long a killed process may take to be gone."""

FORK_S = 60.0
"""How long a fork may take on a busy machine; before the first, all that the parent holds is collected."""

THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS", "RAYON_NUM_THREADS",
)  # fmt: skip


class ArmFailed(Exception):  # noqa: N818 - a result on its way, not a mistake of ours
    """Carries the Failure of one arm from a worker to the experiment; never leaves bench.measure."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Session:
    """Owns all workers of one run. Use as a context manager: nothing survives its end."""

    def __init__(self) -> None:
        self._reaper: subprocess.Popen[bytes] | None = None
        self._workers: set[WorkerProcess] = set()
        self._scratch = Path()

    def __enter__(self) -> Session:
        self._scratch = Path(tempfile.mkdtemp(prefix="bench-"))
        self._reaper = subprocess.Popen(
            [sys.executable, "-P", "-m", "bench.measure.reaper", str(self._scratch)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in list(self._workers):
            worker.kill()
        if self._reaper is not None and self._reaper.stdin is not None:
            self._reaper.stdin.close()
            self._reaper.wait(timeout=10)

    def start(self, target: Target, *, threads: int, hash_seed: int, under: Sequence[str] = ()) -> WorkerProcess:
        """A fresh process at `target`, run by the program `under` (valgrind) where one is given.

        Raises MeasureError when it cannot be started.
        """
        worker = WorkerProcess.fresh(self, target, threads=threads, hash_seed=hash_seed, under=under)
        self.adopt(worker)
        return worker

    def adopt(self, worker: WorkerProcess) -> None:
        """The worker's group dies with us."""
        self._workers.add(worker)
        self.tell_reaper("+", worker.pid)

    def scratch(self, target: Target) -> Path:
        """A folder that all workers of one target share while the session lasts; not made before it is used."""
        return self._scratch / hashlib.sha256(repr(target).encode()).hexdigest()[:16]

    def forget(self, worker: WorkerProcess) -> None:
        """The worker's group is gone."""
        if worker in self._workers:
            self._workers.discard(worker)
            self.tell_reaper("-", worker.pid)

    def tell_reaper(self, sign: str, pid: int) -> None:
        """Add a process group to what dies with us, or take it off."""
        assert self._reaper is not None, "use Session as a context manager"
        assert self._reaper.stdin is not None
        with suppress(BrokenPipeError):
            self._reaper.stdin.write(f"{sign}{pid}\n".encode())
            self._reaper.stdin.flush()


class Process(Protocol):
    """What a worker runs in: a subprocess.Popen, or a Fork."""

    pid: int

    def wait(self, timeout: float | None = None) -> int:
        """Exit code, negative for a signal. Raises subprocess.TimeoutExpired."""
        ...


class Fork:
    """A process whose parent is a worker, which alone can wait for it."""

    def __init__(self, parent: WorkerProcess, pid: int) -> None:
        self._parent = parent
        self._code: int | None = None
        self.pid = pid

    def wait(self, timeout: float | None = None) -> int:
        """See Process. The parent's death is the child's, by SIGKILL."""
        if self._code is None:
            patience = REAP_S if timeout is None else timeout
            try:
                answer = self._parent.ask("reap", patience + REAP_S, pid=self.pid, patience_s=patience)
            except ArmFailed:
                answer = {"code": -signal.SIGKILL}
            self._code = answer["code"]
            if self._code is None:
                raise subprocess.TimeoutExpired("a forked worker", patience)
        return self._code


class _Pipes:
    """Both ends of the private pipes to a process that is about to start, and a file for what it prints."""

    def __init__(self) -> None:
        self.output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker
        self.request_read, self.request_write = os.pipe()
        self.answer_read, self.answer_write = os.pipe()
        os.set_blocking(self.answer_read, False)

    def close_theirs(self) -> None:
        """Once the process has them."""
        os.close(self.request_read)
        os.close(self.answer_write)

    def close_ours(self) -> None:
        """When there will be no process, or it is gone."""
        if not self.output.closed:
            self.output.close()
            os.close(self.request_write)
            os.close(self.answer_read)


class WorkerProcess:
    """One worker and the private pipe to it."""

    def __init__(
        self,
        session: Session,
        process: Process,
        pipes: _Pipes,
        *,
        control: socket.socket | None = None,
        parent: WorkerProcess | None = None,
    ) -> None:
        self._session = session
        self._process = process
        self._pipes = pipes
        self._control = control
        self._parent = parent
        self._printed = ""
        self._buffer = b""
        self._children: set[WorkerProcess] = set()
        self._oom_kills = _oom_kills()
        self.pid = process.pid

    @classmethod
    def fresh(
        cls, session: Session, target: Target, *, threads: int, hash_seed: int, under: Sequence[str] = ()
    ) -> WorkerProcess:
        """A new interpreter. Raises MeasureError when it cannot be started."""
        pipes = _Pipes()
        ours, theirs = socket.socketpair()
        python = target.python or sys.executable
        fds = (pipes.request_read, pipes.answer_write, theirs.fileno())
        command = [*under, python, "-P", "-m", "bench.measure.worker", *map(str, fds), str(os.getpid())]
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=pipes.output, stderr=pipes.output, pass_fds=fds,
                env={**worker_environment(target, threads, hash_seed), SCRATCH: str(session.scratch(target))},
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            pipes.close_ours()
            ours.close()
            raise MeasureError(
                f"{python} cannot be started: {error.strerror}; check the target's interpreter."
            ) from None
        finally:
            pipes.close_theirs()
            theirs.close()
        return cls(session, process, pipes, control=ours)

    def fork(self) -> WorkerProcess:
        """A child of this worker that has what this one imported. Raises ArmFailed when this one is dead."""
        assert self._control is not None, "a fork does not fork again"
        pipes = _Pipes()
        try:
            with suppress(OSError):  # a dead worker is found out by asking it
                socket.send_fds(self._control, [b"f"], [pipes.request_read, pipes.answer_write, pipes.output.fileno()])
            pid = self.ask("fork", FORK_S)["pid"]
        except BaseException:
            pipes.close_ours()
            raise
        finally:
            pipes.close_theirs()
        child = WorkerProcess(self._session, Fork(self, pid), pipes, parent=self)
        self._children.add(child)
        self._session.adopt(child)
        child.next_message("fork", FORK_S)
        return child

    def ask(self, do: str, timeout_s: float, **arguments: Any) -> Message:
        """Send a request and wait for its answer. Raises ArmFailed; the worker is dead then."""
        message = self.ask_raw(do, timeout_s, **arguments)
        while "module" in message:  # progress of a discovery nobody follows
            message = self.next_message(do, timeout_s)
        return message

    def ask_raw(self, do: str, timeout_s: float, **arguments: Any) -> Message:
        """Like `ask`, but returns progress messages too."""
        self.send(do, **arguments)
        return self.next_message(do, timeout_s)

    def send(self, do: str, **arguments: Any) -> None:
        """A request whose answer is for `next_message`. Raises ArmFailed when the worker is dead."""
        if self._pipes.output.closed:
            raise self._failed(FailureKind.DIED, do, "had been ended before")
        data = json.dumps({"do": do, **arguments}).encode() + b"\n"
        try:
            while data:
                data = data[os.write(self._pipes.request_write, data) :]
        except BrokenPipeError:
            raise self._dead(do) from None

    def next_message(self, phase: str, timeout_s: float) -> Message:
        """The next line from the worker. Raises ArmFailed on a failure, a death or the deadline."""
        deadline = time.monotonic() + timeout_s
        with selectors.DefaultSelector() as selector:
            selector.register(self._pipes.answer_read, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    self.kill()
                    raise self._failed(FailureKind.TIMED_OUT, phase, f"no answer within {timeout_s:g} s; it was killed")
                chunk = os.read(self._pipes.answer_read, 1 << 16)
                if not chunk:
                    raise self._dead(phase)
                self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: Message = json.loads(line)
        if ESCAPED in message:
            self.kill()
            text = "forks and lets the child return into the harness; end the child with os._exit"
            raise self._failed(FailureKind.RAISED, phase, text)
        if failure := message.get("failure"):
            detail = failure["detail"] or self._tail()
            self.kill()
            raise ArmFailed(
                Failure(kind=FailureKind(failure["kind"]), phase=phase, message=failure["message"], detail=detail)
            )
        return message

    def close(self) -> None:
        """Let the suite clean up, then end the group, whatever the suite makes of it."""
        with suppress(ArmFailed):
            self.finish(10.0)

    def finish(self, timeout_s: float) -> None:
        """Like `close`, but raises ArmFailed when the suite's end is a failure."""
        self.ask("close", timeout_s)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)
        self.kill()

    def kill(self) -> None:
        """End the whole process group at once, and its forks. Safe to call twice."""
        children, self._children = self._children, set()
        for child in children:
            child.kill()
        with suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(REAP_S)
        if not self._pipes.output.closed:
            self._printed = self._tail()
            self._pipes.close_ours()
            if self._control is not None:
                self._control.close()
        if self._parent is not None:
            self._parent._children.discard(self)
        self._session.forget(self)

    def _dead(self, phase: str) -> ArmFailed:
        try:
            code = self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self.kill()
            return self._failed(FailureKind.DIED, phase, "closed its pipe to the session; it was killed")
        kills = _oom_kills()
        self.kill()
        if code < 0:
            name = _signal_name(-code)
            message = f"was killed by {name}"
            if name == "SIGKILL" and kills is not None and self._oom_kills is not None and kills > self._oom_kills:
                message += ", by the kernel: out of memory"
        else:
            message = f"ended by itself with exit code {code}"
        return self._failed(FailureKind.DIED, phase, message)

    def _failed(self, kind: FailureKind, phase: str, message: str) -> ArmFailed:
        return ArmFailed(Failure(kind=kind, phase=phase, message=message, detail=self._tail()))

    def _tail(self) -> str:
        if self._pipes.output.closed:
            return self._printed
        size = self._pipes.output.seek(0, os.SEEK_END)
        self._pipes.output.seek(max(0, size - TAIL_BYTES))
        return self._pipes.output.read().decode(errors="replace").strip()


def worker_environment(target: Target, threads: int, hash_seed: int) -> dict[str, str]:
    """Variables of a worker: ours, one thread count for every library, passive waiting, the launch's hash seed.

    Spinning threads on shared cores cost up to 500 times (study); passive waiting never does.
    """
    variables: Mapping[str, str] = {
        **dict.fromkeys(THREAD_VARIABLES, str(threads)),
        "OMP_WAIT_POLICY": "passive",
        "KMP_BLOCKTIME": "0",
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONHASHSEED": str(hash_seed),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
    }
    return {**os.environ, **variables, **target.variables}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _oom_kills() -> int | None:
    try:
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    except OSError:
        pass
    return None
