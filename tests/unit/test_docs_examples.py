"""Every example of the documentation runs as it is printed."""

import re
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest

import bench.commands
import bench.formats
import bench.reports
from bench.cli import bench as cli
from bench.cli import run as run_cli
from bench.errors import Exit
from bench.experiment import run_experiments
from bench.formats import all_formats
from bench.formats._build import Supplied
from bench.formats._read import Reader
from bench.model import Target
from bench.plan import plan
from bench.sources.native import NativeSource
from bench.testing import SilentProgress, make_run
from db.store import open_store

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def examples(page):
    """File → code of every `python` fence whose first line is a comment with the file's path."""
    found = {}
    for code in re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.M | re.S):
        first = code.split("\n", 1)[0]
        assert re.fullmatch(r"# [\w/]+\.py", first), f"{page.name}: a python fence begins with `# path.py`, not {first}"
        found[first.removeprefix("# ")] = code
    return found


EXAMPLES = {path: code for page in PAGES for path, code in examples(page).items()}
BENCHMARKS = [path for path, code in EXAMPLES.items() if "@benchmark" in code]


def write_examples(folder, *paths):
    for path in paths:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(EXAMPLES[path], encoding="utf-8")


def measured(source, *, device="bench.testing:FakeDevice", path=()):
    """Results of one launch of everything that the source finds."""
    found = source.discover(Target())
    assert not found.problems
    experiments = plan(found.benchmarks, (), profile="quick", target=Target(), seed=1, launches=1)
    results, _ = run_experiments(
        experiments, device=device, path=[*source.path, *path], progress=SilentProgress(),
        finished=lambda index, result: None,
    )  # fmt: skip
    return [arm for result in results for arm in result.results]


@pytest.mark.parametrize("path", BENCHMARKS)
def test_an_example_of_a_benchmark_runs(path, tmp_path):
    write_examples(tmp_path, path)
    arms = measured(NativeSource([str((tmp_path / path).parent)]))
    assert arms
    for arm in arms:
        if "device:" in EXAMPLES[path]:
            assert "needs the device" in arm.failure.message
        else:
            assert arm.failure is None, arm.failure
            assert arm.measurement("time")


def test_the_example_of_a_device_measures(tmp_path):
    quick = next(path for path in BENCHMARKS if path in examples(ROOT / "docs" / "quickstart.md"))
    write_examples(tmp_path, quick, "runners/devices/background.py")
    source = NativeSource([str((tmp_path / quick).parent)])
    device, folder = "background:Background", str(tmp_path / "runners" / "devices")
    assert all(arm.failure is None for arm in measured(source, device=device, path=[folder]))


def test_the_examples_of_a_report_and_a_verb_print(tmp_path, monkeypatch, capsys):
    """Dropping in the two files is enough: the verb is listed, and prints the report."""
    write_examples(tmp_path, "bench/reports/fastest.py", "bench/commands/fastest.py")
    for package, folder in ((bench.reports, "reports"), (bench.commands, "commands")):
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path / "bench" / folder)])
    database = tmp_path / "bench.db"
    with open_store(f"sqlite:///{database}") as store:
        store.add(make_run(speedups=(1.0, 2.0, 0.8)))
    try:
        assert run_cli(["fastest", "--database", str(database)]) == Exit.OK
        assert "fastest" in cli.list_commands(click.Context(cli))
    finally:
        for name in ("bench.reports.fastest", "bench.commands.fastest"):
            sys.modules.pop(name, None)
    assert re.match(r"demo\.net: e1, 1\.\d\d ms|demo\.net: e1, \d+ µs", capsys.readouterr().out)


