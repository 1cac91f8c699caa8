"""Runs as other tools' files: read back by the tools themselves and by our own import."""

import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bench.errors import HostError, UsageError
from bench.exports import table
from bench.exports.asv import to_asv
from bench.exports.pyperf import to_pyperf
from bench.formats import all_formats
from bench.formats._build import Supplied
from bench.formats._read import Reader, files_in
from bench.metrics import TIME
from bench.model import Failure, FailureKind, Measurement, Revision, Target
from bench.testing import make_run

COMMIT = Revision(commit="0a1b2c3d" * 5, branch="main", committed_at=datetime(2026, 1, 1, tzinfo=UTC))


def made(**words):
    return replace(make_run(**words), revision=COMMIT)


def imported(place):
    (found,) = Reader(all_formats(), Supplied()).read(files_in(place))
    return found


def samples(run, name="time"):
    """Values of single calls by variant, launches joined."""
    return {
        result.arm.variant.name: [v / m.loops for row in m.launches for v in row]
        for _, result in run.arms()
        if (m := result.measurement(name)) is not None
    }


def with_loops(run, loops):
    """The same readings, said to be of several calls."""
    (experiment,) = run.experiments
    results = tuple(
        replace(r, measurements=tuple(replace(m, loops=loops) if m.metric == TIME else m for m in r.measurements))
        for r in experiment.results
    )
    return replace(run, experiments=(replace(experiment, results=results),))


# Tables


def test_parquet_holds_the_rows_of_the_csv_with_types(tmp_path):
    from pyarrow import parquet

    runs = [make_run(seed=1), made(seed=2)]
    file = tmp_path / "runs.parquet"
    file.write_bytes(table.to_parquet(runs))
    read = parquet.read_table(file)
    assert tuple(read.column_names) == table.COLUMNS
    assert [str(kind) for kind in read.schema.types[:2]] == ["string", "timestamp[us, tz=UTC]"]
    assert [tuple(row.values()) for row in read.to_pylist()] == list(table.rows(runs))


def test_parquet_is_written_in_groups_and_none_is_lost(tmp_path, monkeypatch):
    from pyarrow import parquet

    monkeypatch.setattr(table, "CHUNK", 1000)
    run = make_run()
    (tmp_path / "x.parquet").write_bytes(table.to_parquet([run]))
    read = parquet.ParquetFile(tmp_path / "x.parquet")
    assert read.num_row_groups > 1
    assert read.metadata.num_rows == sum(1 for _ in table.rows([run]))


def test_parquet_without_pyarrow_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(HostError, match=r"inference-bench\[parquet\]"):
        table.to_parquet([make_run()])


# pyperf


def test_pyperf_shows_what_was_exported_and_it_comes_back_with_the_same_samples(tmp_path):
    run = with_loops(made(), 4)
    text, left_out = to_pyperf([run])
    (tmp_path / "run.json").write_text(text)
    shown = subprocess.run(
        [sys.executable, "-m", "pyperf", "show", "--quiet", tmp_path / "run.json"], capture_output=True, text=True
    )
    assert "demo.net[engine=e0]: Mean +- std dev: 500 us" in shown.stdout, shown.stderr
    back = imported(tmp_path)
    assert (back.format, back.run.quarantine) == ("pyperf", ("tool version",))
    found = samples(back.run)
    for name, values in samples(run).items():
        assert found[name] == pytest.approx(values, rel=1e-12)
    assert samples(back.run, "peak_memory") == samples(run, "peak_memory")
    arm = back.run.experiments[0].results[0]
    assert [len(row) for row in arm.measurement("time").launches] == [40] * 7
    assert (back.run.machine.cpu, back.run.revision) == ("Example CPU", COMMIT)
    assert left_out == ["left out of pyperf, which takes more for worse, measurements of agreement: 3"]


def test_pyperf_tells_targets_apart_and_says_what_failed():
    run = made(failure=Failure(kind=FailureKind.RAISED, phase="round", message="no"))
    (experiment,) = run.experiments
    first, second, third = experiment.results
    other = replace(second, arm=replace(first.arm, target=Target(label="head")))
    run = replace(run, experiments=(replace(experiment, results=(first, other, replace(third, measurements=()))),))
    text, left_out = to_pyperf([run])
    names = [part["metadata"]["name"] for part in json.loads(text)["benchmarks"]]
    assert {"demo.net[engine=e0]@here", "demo.net[engine=e0]@head"} <= set(names)
    assert any("no place for failures, arms: 1" in sentence for sentence in left_out)


def test_pyperf_takes_one_run_and_no_value_of_zero():
    with pytest.raises(UsageError, match="one run a file, and 2 were named"):
        to_pyperf([make_run(), make_run(seed=1)])
    (experiment,) = make_run().experiments
    zero = replace(experiment.results[0], measurements=(Measurement(metric=TIME, launches=((0, 1),)),))
    with pytest.raises(UsageError, match="no value that pyperf's format could hold"):
        to_pyperf([replace(make_run(), experiments=(replace(experiment, results=(zero,)),))])


# asv


def written(folder, runs):
    found = to_asv(runs)
    for place, document in found.documents.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(json.dumps(document))
    return found


def test_asv_results_come_back_with_the_same_samples_commit_and_machine(tmp_path):
    run = with_loops(made(), 2)
    found = written(tmp_path, [run])
    back = imported(tmp_path)
    assert (back.format, back.run.quarantine) == ("asv", ())
    found_samples = samples(back.run)
    for name, values in samples(run).items():
        assert found_samples[name.replace("=e", "='e").replace("]", "']")] == pytest.approx(values, rel=1e-12)
    assert back.run.revision.commit == COMMIT.commit
    assert back.run.revision.committed_at == COMMIT.committed_at
    assert (back.run.machine.cpu, back.run.machine.memory_gib) == ("Example CPU", 24)
    assert samples(back.run, "peak_memory")["demo.net.peakmem_peak_memory[engine='e0']"][0] > 3e8 - 1
    assert any("agreement is better when higher" in sentence for sentence in found.left_out)
    assert any("which launch" in sentence for sentence in found.left_out)


