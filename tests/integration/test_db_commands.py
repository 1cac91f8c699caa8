"""`bench db` and `bench export` as a user runs them."""

import csv
import io
import json
from pathlib import Path

import pytest

from bench.cli import run as bench
from bench.errors import Exit
from bench.model import Failure, FailureKind
from bench.testing import make_run
from bench.wire import decode_run, payload_sha
from db import schema
from db.store import open_store


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BENCH_DATABASE", raising=False)


def test_the_life_of_a_database(database_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--database", database_url, "--json"]
    empty = "missing" if database_url.startswith("sqlite") else "empty"

    def answer(verb: str) -> dict[str, object]:
        assert bench(["db", verb, *arguments]) == Exit.OK
        value: dict[str, object] = json.loads(capsys.readouterr().out)
        return value

    assert answer("status")["state"] == empty
    assert answer("upgrade") == {"before": None, "after": schema.head(), "backup": None}
    assert answer("upgrade")["before"] == schema.head()
    with open_store(database_url) as store:
        store.add(make_run())
    status = answer("status")
    assert status["state"] == "current"
    assert status["totals"]["runs"] == 1  # type: ignore[index]
    assert answer("rebuild") == {"runs": 1}
    assert bench(["db", "status", "--database", database_url]) == Exit.OK
    assert "1 runs, 3 arms, 15 measurements" in capsys.readouterr().out


def test_an_exported_run_is_the_same_run(sqlite_url: str, tmp_path: Path) -> None:
    run = make_run(failure=Failure(kind=FailureKind.SKIPPED, phase="set_up", message="no GPU"))
    with open_store(sqlite_url) as store:
        store.add(run)
    assert bench(["export", "latest", "--database", sqlite_url, "--output", "out.json"]) == Exit.OK
    back = decode_run((tmp_path / "out.json").read_bytes())
    assert back == run
    assert payload_sha(back) == payload_sha(run)


def test_several_runs_are_one_document_a_line_each_once(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    added = [make_run(seed=k) for k in range(2)]
    with open_store(sqlite_url) as store:
        for run in added:
            store.add(run)
    assert bench(["export", "latest", "latest~1", added[1].key, "--database", sqlite_url]) == Exit.OK
    lines = capsys.readouterr().out.splitlines()
    assert [decode_run(line.encode()) for line in lines] == [added[1], added[0]]


def test_csv_has_one_row_per_raw_sample(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(launches=2)
    with open_store(sqlite_url) as store:
        store.add(run)
    assert bench(["export", "latest", "--format", "csv", "--database", sqlite_url]) == Exit.OK
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    expected = [
        (result.arm.variant.name, m.metric.name, str(m.loops), str(k), str(j), str(value))
        for _, result in run.arms()
        for m in result.measurements
        for k, launch in enumerate(m.launches)
        for j, value in enumerate(launch)
    ]
    names = ("variant", "metric", "loops", "launch", "sample", "value")
    assert [tuple(row[name] for name in names) for row in rows] == expected
    assert {row["run"] for row in rows} == {run.key}


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["export", "latest"], Exit.ENVIRONMENT, "there is no database"),
        (["db", "upgrade", "--database", "mysql://a:s3cret@b/c"], Exit.USAGE, "not supported"),
        (["db", "rebuild"], Exit.ENVIRONMENT, "there is no database"),
        (["export"], Exit.USAGE, "RUN"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(
    arguments: list[str], code: Exit, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert "s3cret" not in err
    assert "Traceback" not in err


def test_a_run_that_is_not_there(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    open_store(sqlite_url).close()
    assert bench(["export", "latest~4", "--database", sqlite_url]) == Exit.FAILED
    assert "only 0 runs are stored" in capsys.readouterr().err
