"""The installed command, as a user types it: what it prints, and how it ends."""

import json
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bench.errors import Exit
from bench.model import RunStatus
from bench.testing import make_run
from bench.wire import decode_run, encode_run

BENCH = str(Path(sys.executable).with_name("bench"))


@pytest.fixture(scope="module")
def measured(tmp_path_factory, shell_in):
    """Two quick runs of a healthy benchmark, shared by the tests that only read."""
    shell = shell_in(tmp_path_factory.mktemp("measured"))
    for _ in range(2):
        shell("run", "behaviour.good", "--launches", "6")
    return shell


def test_a_run_shows_each_variant_with_speedup_accuracy_memory_and_size(measured):
    out, _ = measured("show")
    assert "behaviour.good  Twice the work takes twice as long." in out
    for word in ("latency", "speedup", "throughput", "right", "error", "peak memory", "size", "(baseline)", "×"):
        assert word in out
    assert "2 measured" in out


def test_json_holds_the_same_figures_with_units_and_intervals(measured):
    out, _ = measured("show", "--json")
    document = json.loads(out)
    small, large = document["experiments"][0]["variants"]
    assert small["baseline"] is True
    time_ = large["metrics"]["time"]
    assert time_["unit"] == "ns"
    assert time_["low"] < time_["value"] < time_["high"]
    assert large["speedup"]["high"] < 1
    assert large["metrics"]["size"]["against_baseline"]["value"] == 2.0
    assert small["metrics"]["right"]["value"] == 0.9


def test_two_runs_of_the_same_code_compare_without_a_regression(measured):
    """Times of stored runs are never decided; sizes and answers are."""
    out, _ = measured("compare", "latest~1", "latest", "--json")
    document = json.loads(out)
    assert document["exit_code"] == 0
    for variant in document["variants"]:
        assert variant["metrics"]["time"]["verdict"] == "inconclusive"
        assert not variant["metrics"]["time"]["paired"]
        assert variant["metrics"]["size"]["verdict"] == "unchanged"
        assert variant["metrics"]["right"]["verdict"] == "unchanged"
    assert "cannot be paired" in document["notes"][0]
    measured("compare", "latest~1", "latest", "--strict", code=Exit.INCONCLUSIVE)


def test_an_exported_run_is_the_stored_one_and_can_be_compared_as_a_file(measured):
    out, _ = measured("export", "latest")
    run = decode_run(out.encode())
    assert run.status is RunStatus.COMPLETE
    assert len(run.experiments[0].results[0].measurement("time").launches) == 6
    (measured.folder / "head.json").write_text(out)
    measured("compare", "latest", "head.json")


def test_another_machine_is_incomparable(measured):
    out, _ = measured("export", "latest")
    run = decode_run(out.encode())
    other = replace(run, key="0" * 32, machine=replace(run.machine, cpu="Another CPU"))
    (measured.folder / "other.json").write_bytes(encode_run(other))
    out, _ = measured("compare", "latest", "other.json", code=Exit.INCOMPARABLE)
    assert "Another CPU" in out
    assert "incomparable" in out


def test_a_bigger_artifact_is_a_regression(measured):
    out, _ = measured("export", "latest")
    document = json.loads(out)
    document["run"]["key"] = "1" * 32
    for arm in document["run"]["experiments"][0]["results"]:
        for measurement in arm["measurements"]:
            if measurement["metric"]["name"] == "size":
                measurement["launches"][0][0] += 1
    (measured.folder / "bigger.json").write_text(json.dumps(document))
    out, _ = measured("compare", "latest", "bigger.json", code=Exit.REGRESSION)
    assert "regressed" in out


def test_the_list_of_runs_is_newest_first(measured):
    out, _ = measured("show", "--list", "--json")
    infos = json.loads(out)
    assert len(infos) == 2
    assert infos[0]["started_at"] > infos[1]["started_at"]


def test_the_same_seed_is_said_to_be_the_same(bench):
    bench("run", "behaviour.good[n=2000]", "--launches", "2", "--seed", "7")
    bench("run", "behaviour.good[n=2000]", "--launches", "2", "--seed", "7")
    seeds = [
        [x.hash_seed for x in decode_run(bench("export", ref)[0].encode()).experiments[0].launches]
        for ref in ("latest", "latest~1")
    ]
    assert seeds[0] == seeds[1]


def test_json_of_a_run_goes_to_a_file_or_to_stdout(bench):
    bench("run", "behaviour.good", "--launches", "2", "--json", "out.json")
    assert json.loads((bench.folder / "out.json").read_text())["schema"] == "bench-report"
    out, _ = bench("run", "behaviour.good", "--launches", "2", "--json", "-")
    assert json.loads(out)["schema"] == "bench-report"