def test_asv_gets_failures_as_null_and_what_was_not_measured_as_nan(tmp_path):
    run = made(failure=Failure(kind=FailureKind.RAISED, phase="round", message="no"))
    (experiment,) = run.experiments
    failed = replace(experiment.results[2], measurements=())
    skipped = replace(
        experiment.results[1], measurements=(), failure=Failure(kind=FailureKind.SKIPPED, phase="set_up", message="no")
    )
    results = (experiment.results[0], skipped, failed)
    written(tmp_path, [replace(run, experiments=(replace(experiment, results=results),))])
    found = {result.arm.variant.name: result.failure for _, result in imported(tmp_path).run.arms()}
    assert found["demo.net[engine='e0']"] is None
    assert found["demo.net[engine='e1']"].kind is FailureKind.SKIPPED
    assert found["demo.net[engine='e2']"].kind is FailureKind.RAISED


def test_asv_joins_experiments_of_one_benchmark_and_keeps_the_newer_of_two_runs(tmp_path):
    older, newer = made(seed=1), made(seed=2)
    (experiment,) = newer.experiments
    split = tuple(
        replace(experiment, results=(result,), experiment=replace(experiment.experiment, arms=(result.arm,)))
        for result in experiment.results
    )
    found = written(tmp_path, [replace(newer, experiments=split), older])
    back = imported(tmp_path).run
    expected = samples(newer)["demo.net[engine=e2]"]
    assert samples(back)["demo.net[engine='e2']"] == pytest.approx(expected, rel=1e-12)
    assert any(f"demo.net is that of {newer.key[:8]}" in sentence for sentence in found.left_out)


def test_asv_files_results_by_commit_and_target():
    with pytest.raises(UsageError, match="has no commit, by which asv files"):
        to_asv([make_run()])
    run = made()
    (experiment,) = run.experiments
    target = Target(label="head", requirements=("numpy==2.0",), variables={"MODE": "fast"})
    moved = [replace(r, arm=replace(r.arm, target=target)) for r in experiment.results[1:]]
    results = (experiment.results[0], *moved)
    found = to_asv([replace(run, experiments=(replace(experiment, results=results),))])
    names = sorted(
        place.rpartition("/")[2] for place in found.documents if place.endswith("11.json") or "numpy" in place
    )
    assert names == ["0a1b2c3d-bench-py3.11-numpy2.0-MODEfast.json", "0a1b2c3d-bench-py3.11.json"]


def test_asv_results_without_asv_runner_name_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "asv_runner.statistics", None)
    with pytest.raises(HostError, match=r"inference-bench\[asv\]"):
        to_asv([made()])


def test_asv_itself_shows_and_publishes_what_was_exported(tmp_path):
    def git(*words):
        done = subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", *words], cwd=tmp_path / "project",
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout.strip()

    def asv(*words):
        done = subprocess.run(
            [sys.executable, "-m", "asv", *words], cwd=tmp_path, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    (tmp_path / "project").mkdir()
    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "one")
    commit = git("rev-parse", "HEAD")
    run = replace(make_run(), revision=replace(COMMIT, commit=commit))
    written(tmp_path / "results", [run])
    (tmp_path / "asv.conf.json").write_text(json.dumps({
        "version": 1, "project": "demo", "repo": "project", "branches": ["main"], "results_dir": "results",
        "html_dir": "html", "env_dir": "env",
    }))  # fmt: skip
    shown = asv("show", commit)
    assert "demo.net" in shown
    assert "2.00" in shown
    asv("publish", "--no-pull")
    index = json.loads((tmp_path / "html" / "index.json").read_text())
    assert {"demo.net", "demo.net.track_size", "demo.net.peakmem_peak_memory"} <= index["benchmarks"].keys()
    assert index["benchmarks"]["demo.net"]["params"] == [["'e0'", "'e1'", "'e2'"]]


# The verb


@pytest.fixture
def export(tmp_path, monkeypatch, capsys):
    """Calls `bench export` on a database with one run; gives exit code and what was said."""
    from bench.cli import run as bench
    from bench.commands._shared import estimates
    from db.store import open_store

    monkeypatch.chdir(tmp_path)
    store = open_store("bench.db", summarise=estimates)
    store.add(made())
    store.close()

    def call(*words):
        code = bench(["export", "latest", "--database", "bench.db", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_export_writes_every_format_and_says_what_it_leaves_out(export, tmp_path):
    assert export("--format", "pyperf")[1].startswith('{\n "version": "1.0"')
    code, _, said = export("--format", "asv", "--output", "results")
    assert (code, "which launch a sample is of" in said) == (0, True)
    assert (tmp_path / "results" / "benchmarks.json").is_file()
    assert export("--format", "parquet", "--output", "runs.parquet")[0] == 0
    assert (tmp_path / "runs.parquet").read_bytes()[:4] == b"PAR1"
    assert export("--format", "csv")[1].startswith("run,started_at,commit,")


def test_export_overwrites_no_results_and_prints_no_binary_file(export, tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "mine.json").write_text("{}")
    code, _, said = export("--format", "asv", "--output", "results")
    assert (code, "is there and not empty" in said) == (2, True)
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["mine.json"]
    for form in ("asv", "parquet"):
        code, _, said = export("--format", form)
        assert (code, "cannot go to standard output" in said) == (2, True)
