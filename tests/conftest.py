"""Databases for tests, and the rule for tests that need a server."""

import importlib.util
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from bench.measure.callgrind import missing

# One seed and no deadline: a busy machine must not decide what is tried, or how long it may take.
# `--hypothesis-profile=search` looks further, for a person.
settings.register_profile("seeded", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=3000, deadline=None)
settings.load_profile("seeded")


DEFAULT_POSTGRESQL = "postgresql+psycopg://postgres@127.0.0.1:5432/postgres"


@cache
def _postgresql_problem() -> str:
    """Why PostgreSQL cannot be used; empty when it can."""
    url = postgresql_server()
    try:
        import psycopg
    except ImportError:
        return "psycopg is not installed: pip install 'inference-bench[postgres]'"
    try:
        psycopg.connect(url.replace("+psycopg", ""), connect_timeout=3).close()
    except psycopg.Error as error:
        return f"no PostgreSQL answers; set BENCH_TEST_POSTGRESQL_URL ({str(error).splitlines()[0]})"
    return ""


def postgresql_server() -> str:
    """The server that tests may use."""
    return os.environ.get("BENCH_TEST_POSTGRESQL_URL", DEFAULT_POSTGRESQL)


def chromium() -> str:
    """The browser that tests may drive."""
    return os.environ.get("BENCH_TEST_CHROMIUM", "/usr/bin/chromium")


@cache
def _chromium_problem() -> str:
    """Why no browser can be driven; empty when one can."""
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed: pip install 'inference-bench[test]'"
    if not Path(chromium()).is_file():
        return f"{chromium()} is not there; install Chromium or set BENCH_TEST_CHROMIUM"
    return ""


def _binary_problem(*names: str) -> Callable[[], str]:
    """A check whether servers that tests start themselves are installed."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin"
    return lambda: next((f"{name} is not on PATH" for name in names if shutil.which(name, path=path) is None), "")


SERVICES: dict[str, Callable[[], str]] = {
    "postgresql": _postgresql_problem,
    "chromium": _chromium_problem,
    "valgrind": missing,
    "redis": _binary_problem("redis-server"),
    "mariadb": _binary_problem("mariadbd", "mariadb-install-db"),
}
"""What `@pytest.mark.service(name)` may name, and how to find out whether it is there."""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose service is missing; fail it where services are required."""
    for marker in item.iter_markers("service"):
        name = marker.args[0]
        problem = SERVICES[name]()
        if not problem:
            continue
        if os.environ.get("BENCH_REQUIRE_SERVICES") == "1":
            pytest.fail(f"{name} is required here (BENCH_REQUIRE_SERVICES=1): {problem}", pytrace=False)
        pytest.skip(f"{name}: {problem}")


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A SQLite file that is not there yet."""
    return f"sqlite:///{tmp_path / 'bench.db'}"


@pytest.fixture
def postgresql_url() -> Iterator[str]:
    """An empty schema of its own on the server, dropped afterwards. Mark the test with the service."""
    import psycopg
    from psycopg import sql

    server, name = postgresql_server(), f"bench_test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
        try:
            yield f"{server}{'&' if '?' in server else '?'}options=-csearch_path%3D{name}"
        finally:
            connection.execute("SET lock_timeout = '20s'")  # a test that leaks a connection fails, and does not hang
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.service("postgresql"))])
def database_url(request: pytest.FixtureRequest) -> str:
    """An empty database of each kind."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture(scope="session")
def private_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A Redis and a MariaDB for all tests of suites, and the folder that keeps MariaDB's template: variables.

    Mark the test with both services.
    """
    from suites.services import mariadb, redis

    with pytest.MonkeyPatch.context() as patch:
        cache = str(tmp_path_factory.mktemp("cache"))
        for name, value in (
            ("BENCH_CACHE", cache),
            (redis.VARIABLE, redis.PRIVATE),
            (mariadb.VARIABLE, mariadb.PRIVATE),
        ):
            patch.setenv(name, value)
        fast, sql = redis.serve(), mariadb.serve()
    port = sql.address["port"]
    yield {"BENCH_CACHE": cache, redis.VARIABLE: fast.url, mariadb.VARIABLE: f"mariadb://root@127.0.0.1:{port}"}
    fast.close()
    sql.close()


@pytest.fixture
def suite_servers(private_servers: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The addresses of `private_servers` in the environment."""
    for name, value in private_servers.items():
        monkeypatch.setenv(name, value)
    return private_servers
