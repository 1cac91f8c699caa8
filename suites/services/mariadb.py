"""MariaDB: BENCH_MARIADB_URL, 127.0.0.1:3306 as root without a password, or a private `mariadbd`."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from bench.api import Skip
from suites.artifacts import artifact
from suites.imports import need
from suites.services import names, private

VARIABLE = "BENCH_MARIADB_URL"
PRIVATE = "private"
"""Value of the variable that asks for a private server even where another one answers."""

PORT = 3306
HOW = f"docker compose up -d mariadb, install mariadb-server, or set {VARIABLE}=mariadb://USER:PASSWORD@HOST:PORT"

PATIENCE_S = 60
"""The longest that one statement may take."""

SETTINGS = (
    "--innodb-log-file-size=4M", "--innodb-flush-log-at-trx-commit=2", "--skip-name-resolve", "--skip-log-bin",
    "--performance-schema=OFF",
)  # fmt: skip
"""Of a private server: small, and as durable as data must be that is thrown away. Caches stay as they ship."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MariaDB:
    """A server and a database of ours in it.

    address: arguments of PyMySQL's `connect`; origin: given, found or private; pid: its process on
    this machine, where that is known.
    """

    address: Mapping[str, Any] = field(repr=False)
    origin: str
    version: str
    database: str
    pid: int | None = None
    own: private.Private | None = None

    def connect(self) -> Any:
        """A new connection over TCP, in our database; every statement is a transaction of its own."""
        return _connect(self.address, self.database)

    def notes(self) -> dict[str, str]:
        """What is worth storing about it."""
        return {"mariadb": f"{self.version}, {self.origin}"}

    def close(self) -> None:
        """Drop our database, or end our server."""
        if self.own is not None:
            self.own.close()
            return
        with _connect(self.address) as connection, connection.cursor() as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS {self.database}")


def serve() -> MariaDB:
    """A server to use, with an empty database. Raises Skip where there is none."""
    pymysql = need("pymysql", "pip install 'inference-bench[suites]'")
    given = os.environ.get(VARIABLE)
    if given and given != PRIVATE:
        try:
            return _there(_address(given), "given")
        except pymysql.MySQLError as error:
            raise Skip(f"the address in {VARIABLE} does not answer ({error}): {HOW}") from None
    if given != PRIVATE and private.listens("127.0.0.1", PORT):
        with suppress(pymysql.MySQLError):  # it wants a password
            return _there({"host": "127.0.0.1", "port": PORT, "user": "root", "password": ""}, "found")
    binary, installer = _binary("mariadbd"), _binary("mariadb-install-db")
    if binary is None or installer is None:
        raise Skip(f"no MariaDB lets root in without a password at 127.0.0.1:{PORT}, and no mariadbd is here: {HOW}")
    return _start(pymysql, binary, installer)


def _address(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    if parts.scheme not in ("mariadb", "mysql") or not parts.hostname:
        raise Skip(f"{VARIABLE} is no address: {HOW}")
    return {
        "host": parts.hostname, "port": parts.port or PORT, "user": unquote(parts.username or "root"),
        "password": unquote(parts.password or ""),
    }  # fmt: skip


def _connect(address: Mapping[str, Any], database: str | None = None) -> Any:
    pymysql = need("pymysql", "pip install 'inference-bench[suites]'")
    return pymysql.connect(
        **address, database=database, autocommit=True, connect_timeout=5, read_timeout=PATIENCE_S,
        write_timeout=PATIENCE_S,
    )  # fmt: skip


def _there(address: Mapping[str, Any], origin: str, own: private.Private | None = None) -> MariaDB:
    database = names.own()
    with _connect(address) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT VERSION(), @@pid_file")
        version, pid_file = cursor.fetchone()
        if "MariaDB" not in version:
            raise Skip(f"the server is no MariaDB but {version}, and the data are made by its sequence engine: {HOW}")
        cursor.execute("SHOW DATABASES")
        for (name,) in cursor.fetchall():
            if names.is_left(name):
                cursor.execute(f"DROP DATABASE IF EXISTS {name}")
        cursor.execute(f"CREATE DATABASE {database}")
    pid = own.pid if own is not None else None
    if pid is None and address["host"] in private.LOCAL:
        with suppress(OSError, ValueError):
            pid = private.process_called(int(Path(pid_file).read_text(encoding="utf-8")), ("mariadbd", "mysqld"))
    return MariaDB(address=address, origin=origin, version=version, database=database, pid=pid, own=own)


def _start(pymysql: Any, binary: str, installer: str) -> MariaDB:
    folder, port = private.new_folder(), private.free_port()
    with tarfile.open(_template(binary, installer)) as packed:
        packed.extractall(folder, filter="data")
    command = [
        binary, "--no-defaults", f"--datadir={folder / 'data'}", f"--socket={folder / 'socket'}", f"--port={port}",
        "--bind-address=127.0.0.1", f"--pid-file={folder / 'pid'}", *_as_root(), *SETTINGS,
    ]  # fmt: skip
    address = {"host": "127.0.0.1", "port": port, "user": "root", "password": ""}

    def answers() -> bool:
        try:
            _connect(address).close()
        except pymysql.MySQLError:
            return False
        return True

    return _there(address, "private", private.start("MariaDB", command, folder, answers))


def _template(binary: str, installer: str) -> Path:
    """A data folder as it was installed, packed: unpacking 20 MB is ten times faster than installing."""
    version = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False).stdout.strip()

    def build(folder: Path) -> None:
        data = folder / "data"
        done = subprocess.run(
            [installer, "--no-defaults", f"--datadir={data}", *_as_root(), "--skip-test-db",
             "--auth-root-authentication-method=normal", "--skip-name-resolve", "--innodb-log-file-size=4M"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            words = (done.stdout + done.stderr).strip().splitlines()
            raise Skip(f"mariadb-install-db failed: {words[-1] if words else done.returncode}")
        with tarfile.open(folder / "data.tar", "w") as packed:
            packed.add(data, "data")
        shutil.rmtree(data)

    return artifact("mariadb-data", build, sources=[Path(__file__)], inputs={"version": version}) / "data.tar"


def _as_root() -> list[str]:
    """MariaDB refuses to run as root unless told so."""
    return ["--user=root"] if os.geteuid() == 0 else []


def _binary(name: str) -> str | None:
    """On PATH, or where distributions put servers, which is not on everybody's PATH."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
