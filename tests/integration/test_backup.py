"""A copy is whole, of one moment, and opens as a database."""

import json
import threading
from pathlib import Path

import pytest

from bench.cli import run as bench
from bench.errors import Exit
from bench.testing import make_run
from db.backup import backup
from db.store import open_store


def test_a_copy_made_while_others_write_holds_whole_runs(sqlite_url: str, tmp_path: Path) -> None:
    stop = threading.Event()
    stored: list[str] = []

    def write() -> None:
        with open_store(sqlite_url) as store:
            for seed in range(200):
                store.add(make_run(seed=seed, launches=1))
                stored.append(make_run(seed=seed, launches=1).key)
                if stop.is_set() and seed > 5:
                    return

    open_store(sqlite_url).close()
    writer = threading.Thread(target=write)
    writer.start()
    while len(stored) < 3:
        stop.wait(0.01)
    acknowledged = list(stored)
    size = backup(sqlite_url, tmp_path / "copy.db")
    stop.set()
    writer.join()
    assert size == (tmp_path / "copy.db").stat().st_size
    assert [path.name for path in tmp_path.glob("copy.db*")] == ["copy.db"]
    with open_store(str(tmp_path / "copy.db"), create=False) as copy:
        keys = [info.key for info in copy.runs()]
        assert set(acknowledged) <= set(keys) <= set(stored)
        for key in keys:
            copy.get(key)
        assert copy.add(make_run(seed=999)).value == "new"


def test_the_verb_says_what_it_wrote_and_never_overwrites(
    sqlite_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with open_store(sqlite_url) as store:
        store.add(make_run())
    words = ["db", "backup", "copy.db", "--database", sqlite_url]
    assert bench([*words, "--json"]) == Exit.OK
    assert json.loads(capsys.readouterr().out) == {"file": "copy.db", "bytes": Path("copy.db").stat().st_size}
    assert bench(words) == Exit.USAGE
    assert "is there already" in capsys.readouterr().err
    assert bench(["show", "latest", "--database", "copy.db"]) == Exit.OK


@pytest.mark.parametrize(
    ("url", "target", "code", "says"),
    [
        ("none.db", "copy.db", Exit.ENVIRONMENT, "there is no database"),
        ("postgresql://nobody@127.0.0.1:1/x", "copy.db", Exit.ENVIRONMENT, "copy it with pg_dump"),
        ("bench.db", "no/such/folder/copy.db", Exit.ENVIRONMENT, "cannot be"),
    ],
)
def test_what_cannot_be_copied_is_one_sentence(
    url: str, target: str, code: Exit, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    open_store("bench.db").close()
    assert bench(["db", "backup", target, "--database", url]) == code
    err = capsys.readouterr().err
    assert says in err
    assert "Traceback" not in err
    assert not (tmp_path / target).exists()