def test_the_example_of_a_source_finds_and_measures(tmp_path, monkeypatch):
    write_examples(tmp_path, "bench/loaders/plain.py", "bench/sources/plain.py")
    loader = tmp_path / "bench" / "loaders" / "plain.py"
    session_half = EXAMPLES["bench/sources/plain.py"].replace("bench.loaders.plain", "plain")
    loader.write_text(loader.read_text().replace("bench.loaders.plain", "plain"))  # it is not inside bench here
    (tmp_path / "sums.py").write_text("def bench_sum():\n    return sum(range(1000))\n\n\ndef helper():\n    pass\n")
    monkeypatch.setenv("PYTHONPATH", str(loader.parent))
    names = {}
    exec(compile(session_half, "plain.py", "exec"), names)
    source = names["PlainSource"]([str(tmp_path / "sums.py")])
    (arm,) = measured(source)
    assert arm.failure is None, arm.failure
    assert arm.arm.variant.name == "sums.bench_sum"


def test_the_example_of_a_format_is_recognised_and_read(tmp_path, monkeypatch):
    """Dropping in the file is enough."""
    write_examples(tmp_path, "bench/formats/stopwatch.py")
    folder = str(tmp_path / "bench" / "formats")
    monkeypatch.setattr(bench.formats, "__path__", [*bench.formats.__path__, folder])
    file = tmp_path / "laps.json"
    file.write_text('{"stopwatch": "2.1", "sha": "abc", "laps": {"swim": {"ms": [31.5, 30.5], "pulse": [140]}}}')
    (reading,) = Reader(all_formats(), Supplied(machine="pool")).read([file])
    assert (reading.format, reading.run.quarantine) == ("stopwatch", ())
    ((_, result),) = reading.run.arms()
    assert result.measurement("time").launches == ((31.5e6, 30.5e6),)
    assert result.measurement("pulse").launches == ((140,),)


def test_the_example_of_a_page_shows(tmp_path, monkeypatch):
    from streamlit.testing.v1 import AppTest

    write_examples(tmp_path, "dashboard/views/commits.py")
    database = f"sqlite:///{tmp_path / 'bench.db'}"
    with open_store(database) as store:
        run = make_run()
        store.add(run)
    monkeypatch.setenv("BENCH_DATABASE", database)
    shown = AppTest.from_file(str(tmp_path / "dashboard" / "views" / "commits.py"), default_timeout=60).run()
    assert not shown.exception, shown.exception
    assert f"{run.key[:8]}: no commit" in shown.get("html")[0].proto.body


@pytest.mark.parametrize(
    ("path", "command", "says"),
    [
        ("benchmarks/ours.py", "import sys, asv_runner.discovery as d; d.list_benchmarks('benchmarks', sys.stdout)",
         '"name": "lookup.lookup.time_call"'),
        ("tests/test_speed.py", "import pytest; pytest.main(['-q', '-p', 'no:cacheprovider', '--benchmark-disable'])",
         "4 passed"),
    ],
)  # fmt: skip
def test_the_examples_of_bridges_show_a_suite_to_the_other_tool(tmp_path, path, command, says):
    write_examples(tmp_path, path)
    (tmp_path / path).with_name("__init__.py").touch()
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "lookup.py").write_text(EXAMPLES["mine/lookup.py"])
    done = subprocess.run([sys.executable, "-c", command], cwd=tmp_path, text=True, capture_output=True, check=False)
    assert says in done.stdout, done.stdout + done.stderr


def test_the_detector_finds_its_change():
    space = {}
    exec(EXAMPLES["bench/detectors/halves.py"], space)
    detector = space["HalvesDetector"](3.0)
    assert detector.changes(np.repeat([0.0, 5.0], 10)) == [10]
    assert detector.changes(np.zeros(20)) == detector.changes(np.zeros(0)) == []


def test_every_example_is_run_by_a_test():
    """A python fence that no test above runs would rot."""
    ran = {*BENCHMARKS, "runners/devices/background.py", "bench/reports/fastest.py", "bench/commands/fastest.py",
           "bench/loaders/plain.py", "bench/sources/plain.py", "dashboard/views/commits.py",
           "bench/detectors/halves.py", "bench/formats/stopwatch.py", "benchmarks/ours.py",
           "tests/test_speed.py"}  # fmt: skip
    assert set(EXAMPLES) == ran


def test_the_quickstart_example_is_one():
    assert any(path in examples(ROOT / "docs" / "quickstart.md") for path in BENCHMARKS)
