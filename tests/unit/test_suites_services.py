"""Servers are taken in the order that is promised, left as they were found, and never outlive their owner."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from bench.api import Skip
from suites.services import kafka, mariadb, names, private, redis

ROOT = Path(__file__).parents[2]
CLOSED = 1
"""A port on which nobody listens."""


@pytest.fixture(autouse=True)
def _nothing_given(monkeypatch, tmp_path):
    for module in (redis, mariadb, kafka):
        monkeypatch.delenv(module.VARIABLE, raising=False)
        monkeypatch.setattr(module, "PORT", CLOSED)
    monkeypatch.setenv("BENCH_SCRATCH", str(tmp_path / "scratch"))  # as in a session: not there yet


@pytest.fixture
def clean(tmp_path):
    """Whatever a test starts is gone, and its folder too."""
    yield
    assert [file for folder in tmp_path.iterdir() for file in folder.iterdir()] == []


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]


def gone(pid: int, folder: Path) -> bool:
    deadline = time.monotonic() + 10
    while (alive(pid) or folder.exists()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive(pid) and not folder.exists()


@pytest.mark.service("redis")
def test_private_redis_answers_over_both_ways_and_ends(clean):
    pytest.importorskip("redis")
    server = redis.serve(unix=True)
    server.fill({"a": b"1"})
    assert server.origin == "private"
    assert server.client().get(server.key("a")) == server.client(unix=True).get(server.key("a")) == b"1"
    assert 0 < server.client().ttl(server.key("a")) <= redis.LIFE_S
    assert alive(server.pid)
    server.close()
    assert gone(server.pid, server.own.folder)


@pytest.mark.service("redis")
@pytest.mark.parametrize("how", ["given", "found"])
def test_redis_that_is_there_is_used_and_left_as_it_was(how, monkeypatch, clean):
    pytest.importorskip("redis")
    theirs = redis.serve()
    client = theirs.client()
    client.set("theirs", b"untouched")
    port = int(theirs.url.rpartition(":")[2].partition("/")[0])
    if how == "given":
        monkeypatch.setenv(redis.VARIABLE, theirs.url)
    else:
        monkeypatch.setattr(redis, "PORT", port)
    server = redis.serve(unix=True)
    assert (server.origin, server.pid, server.socket) == (how, theirs.pid, theirs.socket)
    server.fill(dict.fromkeys(range(3000), b"x"))
    assert client.dbsize() == 3001
    server.close()
    assert client.keys("*") == [b"theirs"]
    monkeypatch.setenv(redis.VARIABLE, redis.PRIVATE)
    other = redis.serve()
    assert (other.origin, other.pid == theirs.pid) == ("private", False)
    other.close()
    theirs.close()


@pytest.mark.service("mariadb")
@pytest.mark.service("redis")
def test_mariadb_private_then_given_then_found(private_servers, monkeypatch, clean):
    pytest.importorskip("pymysql")
    monkeypatch.setenv("BENCH_CACHE", private_servers["BENCH_CACHE"])
    theirs = mariadb.serve()
    port = theirs.address["port"]
    assert theirs.origin == "private"
    with theirs.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE theirs (id INT)")
        dead = names.own().replace(f"_{os.getpid()}_", f"_{dead_pid()}_")
        cursor.execute(f"CREATE DATABASE {dead}")
    for how in ("given", "found"):
        if how == "given":
            monkeypatch.setenv(mariadb.VARIABLE, f"mariadb://root@127.0.0.1:{port}")
        else:
            monkeypatch.delenv(mariadb.VARIABLE)
            monkeypatch.setattr(mariadb, "PORT", port)
        server = mariadb.serve()
        assert (server.origin, server.pid) == (how, theirs.pid)
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("CREATE TABLE ours (id INT)")
        server.close()
    with theirs.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW DATABASES LIKE 'bench%'")
        assert cursor.fetchall() == ((theirs.database,),)  # what the dead process left is gone too
        cursor.execute("SHOW TABLES")
        assert cursor.fetchall() == (("theirs",),)
    monkeypatch.setenv(mariadb.VARIABLE, f"mariadb://root:wrong@127.0.0.1:{port}")
    with pytest.raises(Skip, match=r"Access denied.*docker compose up"):
        mariadb.serve()
    theirs.close()
    assert gone(theirs.pid, theirs.own.folder)


def test_mock_broker_carries_messages_and_says_what_it_is():
    pytest.importorskip("confluent_kafka")
    broker = kafka.serve()
    producer, consumer = broker.producer(), broker.consumer()
    producer.produce(broker.topic, b"hello", partition=kafka.PARTITION)
    assert consumer.poll(10).value() == b"hello"
    assert "mock" in broker.notes()["kafka"]
    consumer.close()
    broker.close()


def test_kafka_that_is_given_and_silent_is_not_replaced_by_the_mock(monkeypatch):
    pytest.importorskip("confluent_kafka")
    monkeypatch.setenv(kafka.VARIABLE, f"127.0.0.1:{CLOSED}")
    monkeypatch.setattr(kafka, "PATIENCE_S", 0.3)
    with pytest.raises(Skip, match=r"does not answer.*docker compose up -d kafka"):
        kafka.serve()


@pytest.mark.parametrize(("module", "package"), [(redis, "redis"), (mariadb, "pymysql")])
def test_without_any_server_the_reason_says_how_to_get_one(module, package, monkeypatch):
    pytest.importorskip(package)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(Skip, match=r"docker compose up -d (redis|mariadb), install"):
        module.serve()
    monkeypatch.setenv(module.VARIABLE, f"{package.replace('pymysql', 'mariadb')}://127.0.0.1:{CLOSED}")
    with pytest.raises(Skip, match="does not answer"):
        module.serve()


@pytest.mark.service("redis")
@pytest.mark.parametrize("victim", ["owner", "guard"])
def test_killed_owner_or_guard_takes_the_server_along(victim, tmp_path):
    pytest.importorskip("redis")
    code = f"""
        import time
        from suites.services import redis
        redis.PORT = {CLOSED}
        server = redis.serve()
        print(server.pid, server.own.guard.pid, server.own.folder, flush=True)
        time.sleep(60)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as p:
        server, guard, folder = p.stdout.readline().split()
        assert alive(int(server))
        os.kill(p.pid if victim == "owner" else int(guard), signal.SIGKILL)
        if victim == "owner":
            assert gone(int(server), Path(folder))
        else:  # the folder stays until the session's scratch folder goes
            assert gone(int(server), tmp_path / "no folder")
        p.kill()