def test_what_is_asked_for_beside_time_is_shown_and_the_rest_is_null_with_a_reason(bench):
    out, _ = bench("run", "behaviour.good", "--launches", "2", "--allocations", "--tail", "--json", "out.json")
    assert "peak of allocations" in out
    assert "single calls" in out
    metrics = json.loads((bench.folder / "out.json").read_text())["experiments"][0]["variants"][0]["metrics"]
    assert metrics["allocation_peak"]["value"] > 0
    assert metrics["p50"]["value"] <= metrics["p99"]["value"]
    assert metrics["p99"]["low"] is not None or metrics["p99"]["note"].startswith("not enough")
    assert "instructions" not in metrics
    again, _ = bench("show", "--tail")
    assert again.rstrip().endswith(out.rstrip()[-200:])
    assert "single calls" not in bench("show")[0]


def test_instructions_without_valgrind_are_one_sentence_before_anything_is_measured(bench):
    for verb in ("run", "compare"):
        sentence = bench.sentence(verb, *(("env:A=1", "env:A=2") if verb == "compare" else ()), "--instructions",
                                  code=Exit.USAGE, PATH=str(bench.folder))  # fmt: skip
        assert sentence.endswith(
            "--instructions: valgrind is not installed (apt-get install valgrind), or leave the option out."
        )


@pytest.mark.parametrize(
    ("how", "says"),
    [("exits", "called sys.exit(3)"), ("forks", "forks and lets the child return"), ("wrong", "WRONG"),
     ("ends", "exit code 9"), ("raises", "division by zero")],
)  # fmt: skip
def test_a_failed_variant_is_shown_stored_and_ends_with_six(bench, how, says):
    out, _ = bench("run", f"behaviour.bad[how={how}]", "--launches", "2", code=Exit.FAILED)
    assert says in out
    assert "1 measured" in out
    again, _ = bench("show")
    assert says in again


def test_a_suite_that_prints_does_not_disturb(bench):
    out, _ = bench("run", "behaviour.prints", "--launches", "2")
    assert "3 measured" in out


def test_a_skipped_variant_is_no_failure_and_says_what_it_needs(bench):
    out, _ = bench("run", "behaviour.bad[how=skips]", "--launches", "2")
    assert "SKIPPED" in out
    assert "needs a thing" in out


ALL_SKIPPED = (
    "from bench.api import *\n@benchmark(requires=('no_such_package',))\ndef f(device):\n    return Work(run=int)\n"
)


def test_a_run_in_which_everything_was_skipped_is_not_a_success(bench):
    folder = bench.folder / "mine"
    folder.mkdir()
    (folder / "no.py").write_text(ALL_SKIPPED)
    out, _ = bench("run", code=Exit.FAILED, BENCH_SUITES=str(folder))
    assert "no_such_package" in out


def test_the_canary_runs_beside_what_was_asked_for_and_excuses_nothing(bench):
    folder = bench.folder / "mine"
    folder.mkdir()
    (folder / "no.py").write_text(ALL_SKIPPED)
    out, _ = bench("run", "--canary", "--launches", "2", code=Exit.FAILED, BENCH_SUITES=str(folder))
    assert "no_such_package" in out
    assert "canary.reference" in out
    assert "4 measured" in out


def test_an_unknown_selector_is_one_sentence(bench):
    assert "did you mean behaviour.good?" in bench.sentence("run", "behaviour.god", code=Exit.USAGE)


def test_a_broken_suite_file_is_said_and_the_rest_is_measured(bench):
    folder = bench.folder / "mine"
    folder.mkdir()
    (folder / "broken.py").write_text("def f(:\n")
    (folder / "fine.py").write_text("from bench.api import *\n@benchmark()\ndef f(device):\n    return Work(run=int)\n")
    out, err = bench("run", "--launches", "2", code=Exit.FAILED, BENCH_SUITES=str(folder))
    assert "suite broken: line 1: invalid syntax" in err
    assert "1 measured, 1 unreadable suites" in out
    out, err = bench("list", code=Exit.FAILED, BENCH_SUITES=str(folder))
    assert "fine.f" in out


def test_a_folder_without_suites_is_one_sentence(bench):
    assert "neither a folder" in bench("run", code=Exit.FAILED, BENCH_SUITES="/nowhere/at/all")[1]


def test_a_database_that_cannot_be_written_is_found_out_before_measuring(bench):
    started = time.monotonic()
    text = bench.sentence("run", "--database", str(bench.folder), code=Exit.ENVIRONMENT)
    assert str(bench.folder) in text
    assert time.monotonic() - started < 60
    assert "nowhere" in bench.sentence(
        "run", "--database", "postgresql+psycopg://me:secret@127.0.0.1:1/nowhere", code=Exit.ENVIRONMENT
    )


def test_a_password_is_never_shown(bench):
    url = "postgresql+psycopg://me:secret@127.0.0.1:1/nowhere"
    assert "secret" not in bench.sentence("show", "--database", url, code=Exit.ENVIRONMENT)


