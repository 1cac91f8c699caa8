"""What each format makes of its samples in tests/formats: values, units, directions, and nothing made up."""

from pathlib import Path

import pytest

from bench.formats import all_formats
from bench.formats._build import Supplied
from bench.formats._read import Reader, Reading, files_in
from bench.metrics import Better, Kind, Summary
from bench.model import FailureKind
from bench.testing import make_run

SAMPLES = Path(__file__).parents[1] / "formats"


def runs_in(place):
    """Runs of a file or a folder of samples, in the order of its files; nothing is refused."""
    path = SAMPLES / place
    found = list(Reader(all_formats(), Supplied()).read(files_in(path) if path.is_dir() else [path]))
    assert all(isinstance(reading, Reading) for reading in found), found
    return [reading.run for reading in found]


def arms(run):
    return {result.arm.variant.name: result for _, result in run.arms()}


def values(result):
    """Metric → launches."""
    return {m.metric.name: m.launches for m in result.measurements}


def metric(result, name):
    return result.measurement(name).metric


# asv


def test_asv_rows_become_raw_samples_the_stated_median_and_their_spread():
    (run,) = [run for run in runs_in("asv") if run.machine.logical_cores == 8]
    found = arms(run)["lists.Append.time_append[size=10]"]
    assert values(found) == {"time": ((1.9e3, 2e3, 2e3, 2.1e3),), "time_median": ((2e3,),)}
    assert found.notes["time_median"] == "quartiles 1.9e-06–2.1e-06 s, 4 × 100 calls"
    assert values(arms(run)["lists.peakmem_append"]) == {"peak_memory": ((30000128,),)}


def test_asv_failures_and_skips_are_results():
    (run,) = [run for run in runs_in("asv") if run.machine.logical_cores == 8]
    assert arms(run)["lists.Append.time_append[size=100]"].failure.kind is FailureKind.SKIPPED
    assert arms(run)["lists.track_ratio"].failure.kind is FailureKind.RAISED


def test_asv_files_tell_commit_environment_machine_and_version():
    (run,) = [run for run in runs_in("asv") if run.machine.logical_cores == 8]
    assert run.quarantine == ()
    assert (run.revision.commit[:8], run.revision.committed_at.year) == ("0a1b2c3d", 2026)
    assert (run.started_at < run.finished_at, run.environment.python) == (True, "3.12")
    assert (run.machine.cpu, run.machine.memory_gib) == ("Imaginary CPU 9000", 16)
    target = run.experiments[0].experiment.arms[0].target
    assert target.requirements == ("python==3.12", "numpy==2.0")
    assert [e.experiment.benchmark.version for e in run.experiments] == ["aa11", "bb22", "cc33"]
    assert {e.experiment.benchmark.suite for e in run.experiments} == {"lists"}


def test_asv_version_1_is_read_with_what_it_states_and_no_more():
    (run,) = [run for run in runs_in("asv") if run.machine.logical_cores == 2]
    assert (run.machine.cpu, run.machine.memory_gib) == ("Imaginary CPU 80", 8)
    found = arms(run)
    assert values(found["lists.Append.time_append[size=10]"]) == {"time_median": ((3e3,),)}
    assert found["lists.Append.time_append[size=100]"].failure.kind is FailureKind.RAISED
    assert values(found["lists.track_ratio"]) == {"value": ((1500.0,),)}
    assert metric(found["lists.track_ratio"], "value").unit == "B"
    assert values(found["lists.old.time_gone"]) == {"time_result": ((4e3,),)}


def test_an_asv_file_in_another_machines_folder_is_refused(tmp_path):
    text = next((SAMPLES / "asv" / "hamster").glob("0a*")).read_text()
    (tmp_path / "result.json").write_text(text.replace('"machine": "hamster"', '"machine": "mole"'))
    (tmp_path / "machine.json").write_text((SAMPLES / "asv" / "hamster" / "machine.json").read_text())
    refused, *rest = Reader(all_formats(), Supplied()).read(files_in(tmp_path))
    assert "measured on 'mole', but lies in the folder of 'hamster'" in f"{refused} {rest}"


