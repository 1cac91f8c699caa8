"""`bench import` as a user runs it, into a real database."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from bench.cli import run as bench
from bench.errors import Exit
from db.store import open_store

SAMPLES = Path(__file__).parents[1] / "formats"
ASV = SAMPLES / "asv"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BENCH_DATABASE", raising=False)


@pytest.fixture
def imported(capsys):
    """The exit code and what was said: `imported("file", "--commit", "abc")`."""

    def call(*arguments):
        code = bench(["import", *map(str, arguments)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def stored():
    with open_store("sqlite:///.bench/bench.db", create=False) as store:
        return [store.get(info.key) for info in store.runs()]


def test_an_imported_run_comes_back_with_raw_samples_unit_direction_and_commit(database_url, imported):
    code, out, _ = imported(ASV, "--database", database_url)
    assert code == Exit.OK
    assert "imported 2 runs (2 asv): 6 series, 1 commit, 2 machines" in out
    with open_store(database_url) as store:
        runs = [store.get(info.key) for info in store.runs()]
    samples = [r.measurement("time").launches for run in runs for _, r in run.arms() if r.measurement("time")]
    assert samples == [((1.9e3, 2e3, 2e3, 2.1e3),)]
    assert {run.revision.commit[:8] for run in runs} == {"0a1b2c3d"}


def test_a_second_import_finds_the_same_runs(imported):
    imported(ASV)
    code, out, _ = imported(ASV)
    assert code == Exit.OK
    assert "imported 0 runs" in out
    assert "2 runs were there before" in out
    assert len(stored()) == 2


def test_one_hostname_with_two_processors_is_two_machines(imported, tmp_path):
    text = (SAMPLES / "pytest-benchmark" / "0001_new.json").read_text()
    for name, cpu in (("a", "Imaginary CPU 9000"), ("b", "Imaginary CPU 7000")):
        (tmp_path / f"{name}.json").write_text(text.replace("Imaginary CPU 9000", cpu))
    _, out, _ = imported("a.json", "b.json", "--json")
    machines = json.loads(out)["machines"]
    assert [machine["label"] for machine in machines] == ["Imaginary CPU 9000, 4 cores", "Imaginary CPU 7000, 4 cores"]


def test_a_run_that_lacks_something_is_quarantined_until_it_is_supplied(imported, capsys):
    file = SAMPLES / "hyperfine" / "output.json"
    _, out, _ = imported(file)
    assert "quarantined, kept out of history: 1 run: 1 without commit (--commit), 1 without machine (--machine)" in out
    assert bench(["show"]) == Exit.OK
    assert "kept out of history: the import lacks commit, machine, tool version" in capsys.readouterr().out
    code, out, _ = imported(file, "--commit", "abc", "--machine", "lab-3", "--tool-version", "1.18")
    assert code == Exit.OK
    assert "quarantined" not in out
    assert [run.quarantine for run in stored()].count(()) == 1


def test_files_that_are_named_are_imported_together_or_not_at_all(imported, tmp_path):
    (tmp_path / "broken.json").write_text('{"results": [')
    code, out, err = imported(SAMPLES / "hyperfine" / "output.json", "broken.json")
    assert (code, out) == (Exit.USAGE, "")
    assert err.startswith("bench: broken.json is not JSON (Expecting value in line 1); it is damaged or cut short")
    assert err.endswith("; nothing was imported.\n")
    assert not Path(".bench").exists()


def test_in_a_folder_the_good_files_are_imported_and_the_others_are_named(imported, tmp_path):
    shutil.copytree(ASV, tmp_path / "results")
    (tmp_path / "results" / "README.md").write_text("Results of the hamster.")
    code, out, _ = imported("results")
    assert (code, "left alone: 1 file of no known format (README.md)" in out) == (Exit.OK, True)
    (tmp_path / "results" / "hamster" / "broken.json").write_text("{")
    code, out, _ = imported("results")
    assert code == Exit.FAILED
    assert "✗ results/hamster/broken.json is not JSON" in out
    assert len(stored()) == 2


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["README.md"], "README.md has a format that is unknown here; nothing was imported."),
        (["."], "no results were found in .: nothing there holds any."),
        (["machine.json"], "no results were found in machine.json"),
        (["README.md", "--format", "jhm"], "there is no format 'jhm'; there are asv"),
        (["machine.json", "--commit", " "], "--commit is empty"),
        (["machine.json", "--committed-at", "soon"], "--committed-at is 'soon', which is no point in time"),
        (["machine.json", "--repository", "."], "git"),
        (["README.md", "--format", "jmh"], "README.md does not hold together as JMH JSON"),
    ],
)
def test_what_cannot_be_imported_is_one_sentence_and_exit_2(imported, tmp_path, arguments, reason):
    (tmp_path / "README.md").write_text("Nothing to see.")
    if arguments[0] == "machine.json":
        (tmp_path / "machine.json").write_text((ASV / "hamster" / "machine.json").read_text())
    code, out, err = imported(*arguments)
    assert (code, out) == (Exit.USAGE, "")
    assert reason in err
    assert err.count("\n") == 1
    assert not Path(".bench").exists()


def test_a_dry_run_reads_everything_and_stores_nothing(imported):
    code, out, _ = imported(ASV, "--dry-run")
    assert code == Exit.OK
    assert "would import 2 runs" in out
    assert not Path(".bench").exists()


def test_json_tells_every_run_machine_and_refused_file(imported, tmp_path):
    shutil.copytree(ASV, tmp_path / "results")
    (tmp_path / "results" / "hamster" / "broken.json").write_text("{")
    document = json.loads(imported("results", "--json")[1])
    assert {"files", "key", "commit", "quarantine", "known"} <= document["runs"][0].keys()
    assert (document["series"], len(document["machines"])) == (6, 2)
    assert [refused["file"] for refused in document["refused"]] == ["results/hamster/broken.json"]


def test_a_checkout_gives_full_hashes_and_dates(imported, tmp_path):
    def git(*words):
        identity = ("-c", "user.name=x", "-c", "user.email=x@example.test")
        done = subprocess.run(
            ["git", *identity, *words], cwd=tmp_path / "code", check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    (tmp_path / "code").mkdir()
    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "one")
    commit = git("rev-parse", "HEAD")
    text = (SAMPLES / "go-bench" / "output.txt").read_text().replace("0a1b2c3d", commit[:9])
    (tmp_path / "go.txt").write_text(text)
    _, out, _ = imported("go.txt", "--repository", "code")
    assert "1 commit not in the repository" in out
    found = {run.revision.commit: run.revision for run in stored()}
    assert found[commit].committed_at is not None
    assert found["11111111"].committed_at is None
