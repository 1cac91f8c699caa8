"""The private pipe between session and worker: one JSON object a line.

It is not stdout, so the timed code may print. Standard library only: the worker imports it.
"""

from __future__ import annotations

import json
import os
from typing import Any

Message = dict[str, Any]

ESCAPED = "escaped"
"""Key of the line that a stray child sends: the suite forked and let the child return to us."""


class Channel:
    """One end. Remembers its process: a forked copy must not speak the protocol."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._owner = os.getpid()
        self._reader = os.fdopen(read_fd, "rb", buffering=1 << 16)
        self._write_fd = write_fd
        for fd in (read_fd, write_fd):
            os.set_inheritable(fd, False)

    def close(self) -> None:
        """In a fork that has pipes of its own: the other side must see when the owner is gone."""
        self._reader.close()
        os.close(self._write_fd)

    def guard(self) -> None:
        """End this process if it is a fork of the owner that came back from suite code."""
        if os.getpid() != self._owner:
            os.write(self._write_fd, json.dumps({ESCAPED: os.getpid()}).encode() + b"\n")
            os._exit(0)

    def send(self, message: Message) -> None:
        """Write one line, whole."""
        self.guard()
        data = memoryview(json.dumps(message).encode() + b"\n")
        while data:
            data = data[os.write(self._write_fd, data) :]

    def receive(self) -> Message | None:
        """The next line; null when the other side is gone."""
        self.guard()
        line = self._reader.readline()
        if not line.endswith(b"\n"):
            return None
        message: Message = json.loads(line)
        return message