# pytest-benchmark


def test_pytest_benchmark_keeps_raw_data_and_names_tests_as_our_source_does():
    (run,) = runs_in("pytest-benchmark/0001_new.json")
    found = arms(run)["tests.perf.test_sort.TestSort.test_sort[case=list-10]"]
    assert values(found) == {"time": ((1e3, 1.5e3, 2e3),)}
    assert found.notes == {"group": "sorts", "swaps": "12"}
    assert run.quarantine == ()
    assert run.revision.committed_at.isoformat() == "2025-12-31T23:00:00+00:00"
    assert (run.machine.cpu, run.environment.system) == ("Imaginary CPU 9000", "Linux 6.1.0")


def test_pytest_benchmark_without_data_is_a_median_in_the_clock_that_was_used():
    (run,) = runs_in("pytest-benchmark/0001_new.json")
    found = arms(run)["tests.perf.test_sort.test_cpu"]
    assert values(found) == {"cpu_time_median": ((1.25e6,),)}
    assert "no samples in the file" in found.notes["cpu_time_median"]


def test_pytest_benchmark_before_processors_and_outside_version_control_is_quarantined():
    (run,) = runs_in("pytest-benchmark/0001_old.json")
    assert run.quarantine == ("commit", "machine")
    assert values(arms(run)["tests.test_normal.test_fast[case=0]"]) == {"time_median": ((225.0,),)}


# pyperf


def test_pyperf_processes_are_launches_without_calibration_and_warm_ups():
    run = runs_in("pyperf")[1]
    found = arms(run)["json_dumps"]
    assert values(found) == {
        "time": ((0.25e9, 0.2e9), (0.26e9, 0.21e9)), "peak_memory": ((14000128,), (14000256,)),
    }  # fmt: skip
    assert values(arms(run)["memory"]) == {"memory": ((7360512,),)}
    assert (run.quarantine, run.conditions.load_before, run.machine.architecture) == (("commit",), 0.5, "x86_64")
    assert run.environment.packages == {"pyperf": "2.7.0", "pyperformance": "1.11.0"}


def test_perf_of_before_the_name_pyperf_is_read():
    run = runs_in("pyperf")[0]
    assert values(arms(run)["telco"]) == {"time": ((0.02e9, 0.03e9),)}


# Google Benchmark


def test_google_benchmark_repetitions_are_samples_and_their_aggregates_are_left_out():
    (run,) = runs_in("google-benchmark/output.json")
    found = arms(run)["BM_Sort/8"]
    assert values(found) == {
        "time": ((1500.0, 1750.0),), "cpu_time": ((1250.0, 1500.0),), "items_per_second": ((4e6, 3e6),),
        "swaps": ((3, 3),),
    }  # fmt: skip
    rate = metric(found, "items_per_second")
    assert (rate.better, rate.kind, rate.unit) == (Better.HIGHER, Kind.THROUGHPUT, "1/s")
    assert metric(found, "swaps").better is Better.LOWER


def test_google_benchmark_aggregates_alone_are_metrics_of_their_own():
    (run,) = runs_in("google-benchmark/output.json")
    assert values(arms(run)["BM_Only"]) == {"time_median": ((5e6,),), "cpu_time_median": ((4e6,),)}
    assert arms(run)["BM_Broken"].failure.message == "no such file"
    assert run.quarantine == ("commit", "machine")


def test_google_benchmark_before_run_types_is_read_by_names():
    (run,) = runs_in("google-benchmark/schema0.json")
    assert values(arms(run)["BM_Old"]) == {"time": ((30, 32),), "cpu_time": ((29, 31),)}
    assert run.quarantine == ("commit", "machine", "tool version")


# hyperfine, JMH, criterion, Go


def test_hyperfine_runs_are_launches_and_a_failed_command_is_a_failure():
    (run,) = runs_in("hyperfine")
    found = arms(run)["sleep 0.1[threads=2]"]
    assert values(found) == {
        "time": ((0.1e9,), (0.11e9,), (0.12e9,)), "peak_memory": ((2000000,), (2000128,), (2000256,)),
        "cpu_time_mean": ((3e6,),),
    }  # fmt: skip
    assert arms(run)["false"].failure.message == "the command ended with exit code 1"
    assert values(arms(run)["false"])["time_mean"] == ((0.01e9,),)


