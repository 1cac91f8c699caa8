"""Formats of services, of inference tools and of instruction counters: what they make of tests/formats."""

from pathlib import Path

import pytest

from bench.formats import all_formats, format_named
from bench.formats._build import Supplied
from bench.formats._read import Reader, Reading, files_in
from bench.metrics import Better, Kind
from bench.model import FailureKind

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


# github-action-benchmark


def test_a_history_of_github_action_benchmark_is_a_run_an_entry_with_the_tools_statistic_and_direction():
    runs = runs_in("github-action-benchmark/data.js")
    assert [run.revision.commit[:4] for run in runs] == ["0a1b", "1b2c", "1b2c", "1b2c", "1b2c"]
    assert runs[0].revision.committed_at.isoformat() == "2026-01-01T00:00:00+00:00"
    assert runs[0].quarantine == ("machine", "tool version")
    assert {e.experiment.benchmark.suite for run in runs for e in run.experiments} == {"Rust", "Python"}
    assert values(arms(runs[1])["sort::small"]) == {"time_median": ((90,),)}
    assert arms(runs[1])["sort::gone"].failure.kind is FailureKind.UNMEASURED
    rate = metric(arms(runs[2])["test_sort.py::test_sort"], "throughput")
    assert (rate.unit, rate.better) == ("1/s", Better.HIGHER)
    assert values(arms(runs[3])["BenchmarkSort"]) == {"time_mean": ((300.5, 310),)}
    recall = arms(runs[4])["recall"]
    assert (values(recall), metric(recall, "value").better) == ({"value": ((0.95,),)}, Better.HIGHER)


def test_custom_results_of_github_action_benchmark_keep_their_units():
    (run,) = runs_in("github-action-benchmark/custom.json")
    found = arms(run)
    assert values(found["start"]) == {"time_result": ((31.5e6,),)}
    assert metric(found["bytes written"], "value").better is Better.HIGHER
    assert metric(found["objects"], "value").unit == "objects"
    assert run.quarantine == ("commit", "machine", "tool version")


# Otava


def test_otava_rows_are_runs_and_an_empty_cell_is_no_value():
    runs = runs_in("otava/local.sample.csv")
    assert [(r.revision.commit, r.revision.branch) for r in runs] == [("aaa0", "main"), ("aaa1", "feature-x")]
    assert runs[0].started_at.isoformat() == "2026-01-01T02:00:00+00:00"
    assert values(arms(runs[0])["local.sample"]) == {"throughput": ((1540,),), "p99": ((10.5,),)}
    assert values(arms(runs[1])["local.sample"]) == {"throughput": ((1380,),)}
    assert "neither its unit" in arms(runs[0])["local.sample"].notes["p99"]
    assert [values(arms(r)["semicolons"]) for r in runs_in("otava/semicolons.csv")][1] == {"metric1": ((8.5,),)}


def test_a_table_of_otava_without_commits_can_be_forced(tmp_path):
    (tmp_path / "x.csv").write_text("time,metric1\n1767225600,5\n")
    (found,) = Reader((format_named("otava"),), Supplied(), forced=True).read([tmp_path / "x.csv"])
    assert values(arms(found.run)["x"]) == {"metric1": ((5,),)}
    assert found.run.quarantine == ("commit", "machine", "tool version")


@pytest.mark.parametrize("text", ["time,commit\n1767225600,a\n", "time,commit,m\n1767225600,a,fast\n", "time,m\n1,2\n"])
def test_a_table_that_only_resembles_otavas_is_unknown(tmp_path, text):
    (tmp_path / "x.csv").write_text(text)
    (found,) = Reader(all_formats(), Supplied()).read([tmp_path / "x.csv"])
    assert found.foreign


# onnxruntime_perf_test


def test_onnxruntime_output_is_a_summary_under_the_files_name():
    (run,) = runs_in("onnxruntime-perf-test/squeeze.txt")
    found = arms(run)["squeeze[intra_op_num_threads=4]"]
    told = values(found)
    assert (told["time_mean"], told["time_p99"]) == (((2e6,),), ((3e6,),))
    assert (told["session_creation"], told["first_call"]) == (((0.25e9,),), ((12e6,),))
    assert told["peak_memory"] == ((36696064,),)
    assert metric(found, "inferences_per_second").better is Better.HIGHER
    assert found.notes["samples"] == "a summary of 100 requests"


def test_onnxruntime_requests_are_raw_samples_under_the_models_name():
    (run,) = runs_in("onnxruntime-perf-test/requests.csv")
    assert values(arms(run)["squeeze"])["time"] == ((1.9e6, 2e6, 1.8e6),)


# MLPerf


def test_mlperf_takes_model_machine_and_generator_from_what_lies_around_the_summary():
    _, run = runs_in("mlperf")
    found = arms(run)["resnet[scenario=Offline]"]
    assert next(iter(values(found).items())) == ("samples_per_second", ((1500.5,),))
    assert metric(found, "samples_per_second").better is Better.HIGHER
    assert values(found)["latency_p99.9"] == ((8990000,),)
    assert (run.machine.cpu, run.machine.physical_cores, run.machine.memory_gib) == ("Imaginary CPU 9000", 48, 512)
    assert [a.model for a in run.machine.accelerators] == ["Imaginary Accelerator"] * 2
    assert run.environment.packages == {"loadgen": "2.1 @ 0123456789"}
    assert (run.started_at.hour, run.quarantine) == (12, ("commit",))


