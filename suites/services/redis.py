"""Redis, or what speaks its protocol: BENCH_REDIS_URL, 127.0.0.1:6379, or a private `redis-server`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.api import Skip
from suites.imports import need
from suites.services import names, private

VARIABLE = "BENCH_REDIS_URL"
PRIVATE = "private"
"""Value of the variable that asks for a private server even where another one answers."""

PORT = 6379
BINARY = "redis-server"
HOW = f"docker compose up -d redis, install {BINARY}, or set {VARIABLE}=redis://HOST:PORT/DATABASE"

LIFE_S = 3600
"""Every key expires, so that a process that was killed leaves nothing in a server for long."""

PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Redis:
    """A server. origin: given, found or private; socket: its Unix socket, where it has one that we can reach;
    pid: its process on this machine, where that is known.
    """

    url: str
    origin: str
    version: str
    prefix: str
    socket: str | None = None
    pid: int | None = None
    own: private.Private | None = None

    def client(self, *, unix: bool = False) -> Any:
        """A connection over TCP, or over the Unix socket (raises Skip where there is none)."""
        redis = need("redis", "pip install 'inference-bench[suites]'")
        if not unix:
            return redis.Redis.from_url(self.url, socket_timeout=PATIENCE_S)
        if self.socket is None:
            raise Skip(f"the Redis at {self.url} tells no Unix socket; set {VARIABLE}={PRIVATE} to start one that has")
        return redis.Redis(unix_socket_path=self.socket, socket_timeout=PATIENCE_S)

    def key(self, name: object) -> str:
        """The full name of a key of ours."""
        return f"{self.prefix}:{name}"

    def fill(self, values: Mapping[Any, bytes]) -> None:
        """Store all values under `key(name)`."""
        pipe = self.client().pipeline(transaction=False)
        for name, value in values.items():
            pipe.set(self.key(name), value, ex=LIFE_S)
        pipe.execute()

    def notes(self) -> dict[str, str]:
        """What is worth storing about it."""
        return {"redis": f"{self.version}, {self.origin}"}

    def close(self) -> None:
        """Remove our keys, or end our server."""
        if self.own is not None:
            self.own.close()
            return
        client = self.client()
        cursor = -1
        while cursor:
            cursor, keys = client.scan(max(cursor, 0), f"{self.prefix}:*", 1000)
            if keys:
                client.unlink(*keys)


def serve(*, unix: bool = False) -> Redis:
    """A server to use, with a Unix socket where `unix` is asked for. Raises Skip where there is none."""
    redis = need("redis", "pip install 'inference-bench[suites]'")
    given = os.environ.get(VARIABLE)
    if given and given != PRIVATE:
        try:
            return _there(redis, given, "given")
        except redis.RedisError as error:
            raise Skip(f"{VARIABLE}={given} does not answer ({error}): {HOW}") from None
    if given != PRIVATE and private.listens("127.0.0.1", PORT):
        with suppress(redis.RedisError):  # it wants a password, or is no Redis
            found = _there(redis, f"redis://127.0.0.1:{PORT}/0", "found")
            if found.socket is not None or not unix:
                return found
    if (binary := shutil.which(BINARY)) is None:
        raise Skip(f"no Redis {'with a Unix socket ' if unix else ''}at 127.0.0.1:{PORT}, no {BINARY}: {HOW}")
    return _start(redis, binary)


def _there(redis: Any, url: str, origin: str) -> Redis:
    client = redis.Redis.from_url(url, socket_timeout=PATIENCE_S, socket_connect_timeout=PATIENCE_S)
    info = client.info("server")
    socket: str | None = None
    pid: int | None = None
    if urlsplit(url).hostname in private.LOCAL:
        with suppress(redis.RedisError):  # CONFIG is often forbidden
            path = client.config_get("unixsocket").get("unixsocket")
            socket = path if path and Path(path).is_socket() else None
        # In a container with a published port the number is one of another process-id namespace.
        pid = private.process_called(int(info["process_id"]), ("redis", "valkey"))
    return Redis(
        url=url, origin=origin, version=info["redis_version"], prefix=names.own(), socket=socket, pid=pid
    )  # fmt: skip


def _start(redis: Any, binary: str) -> Redis:
    folder, port = private.new_folder(), private.free_port()
    socket, url = str(folder / "socket"), f"redis://127.0.0.1:{port}/0"
    command = [
        binary, "--port", str(port), "--bind", "127.0.0.1", "--unixsocket", socket, "--dir", str(folder),
        "--save", "", "--appendonly", "no", "--daemonize", "no",
    ]  # fmt: skip
    client = redis.Redis.from_url(url, socket_timeout=PATIENCE_S)

    def answers() -> bool:
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False

    own = private.start("Redis", command, folder, answers)
    return Redis(
        url=url, origin="private", version=client.info("server")["redis_version"], prefix=names.own(), socket=socket,
        pid=own.pid, own=own,
    )  # fmt: skip