def test_a_newer_schema_is_one_sentence(bench):
    bench("run", "behaviour.good", "--launches", "2")
    with sqlite3.connect(bench.folder / ".bench" / "bench.db") as db:
        (table,) = db.execute(
            "select name from sqlite_master where name like '%schema%' or name like '%alembic%'"
        ).fetchone()
        db.execute(f"update {table} set version_num = 'zzzz'")
    db.close()
    assert "newer bench" in bench.sentence("show", code=Exit.ENVIRONMENT)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": "bench-run", "version": 99}', "\x00\x01"])
def test_a_corrupt_wire_file_is_one_sentence(bench, text):
    (bench.folder / "bad.json").write_text(text)
    assert "bad.json" in bench.sentence("compare", "bad.json", "bad.json", code=Exit.USAGE)


def test_a_run_that_is_not_there_is_one_sentence(bench):
    bench("db", "upgrade")
    assert "only 0 runs" in bench.sentence("show", code=Exit.FAILED)
    assert "abcd" in bench.sentence("show", "abcd", code=Exit.FAILED)
    assert "none.json" in bench.sentence("show", "none.json", code=Exit.USAGE)


def test_a_wrong_setting_is_one_sentence(bench):
    (bench.folder / "pyproject.toml").write_text("[tool.bench]\ndatabse = 'x'\n")
    assert "databse" in bench.sentence("show", code=Exit.USAGE)


def test_a_wrong_option_says_what_there_is(bench):
    _, err = bench("run", "--profile", "fast", code=Exit.USAGE)
    assert "quick" in err
    _, err = bench("nothing", code=Exit.USAGE)
    assert "No such command" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_stores_what_was_finished(bench, number, until_spooled):
    process = bench.start("run", "behaviour.good", "--launches", "500")
    until_spooled(bench)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == Exit.FAILED
    assert "interrupted" in err
    assert "INTERRUPTED" in out
    assert "Traceback" not in err
    stored = decode_run(bench("export", "latest")[0].encode())
    assert stored.status is RunStatus.INTERRUPTED
    assert len(stored.experiments[0].launches) >= 1
    assert not list(bench.folder.glob(".bench/spool/*"))


def test_a_killed_run_loses_no_finished_launch(bench, until_spooled):
    process = bench.start("run", "behaviour.good", "--launches", "500")
    until_spooled(bench)
    process.kill()
    process.communicate()
    out, err = bench("show", "--list", "--json")
    assert "recovered run" in err
    (info,) = json.loads(out)
    assert info["status"] == "interrupted"
    stored = decode_run(bench("export", "latest")[0].encode())
    assert stored.experiments[0].results[0].measurement("time") is not None
    assert "recovered" not in bench("show", "--list")[1]


def test_a_living_run_is_not_recovered_by_another_command(bench, until_spooled):
    process = bench.start("run", "behaviour.good", "--launches", "500")
    until_spooled(bench)
    out, err = bench("show", "--list", "--json")
    assert json.loads(out) == []
    assert "recovered" not in err
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)


def test_two_runs_at_once_wait_for_each_other_and_lose_nothing(bench):
    first = bench.start("run", "behaviour.good", "--launches", "8")
    second = bench.start("run", "behaviour.good", "--launches", "8")
    outputs = [p.communicate(timeout=120) for p in (first, second)]
    assert [p.returncode for p in (first, second)] == [0, 0]
    assert sum("waiting" in err for _, err in outputs) == 1
    assert len(json.loads(bench("show", "--list", "--json")[0])) == 2


def test_a_run_reads_its_revision_from_git(bench):
    git = ["git", "-C", str(bench.folder), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "add", "pyproject.toml"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "x"], check=True)
    bench("run", "behaviour.good[n=2000]", "--launches", "1")
    revision = decode_run(bench("export", "latest")[0].encode()).revision
    assert (len(revision.commit), revision.branch, revision.dirty) == (40, "main", False)


def test_help_imports_nothing_heavy():
    """`bench --help` must answer at once: no torch, SQL, web, numbers."""
    code = (
        "import sys; from bench.cli import run; run(['--help']); heavy = {'torch', 'sqlalchemy', 'streamlit', 'numpy', "
        "'scipy', 'onnxruntime', 'rich', 'alembic', 'plotly', 'msgspec'}; print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_reader_that_goes_away_is_no_error(measured):
    done = subprocess.run(
        f"{BENCH} export latest | head -c 10", shell=True, cwd=measured.folder, env=measured.environ,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert len(done.stdout) == 10
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr


def test_names_from_a_foreign_file_are_shown_as_text(bench):
    """Markup in a name must not become markup in a table."""
    (bench.folder / "x.json").write_bytes(encode_run(make_run(suite="[bold red]x[/]")))
    out, _ = bench("show", "x.json")
    assert "[bold red]x[/]" in out