def test_an_invalid_mlperf_result_is_a_failure_with_its_reasons_and_an_accuracy_run_is_none():
    invalid, valid = runs_in("mlperf")
    found = arms(invalid)["resnet[scenario=MultiStream]"]
    assert (found.failure.kind, arms(valid)["resnet[scenario=Offline]"].failure) == (FailureKind.WRONG, None)
    assert found.failure.message.endswith("not Performance constraints satisfied, not Min queries satisfied")
    assert "Reduce samples per query" in found.failure.detail
    assert values(found)["per_query_latency_p99"] == ((61000000,),)
    assert values(found)["per_sample_latency_p99"] == ((60000000,),)


def test_a_summary_of_mlperf_alone_goes_by_the_name_of_what_was_tested(tmp_path):
    text = (SAMPLES / "mlperf/results/box_x1/resnet/Offline/performance/run_1/mlperf_log_summary.txt").read_text()
    (tmp_path / "mlperf_log_summary.txt").write_text(text)
    (found,) = Reader(all_formats(), Supplied()).read(files_in(tmp_path))
    assert list(arms(found.run)) == ["BoxSUT[scenario=Offline]"]
    assert found.run.quarantine == ("commit", "machine", "tool version")
    (tmp_path / "mlperf_log_summary.txt").write_text(text.partition("Result is")[0])
    (found,) = Reader(all_formats(), Supplied()).read(files_in(tmp_path))
    assert "no line `Result is`" in found.reason


def test_a_terminator_of_a_string_in_c_at_the_end_of_a_line_does_not_make_a_log_unreadable(tmp_path):
    place = SAMPLES / "mlperf/results/box_x1/resnet/Offline/performance/run_1/mlperf_log_summary.txt"
    (tmp_path / "s.txt").write_bytes(place.read_bytes().replace(b"BoxSUT\n", b"BoxSUT\0\n"))
    (found,) = Reader(all_formats(), Supplied()).read([tmp_path / "s.txt"])
    assert list(arms(found.run)) == ["BoxSUT[scenario=Offline]"]


# LNT


def test_lnt_executions_are_launches_and_metrics_have_the_units_of_its_schemas():
    (run,) = runs_in("lnt/report2.json")
    found = arms(run)["Misc/sieve"]
    assert values(found) == {
        "time": ((0.25e9,), (0.26e9,), (0.27e9,)), "compile_time": ((1.5e9,),), "score": ((12.5,),),
        "peak_memory": ((1000000,),), "code_size": ((4096,),), "data_size": ((568,),),
    }  # fmt: skip
    assert metric(found, "score").better is Better.HIGHER
    assert (found.notes, found.failure) == ({"hash": "fedcba"}, None)
    assert arms(run)["Misc/broken"].failure.message == "LNT noted a failure: execution_status"
    assert (run.quarantine, run.machine.cpu, run.machine.tags) == ((), "Imaginary CPU 9000", ("buildbot-7",))
    assert (run.revision.commit[:4], run.environment.packages["clang"]) == ("0a1b", "19.1")


def test_an_old_lnt_report_is_read_as_a_new_one():
    (run,) = runs_in("lnt/report1.json")
    assert values(arms(run)["a/b.c"]) == {"time": ((1.25e9,), (1.5e9,)), "compile_time": ((0.5e9,),)}
    assert arms(run)["a/d"].failure.kind is FailureKind.RAISED
    assert (arms(run)["a/e"].failure, values(arms(run)["a/e"])) == (None, {"time": ((2e9,),)})
    assert (run.revision.commit, run.started_at.year, run.machine.cpu) == ("154331", 2016, "Imaginary CPU 80")


# PyTorch's benchmark database


def test_pytorch_rows_of_one_job_are_one_run_with_units_and_directions_from_the_metrics_names():
    job, phone = runs_in("pytorch-hud")
    found = arms(job)["llm.tiny[mode=inference,dtype=bfloat16,backend=compiled,device=cuda,is_dynamic=true]"]
    assert values(found) == {"latency": ((3.5e6, 3.25e6),), "token_per_sec": ((120.5,),)}
    assert (metric(found, "latency").unit, metric(found, "token_per_sec").better) == ("ns", Better.HIGHER)
    assert (job.machine.cpu, job.machine.memory_gib, job.machine.tags) == ("Imaginary CPU 9000", 64, ("linux.big",))
    assert [a.model for a in job.machine.accelerators] == ["Imaginary GPU"] * 2
    assert (job.revision.branch, job.started_at.year, job.quarantine) == ("main", 2026, ())
    assert job.environment.packages["team/kernels"] == "abc123"
    assert values(arms(phone)["mobile.edge[mode=inference,backend=npu]"]) == {"peak_mem_usage": ((333.5e6,),)}
    assert arms(phone)["mobile.sharp[mode=inference,backend=npu]"].failure.kind is FailureKind.UNMEASURED
    assert phone.quarantine == ("machine", "tool version")