def test_server_that_does_not_start_says_why(clean):
    with pytest.raises(Skip, match="a private thing did not start: no such option"):
        private.start("thing", ["sh", "-c", "echo no such option; exit 3"], private.new_folder(), lambda: False)
    with pytest.raises(Skip, match="a private thing did not start"):
        private.start("thing", ["/no/such/binary"], private.new_folder(), lambda: False)


def dead_pid() -> int:
    with subprocess.Popen(["true"]) as process:
        process.wait()
        return process.pid


def test_names_tell_what_nobody_needs_any_more():
    name = names.own()
    assert re.fullmatch(r"\w{1,64}", name)  # what MariaDB takes without quotes
    assert name != names.own()
    assert not names.is_left(name)
    assert not names.is_left("bench_test_theirs")
    dead = name.replace(f"_{os.getpid()}_", f"_{dead_pid()}_")
    assert names.is_left(dead)
    assert not names.is_left(dead.replace(dead[6:14], "00000000"))  # of another machine


def test_compose_file_has_every_server_on_its_usual_port_of_this_machine_only():
    yaml = pytest.importorskip("yaml")
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    ports = {name: service["ports"] for name, service in services.items()}
    assert ports == {
        "redis": ["127.0.0.1:6379:6379"], "mariadb": ["127.0.0.1:3306:3306"], "postgres": ["127.0.0.1:5432:5432"],
        "kafka": ["127.0.0.1:9092:9092"],
    }  # fmt: skip
    for module in (redis, mariadb, kafka):
        assert re.search(r"docker compose up -d (\w+)", module.HOW)[1] in services
    assert services["mariadb"]["environment"]["MARIADB_ALLOW_EMPTY_ROOT_PASSWORD"] == "1"