def test_the_mode_of_jmh_says_which_way_is_better():
    (run,) = runs_in("jmh")
    fast, slow = arms(run)["demo.Sort.quick[size=100]"], arms(run)["demo.Sort.quick[size=100,threads=4]"]
    assert values(fast) == {"throughput": ((4e3, 5e3), (5e3, 6e3)), "gc.alloc.rate.norm": ((24.0, 24.0), (24.0, 24.0))}
    assert metric(fast, "throughput").better is Better.HIGHER
    assert metric(fast, "gc.alloc.rate.norm").better is Better.LOWER
    assert values(slow) == {"time": ((2e3,),)}
    assert metric(slow, "time").better is Better.LOWER
    assert run.environment.packages == {"jdk": "17.0.18", "jmh": "1.37"}


def test_a_histogram_of_jmh_is_not_taken_for_samples():
    (run,) = runs_in("jmh")
    assert values(arms(run)["demo.Sort.sampled"]) == {
        "time_mean": ((3e6,),), "time_p50": ((2.5e6,),), "time_p99": ((9e6,),),
    }  # fmt: skip


def test_a_criterion_folder_is_one_run_of_what_is_new():
    run = runs_in("criterion")[-1]
    assert values(arms(run)["fib[function=loop,value=20]"]) == {"time": ((100.0, 110.0),)}
    assert arms(run)["fib[function=loop,value=20]"].items == 20


def test_two_benchmarks_of_a_criterion_folder_are_one_run(tmp_path):
    for value in ("20", "30"):
        folder = tmp_path / "criterion" / "fib" / "loop" / value / "new"
        folder.mkdir(parents=True)
        for name in ("benchmark.json", "sample.json"):
            text = (SAMPLES / "criterion" / "fib" / "loop" / "20" / "new" / name).read_text()
            (folder / name).write_text(text.replace("/20", f"/{value}").replace('"20"', f'"{value}"'))
    (found,) = Reader(all_formats(), Supplied()).read(files_in(tmp_path))
    assert len(found.files) == 2
    assert list(arms(found.run)) == ["fib[function=loop,value=20]", "fib[function=loop,value=30]"]


def test_criterion_without_samples_is_the_estimated_median(tmp_path):
    for name in ("benchmark.json", "estimates.json"):
        source = SAMPLES / "criterion" / "fib" / "loop" / "20" / "base" / name
        (tmp_path / name).write_text(source.read_text())
    (found,) = Reader(all_formats(), Supplied()).read(files_in(tmp_path))
    assert values(arms(found.run)["fib[function=loop,value=20]"]) == {"time_median": ((105.0,),)}


def test_messages_of_cargo_criterion_are_read_in_their_unit():
    run = runs_in("criterion/messages.json")[0]
    assert values(arms(run)["norm"]) == {"time": ((100.0, 110.0),)}


def test_go_lines_are_samples_in_the_package_under_the_configuration_of_their_place():
    first, second = runs_in("go-bench/output.txt")
    assert first.quarantine == second.quarantine == ()
    assert (first.revision.commit, second.revision.commit) == ("0a1b2c3d", "11111111")
    assert first.environment.packages == {"go": "go1.24.1"}
    found = arms(first)["example.test/sorts.Sort/stable[size=10,gomaxprocs=8]"]
    assert values(found) == {
        "time": ((44.5, 47.5),), "bandwidth": ((336.5e6, 317.5e6),), "allocated": ((16, 16),),
        "allocations": ((2, 2),), "keys": ((7,),),
    }  # fmt: skip
    keys = metric(found, "keys")
    assert (keys.better, keys.summary) == (Better.HIGHER, Summary.EXACT)
    assert arms(first)["example.test/sorts.Huge"].failure.kind is FailureKind.SKIPPED
    assert list(arms(second)) == ["example.test/maps.Get[gomaxprocs=8]"]