# Gungraun, iai-callgrind and iai


def test_gungraun_summaries_of_one_tree_are_one_run_of_what_was_measured_now():
    (run,) = runs_in("gungraun/target")
    found = arms(run)["my_bench::group::sort[id=small]"]
    assert values(found) == {
        "Ir": ((264,),), "L1hits": ((341,),), "L1HitRate": ((99.5,),), "EstimatedCycles": ((551,),),
        "dhat.TotalBytes": ((12,),),
    }  # fmt: skip
    assert (metric(found, "dhat.TotalBytes").unit, metric(found, "L1HitRate").better) == ("B", Better.HIGHER)
    assert found.notes == {"details": "vec![3, 2, 1]"}
    assert values(arms(run)["my_bench::group::sort[id=old]"]) == {"Ir": ((500,),), "L1hits": ((700,),)}
    assert run.quarantine == ("commit", "machine", "tool version")


def test_gungraun_summaries_can_stand_one_a_line():
    (run,) = runs_in("gungraun/lines.jsonl")
    assert values(arms(run)["my_bench::group::merge"]) == {"Ir": ((42,),), "memcheck.Errors": ((0,),)}
    assert values(arms(run)["my_bench::group::sort"])["Ir"] == ((264,),)


def test_the_terminal_and_the_summary_of_gungraun_give_the_same_series_without_parts_and_comparisons():
    (run,) = runs_in("gungraun/text/gungraun.txt")
    found = arms(run)["my_bench::group::sort[id=small]"]
    assert values(found) == {
        "Ir": ((264,),), "L1hits": ((341,),), "EstimatedCycles": ((551,),), "dhat.TotalBytes": ((12,),),
    }  # fmt: skip
    assert found.notes == {"details": "vec![3, 2, 1]"}
    assert values(arms(run)["my_bench::group::merge"]) == {"Ir": ((42,),)}


def test_documentation_that_quotes_gungraun_is_none_of_its_results(tmp_path):
    text = (SAMPLES / "gungraun/text/gungraun.txt").read_text()
    (tmp_path / "README.md").write_text(f"# How\n\n```text\n{text}```\n")
    (found,) = Reader(all_formats(), Supplied()).read([tmp_path / "README.md"])
    assert found.foreign


def test_iai_names_events_otherwise_and_they_are_the_same():
    (run,) = runs_in("gungraun/text/iai.txt")
    assert values(arms(run)["bench_fibonacci_short"]) == {
        "Ir": ((1735,),), "L1hits": ((2364,),), "LLhits": ((1,),), "RamHits": ((1,),), "EstimatedCycles": ((2404,),),
    }  # fmt: skip
    assert len(arms(run)) == 2


# optimum-benchmark


@pytest.mark.parametrize("file", ["benchmark.json", "benchmark.csv"])
def test_optimum_benchmark_phases_are_benchmarks_and_memory_of_accelerators_is_bytes_whatever_its_name(file):
    (run,) = runs_in(f"optimum-benchmark/{file}")
    inner = "backend=pytorch,model=team/tiny,device=cuda,device_ids=0,torch_dtype=float16"
    shape = "batch_size=2,sequence_length=16,max_new_tokens=8"
    load = arms(run)[f"tiny_generation.load_model[{inner},{shape}]"]
    assert values(load) == {
        "time": ((1.5e9,),), "max_ram": ((1200.5e6,),), "max_global_vram": ((2048e6,),), "max_reserved": ((1500e6,),),
        "max_allocated": ((1400e6,),),
    }  # fmt: skip
    prefill = arms(run)[f"tiny_generation.prefill[{inner},{shape}]"]
    assert values(prefill)["time"] == ((0.25e9, 0.26e9, 0.27e9),)
    assert values(prefill)["energy_total"] == ((pytest.approx(15.12),),)
    assert metric(prefill, "energy_total").kind is Kind.ENERGY
    assert [metric(prefill, name).better for name in ("throughput", "efficiency")] == [Better.HIGHER] * 2
    assert [a.memory_bytes for a in run.machine.accelerators] == [80_000_000_000]
    assert (run.machine.cpu, run.machine.memory_gib) == ("Imaginary CPU 9000", 62)
    assert (run.quarantine, run.environment.packages["optimum-benchmark"]) == (("commit",), "0.6.0")


def test_a_report_of_optimum_benchmark_needs_its_configuration_beside_it(tmp_path):
    (run,) = runs_in("optimum-benchmark/separate")
    (found,) = arms(run).values()
    assert values(found)["time_mean"] == ((0.5e9,),)
    assert found.notes["samples"] == "the file holds a summary only"
    report = SAMPLES / "optimum-benchmark" / "separate" / "benchmark_report.json"
    (tmp_path / "r.json").write_text(report.read_text())
    (refused,) = Reader(all_formats(), Supplied()).read([tmp_path / "r.json"])
    assert "put benchmark_config.json beside it" in refused.reason
