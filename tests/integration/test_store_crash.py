"""Several processes, some of them killed, on one database."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from bench.ports import Added
from bench.testing import make_run
from db.store import open_store

KILLS = int(os.environ.get("BENCH_TEST_KILLS", "5"))

WORKER = Path(__file__).with_name("ingest_worker.py")


@contextmanager
def workers(url: str, jobs: list[tuple[int, int]]) -> Iterator[list["subprocess.Popen[str]"]]:
    """One process per (first seed, count); all are let go at the same moment, and gone at the end."""
    found = [
        subprocess.Popen(
            [sys.executable, str(WORKER), url, str(first), str(count)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for first, count in jobs
    ]  # fmt: skip
    try:
        for process in found:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in found:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        yield found
    finally:
        for process in found:
            process.kill()
            process.communicate()


def finish(processes: list["subprocess.Popen[str]"]) -> list[tuple[str, str]]:
    """(key, what adding it did) of all runs; every process ended well."""
    lines = []
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert (process.returncode, err) == (0, "")
        lines += [line.split() for line in out.splitlines()]
    return [(key, added) for key, added in lines]


def test_processes_that_write_at_once_lose_nothing(database_url: str) -> None:
    """They also find no database, so that all of them try to make it."""
    with workers(database_url, [(100 * k, 5) for k in range(8)]) as processes:
        lines = finish(processes)
    seeds = [100 * k + j for k in range(8) for j in range(5)]
    assert Counter(added for _, added in lines) == {Added.NEW: 40}
    with open_store(database_url, create=False) as store:
        assert {info.key for info in store.runs()} == {key for key, _ in lines}
        for seed in seeds:
            assert store.get(make_run(seed=seed).key) == make_run(seed=seed)


def test_the_same_run_pushed_by_eight_at_once_is_new_once(database_url: str) -> None:
    open_store(database_url).close()
    with workers(database_url, [(7, 1)] * 8) as processes:
        lines = finish(processes)
    assert Counter(added for _, added in lines) == {Added.NEW: 1, Added.REPLAY: 7}
    with open_store(database_url) as store:
        assert store.get(make_run(seed=7).key) == make_run(seed=7)
        assert len(store.runs()) == 1


@pytest.mark.slow
def test_kill_9_while_storing_loses_no_acknowledged_run_and_leaves_none_in_part(database_url: str) -> None:
    open_store(database_url).close()
    rng = random.Random(9)
    acknowledged: set[str] = set()
    for kill in range(KILLS):
        with workers(database_url, [(1000 * kill, 1000)]) as (process,):
            assert process.stdout is not None
            first = process.stdout.readline()
            time.sleep(rng.random() * 0.1)
            process.send_signal(signal.SIGKILL)
            out, _ = process.communicate()
            assert process.returncode == -signal.SIGKILL
        whole = [line for line in (first + out).splitlines(keepends=True) if line.endswith("\n")]
        acknowledged |= {line.split()[0] for line in whole}
    seeds = {make_run(seed=1000 * kill + j).key: 1000 * kill + j for kill in range(KILLS) for j in range(100)}
    with open_store(database_url, create=False) as store:
        stored = [info.key for info in store.runs()]
        assert acknowledged <= set(stored)
        assert len(stored) <= len(acknowledged) + KILLS  # one may have been committed and not yet said so
        for key in stored:
            assert store.get(key) == make_run(seed=seeds[key])
    if database_url.startswith("sqlite"):
        with closing(sqlite3.connect(database_url.removeprefix("sqlite:///"))) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