def test_go_events_are_put_together_again():
    (run,) = runs_in("go-bench/events.json")
    assert values(arms(run)["example.test/sorts.Sort[gomaxprocs=8]"]) == {"time": ((12.5,),)}


# Our own


def test_our_own_document_says_everything():
    (run,) = runs_in("json")
    found = arms(run)["serving.chat[batch=4,quantized=true]"]
    assert values(found) == {"time": ((1.5e6, 1.6e6), (1.7e6,)), "tokens": ((120,),), "accuracy": ((0.9, 0.91),)}
    assert metric(found, "accuracy").kind is Kind.ACCURACY
    assert (run.quarantine, run.machine.memory_gib, found.items) == ((), 64, 4.0)
    assert run.machine.accelerators[0].model == "Imaginary GPU"
    assert arms(run)["serving.long"].failure.message == "out of memory"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (('"commit"', '"comit"'), "unknown key 'comit'"),
        (('"lower"', '"faster"'), "better 'faster'; it is lower or higher"),
        (('"version": 1', '"version": 2'), "version 2 of bench-results"),
        (('"value": 120', '"value": 120, "samples": [1]'), "value and samples of tokens"),
        (('"kind": "accuracy"', '"kind": "truth"'), "of the kind 'truth'"),
        (('"logical_cores": 8', '"logical_cores": "8"'), "machine is not a valid Machine"),
        (('"memory_gib": 64', '"ram": 64'), "unknown key 'ram' in machine"),
    ],
)
def test_a_mistake_in_our_own_document_is_named(tmp_path, change, reason):
    file = tmp_path / "results.json"
    file.write_text((SAMPLES / "json" / "results.json").read_text().replace(*change, 1))
    (found,) = Reader(all_formats(), Supplied()).read([file])
    assert reason in found.reason


def test_a_table_is_grouped_into_runs_variants_and_launches():
    first, second = runs_in("csv")
    found = arms(first)["serving.chat[batch=4]"]
    assert values(found) == {"time": ((1.5e6, 1.6e6), (1.7e6,)), "tokens": ((120,),)}
    assert metric(found, "tokens").better is Better.HIGHER
    assert (first.revision.commit, second.revision.commit) == ("0a1b2c3d", "11111111")
    assert first.quarantine == ()


def test_a_table_with_a_broken_row_says_which(tmp_path):
    file = tmp_path / "results.csv"
    file.write_text("benchmark,metric,unit,better,value\na,time,ms,lower,1\na,time,ms\n")
    (found,) = Reader(all_formats(), Supplied()).read([file])
    assert found.reason == "has 3 cells for 5 columns in line 3"


def test_a_cell_may_hold_a_line_break(tmp_path):
    file = tmp_path / "results.csv"
    file.write_text('benchmark,metric,unit,better,value\n"a\nb",time,ms,lower,1\n')
    (found,) = Reader(all_formats(), Supplied()).read([file])
    assert list(arms(found.run)) == ["a\nb"]


def test_exported_runs_come_back_as_they_were(tmp_path):
    from bench.wire import encode_run

    runs = [make_run(seed=1), make_run(seed=2)]
    file = tmp_path / "runs.json"
    file.write_bytes(b"\n".join(map(encode_run, runs)))
    assert [reading.run for reading in Reader(all_formats(), Supplied()).read([file])] == runs


def test_one_hostname_with_two_processors_is_two_machines(tmp_path):
    text = (SAMPLES / "pytest-benchmark" / "0001_new.json").read_text()
    for name, cpu in (("one", "Imaginary CPU 9000"), ("two", "Imaginary CPU 80")):
        (tmp_path / f"{name}.json").write_text(text.replace("Imaginary CPU 9000", cpu))
    found = [reading.run.machine for reading in Reader(all_formats(), Supplied()).read(files_in(tmp_path))]
    assert [machine.cpu for machine in found] == ["Imaginary CPU 9000", "Imaginary CPU 80"]
    assert len({machine.fingerprint for machine in found}) == 2
