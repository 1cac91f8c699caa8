"""Real workers: what a suite does, the session survives."""

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bench.disturbance import causes
from bench.experiment import run_experiments
from bench.measure.session import ArmFailed, Session
from bench.metrics import Summary
from bench.model import FailureKind, Policy, Target, Verdict
from bench.paired import GATE, measure_pairs, plan_pairs
from bench.plan import plan
from bench.reports.text import TextReport
from bench.sources.native import NativeSource
from bench.testing import SilentProgress, make_run
from bench.tradeoffs import tradeoffs
from bench.wire import decode_run, encode_run

PLACE = str(Path(__file__).parents[1] / "suites")
FAKE = "bench.testing:FakeDevice"


@pytest.fixture(scope="module")
def source():
    source = NativeSource([PLACE])
    return source, source.discover(Target())


def measure(source, *selectors, launches=2, finished=lambda index, result: None, enough=None):
    native, found = source
    experiments = plan(found.benchmarks, selectors, profile="quick", target=Target(), seed=1, launches=launches)
    return run_experiments(
        experiments, device=FAKE, path=native.path, progress=SilentProgress(), finished=finished, enough=enough
    )


def failure_of(source, how):
    (result,), _ = measure(source, f"behaviour.bad[how={how}]", launches=1)
    assert result.results[0].failure is None, "the baseline must not suffer"
    return result.results[1].failure


def test_a_healthy_benchmark_gives_every_metric_and_a_paired_speedup(source):
    """Twice the additions cost about twice the time, whatever the machine is doing."""
    (result,), interrupted = measure(source, "behaviour.good", launches=7)
    assert not interrupted
    small, large = tradeoffs(result)
    assert set(small.metrics) == {
        "time", "throughput", "cpu_time", "first_call", "set_up", "peak_memory", "memory_growth", "size", "right",
        "error", "single_call", "p50", "p90", "p95", "p99",
    } | ({"energy"} - small.absent.keys())  # fmt: skip
    change = large.comparisons["time"]
    assert 1.5 < change.change.value < 2.7
    assert change.change.low < change.change.value < change.change.high
    assert small.estimates["right"].value == 0.9
    assert small.metrics["right"].summary is Summary.ITEMS
    assert small.notes == {"device": "fake"}
    assert large.comparisons["size"].verdict is Verdict.REGRESSED


def test_the_first_of_very_long_calls_is_the_sample(source, monkeypatch, tmp_path):
    monkeypatch.setenv("TEST_MARKER", str(tmp_path / "calls"))
    (result,), _ = measure(source, "behaviour.lasts", launches=1)
    (arm,) = result.results
    assert (tmp_path / "calls").read_text() == "2 calls\n1 calls\n"
    assert arm.measurement("time").launches == arm.measurement("first_call").launches
    (seen,) = result.launches[0].rounds
    assert seen.wall_ns >= arm.measurement("time").launches[0][0]
    assert seen.voluntary_switches > 0  # it slept


def test_a_budget_never_ends_before_there_is_an_interval(source):
    native, found = source
    policy = Policy(launches=9, budget_s=1e-6)
    experiments = plan(
        found.benchmarks, ["behaviour.good"], profile="quick", target=Target(), seed=1, policy=policy
    )  # fmt: skip
    (result,), _ = run_experiments(
        experiments, device=FAKE, path=native.path, progress=SilentProgress(), finished=lambda index, result: None
    )
    assert len(result.launches) == 3


def test_launches_are_pairs_in_abba_order_with_shared_seeds_and_alternating_cores(source):
    (result,), _ = measure(source, "behaviour.good", launches=2)
    for launch in result.launches:
        by_round = {}
        for seen in launch.rounds:
            by_round.setdefault(seen.round, []).append(seen.arm)
        assert by_round[1] == by_round[0][::-1]
        assert by_round[3] == by_round[2][::-1]
    assert result.launches[0].hash_seed != result.launches[1].hash_seed
    if len(os.sched_getaffinity(0)) > 1:
        assert result.launches[0].core != result.launches[1].core
    policy = Policy()
    time_rows = result.results[0].measurement("time").launches
    one, two = [len(row) for row in time_rows]
    assert one == two  # frozen after calibration
    assert policy.rounds <= one <= policy.rounds * policy.samples


def test_what_is_judged_after_a_launch_is_what_is_kept_of_it(source):
    """One result a launch: what a look decides on is on disk."""
    judged, kept = [], []
    measure(
        source, "behaviour.good[n=2000]", launches=3, finished=lambda index, result: kept.append(result),
        enough=lambda result: judged.append(result) or len(result.launches) == 2,
    )  # fmt: skip
    assert [len(result.launches) for result in judged] == [0, 1, 2]  # the first after the rehearsal
    assert [id(result) for result in kept] == [id(result) for result in judged[1:]]


def test_the_same_seed_repeats_order_and_hash_seeds(source):
    (one,), _ = measure(source, "behaviour.good", launches=2)
    (two,), _ = measure(source, "behaviour.good", launches=2)
    assert [(x.order, x.hash_seed) for x in one.launches] == [(x.order, x.hash_seed) for x in two.launches]


def test_arms_of_a_launch_draw_the_same_random_data_and_launches_do_not(source):
    """A suite that seeds nothing would compare two different inputs."""
    (result,), _ = measure(source, "behaviour.draws", launches=2)
    one, two = (r.measurement("drawn").launches for r in result.results)
    assert one == two
    assert one[0] != one[1]


@pytest.mark.parametrize(
    ("how", "kind", "says"),
    [
        ("raises", FailureKind.RAISED, "ZeroDivisionError: division by zero"),
        ("exits", FailureKind.RAISED, "called sys.exit(3)"),
        ("ends", FailureKind.DIED, "ended by itself with exit code 9"),
        ("killed", FailureKind.DIED, "was killed by SIGKILL"),
        ("hangs", FailureKind.TIMED_OUT, "no answer within 2 s; it was killed"),
        ("forks", FailureKind.RAISED, "forks and lets the child return"),
        ("memory", FailureKind.RAISED, "ran out of memory"),
        ("skips", FailureKind.SKIPPED, "needs a thing"),
        ("wrong", FailureKind.WRONG, "the answer is wrong"),
        ("wrong_says_why", FailureKind.WRONG, "cosine 0.31 is under 0.95"),
        ("no_work", FailureKind.RAISED, "must return bench.api.Work, not int"),
        ("bad_report", FailureKind.RAISED, "undeclared"),
    ],
)
def test_whatever_a_variant_does_it_becomes_a_failure_of_that_variant_alone(source, how, kind, says):
    failure = failure_of(source, how)
    assert failure.kind is kind
    assert says in failure.message
    assert "\n" not in failure.message


def test_a_failure_keeps_the_end_of_the_traceback(source):
    assert "1 / 0" in failure_of(source, "raises").detail


def test_timed_code_may_print_whatever_it_likes(source):
    (result,), _ = measure(source, "behaviour.prints", launches=2)
    assert [r.failure for r in result.results] == [None, None, None]


def test_a_death_in_the_middle_keeps_the_others_going(source):
    (result,), _ = measure(source, "behaviour.dies_later", launches=2)
    alive, dead = result.results
    assert dead.failure.kind is FailureKind.DIED
    assert len(alive.measurement("time").launches) == 2


def test_an_interruption_keeps_finished_launches_and_marks_the_rest(source):
    def stop(index, result):
        if index == 0:
            raise KeyboardInterrupt

    (first, second), interrupted = measure(source, "behaviour.good", "behaviour.prints", launches=3, finished=stop)
    assert interrupted
    assert first.results[0].failure is None
    assert len(first.launches) == 1
    assert second.results[0].failure.kind is FailureKind.UNMEASURED


def gone(pid):
    """Not running any more; a zombie counts as gone."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_children_of_a_suite_end_with_their_worker(source, tmp_path, monkeypatch):
    monkeypatch.setenv("TEST_MARKER", str(tmp_path / "pids"))
    (result,), _ = measure(source, "behaviour.leaves_children", launches=1)
    assert result.results[0].failure is None
    pids = (tmp_path / "pids").read_text().split()
    assert len(pids) == 4  # rehearsal and one launch, worker and child each
    assert all(gone(pid) for pid in pids)


def test_a_killed_session_leaves_no_orphan(tmp_path):
    """kill -9 of the parent: workers and what their suites started die too."""
    marker = tmp_path / "pids"
    code = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from dataclasses import replace

from bench.disturbance import causes
from bench.experiment import run_experiments
from bench.model import Target
from bench.paired import GATE, measure_pairs, plan_pairs
from bench.plan import plan
from bench.reports.text import TextReport
from bench.sources.native import NativeSource
from bench.testing import SilentProgress, make_run
native = NativeSource([{PLACE!r}]); found = native.discover(Target())
experiments = plan(found.benchmarks, ["behaviour.leaves_children"], profile="quick", target=Target(), seed=1)
run_experiments(experiments, device={FAKE!r}, path=native.path, progress=SilentProgress(), finished=lambda i, r: None)
"""
    parent = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "TEST_MARKER": str(marker)})
    for _ in range(200):
        if marker.exists() and len(marker.read_text().split()) >= 4:
            break
        time.sleep(0.05)
    parent.kill()
    parent.wait()
    pids = marker.read_text().split()
    assert len(pids) >= 4
    assert all(gone(pid) for pid in pids)


def write(folder, name, text):
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(text)


GOOD = "from bench.api import *\n@benchmark()\ndef fine(device):\n    'Fine.'\n    return Work(run=int)\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import nothing_of_that_name\n", "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
        ("def broken(:\n", "line 1: invalid syntax"),
        ("raise SystemExit(2)\n", "calls sys.exit(2) when it is imported"),
        ("import os; os._exit(5)\n", "ended by itself with exit code 5"),
        ("import os\nif os.fork() == 0: raise RuntimeError('child')\n", None),
        ("from bench.api import *\n@benchmark(axes={'n': (1,)})\ndef f(device): ...\n", "must take (device, n)"),
        (GOOD + "other = fine\n", None),
    ],
)
def test_a_broken_suite_is_a_problem_and_the_rest_is_found(tmp_path, text, says):
    write(tmp_path / "s", "a_broken", text)
    write(tmp_path / "s", "b_good", GOOD)
    found = NativeSource([str(tmp_path / "s")]).discover(Target())
    assert "b_good.fine" in [b.name for b in found.benchmarks]
    if says is None:
        return
    (problem,) = found.problems
    assert says in problem.message
    assert problem.message.startswith("suite a_broken: ")


def test_a_suite_that_prints_at_import_is_no_problem(tmp_path):
    write(tmp_path / "s", "loud", "print('x' * 100000)\n" + GOOD)
    found = NativeSource([str(tmp_path / "s")]).discover(Target())
    assert [b.name for b in found.benchmarks] == ["loud.fine"]
    assert found.problems == ()


def test_two_benchmarks_of_one_name_are_told_apart_loudly(tmp_path):
    write(tmp_path / "one", "same", GOOD)
    (tmp_path / "two").mkdir()
    write(tmp_path / "two", "same", GOOD)
    (tmp_path / "two" / "__init__.py").touch()
    found = NativeSource([str(tmp_path / "one"), str(tmp_path / "two")]).discover(Target())
    assert len(found.benchmarks) == 1
    assert "rename one" in found.problems[0].message


def test_a_place_that_is_not_there_is_a_problem(tmp_path):
    found = NativeSource([str(tmp_path / "none")]).discover(Target())
    assert "neither a folder nor an importable package" in found.problems[0].message


def test_an_interpreter_that_is_not_there_is_an_environment_error():
    from bench.errors import Exit, MeasureError

    with Session() as session, pytest.raises(MeasureError, match="cannot be started") as caught:
        session.start(Target(python="/nowhere/python"), threads=1, hash_seed=0)
    assert caught.value.exit_code is Exit.ENVIRONMENT


def test_a_missing_package_is_skipped_with_its_name(tmp_path):
    text = GOOD.replace("@benchmark()", "@benchmark(requires=('no_such_package',))")
    write(tmp_path / "s", "needy", text)
    native = NativeSource([str(tmp_path / "s")])
    (result,), _ = measure((native, native.discover(Target())), launches=1)
    assert result.results[0].failure.kind is FailureKind.SKIPPED
    assert "no_such_package" in result.results[0].failure.message


def test_a_worker_that_is_asked_after_its_death_answers_with_a_failure():
    with Session() as session:
        worker = session.start(Target(), threads=1, hash_seed=0)
        os.kill(worker.pid, 9)
        with pytest.raises(ArmFailed, match="SIGKILL"):
            worker.ask("memory", 5.0)


def test_a_benchmark_whose_device_is_not_here_is_skipped(tmp_path):
    """Without asking for a device: the benchmark's own is looked for."""
    code = (
        "from bench.api import *\n@benchmark(requires=('device:cuda:99',))\ndef gpu(device):\n    'None has 100.'\n"
        "    return Work(run=int)\n@benchmark(requires=('device:null',))\ndef nothing(device):\n"
        "    'Our own cost.'\n    return Work(run=int, notes={'device': device.name})\n"
    )
    (tmp_path / "gpus.py").write_text(code, encoding="utf-8")
    source = NativeSource([str(tmp_path)])
    found = source.discover(Target())
    experiments = plan(found.benchmarks, (), profile="quick", target=Target(), seed=1, launches=1)
    results, _ = run_experiments(
        experiments, path=source.path, progress=SilentProgress(), finished=lambda index, result: None
    )
    gpu, nothing = (result.results[0] for result in results)
    assert (gpu.arm.target.device, gpu.failure.kind) == ("cuda:99", FailureKind.SKIPPED)
    assert gpu.failure.message.startswith("needs the device cuda:99: ")
    assert (nothing.arm.target.device, nothing.notes, nothing.failure) == ("null", {"device": "null"}, None)


EMULATOR = """
from bench.api import *

@benchmark(axes={"place": ("cpu", "chip")}, baseline={"place": "cpu"},
           metrics=(Metric("right", unit="1", better=HIGHER), Metric("cycles", unit="cycles", better=LOWER,
                                                                     kind="count")))
def net(device, place):
    "Does the chip agree?"
    calls = []
    def run():
        calls.append(1)
        assert place == "cpu" or len(calls) == 1, "an emulator is slow: it is asked once"
        return len(calls)
    return Work(run=run, report=lambda _: {"right": Items([1, 1, 0]), "cycles": 7}, size_bytes=5,
                kind=None if place == "cpu" else "emulated")

@benchmark(metrics=(Metric("cycles", unit="cycles", better=LOWER, kind="count"),))
def compiled(device):
    "How many cycles?"
    import os
    return Work(run=int, report=lambda _: {"cycles": 100 + int(os.environ.get("EXTRA", 0))}, kind="estimated")
"""


@pytest.fixture(scope="module")
def emulator(tmp_path_factory):
    folder = tmp_path_factory.mktemp("emulator")
    (folder / "chip.py").write_text(EMULATOR, encoding="utf-8")
    source = NativeSource([str(folder)])
    return source, source.discover(Target())


def test_what_is_emulated_has_answers_and_no_time(emulator):
    results, _ = measure(emulator, "chip.net", launches=3)
    cpu, chip = results[0].results
    assert len(results[0].launches) == 3
    assert cpu.measurement("time")
    assert chip.failure is None
    assert {m.metric.name for m in chip.measurements} == {"right", "cycles", "size"}
    assert chip.notes["kind"] == "emulated"
    assert chip.absent == {"time": "emulated: a time would be that of the emulator"}
    _, other = tradeoffs(results[0])
    assert set(other.comparisons) == {"right", "cycles", "size"}, "compared in what it has"
    assert "emulated: a time would be that of the emulator" in TextReport().run(
        replace(make_run(), experiments=results)
    )


def test_an_estimate_is_judged_exactly_and_never_launched(emulator):
    native, found = emulator
    compiled = [b for b in found.benchmarks if b.name == "chip.compiled"]
    for extra, verdict in (("0", Verdict.UNCHANGED), ("1", Verdict.REGRESSED)):
        experiments = plan_pairs(
            compiled, [compiled[0].variants()], Target(), Target(label="head", variables={"EXTRA": extra}),
            policy=GATE, seed=1,
        )  # fmt: skip
        found = measure_pairs(experiments, path=native.path, progress=SilentProgress(), keep=lambda index, result: None)
        assert (found.comparisons[0].verdict, found.comparisons[0].launches) == (verdict, 0)
        assert len(found.results) == 1, "an exact metric is not confirmed"


METERED = """
class Metered:
    name, kind = "metered", "real"
    def __init__(self, threads=1):
        self.threads, self.used = threads, 0
    def begin(self):
        self.used += 5
    def synchronize(self):
        pass
    def elapsed_ns(self):
        return 4_000
    def energy_uj(self):
        return self.used
    def conditions(self):
        return {"clock_mhz": 1980, "throttled": ("power cap",), "foreign": 2}
"""


def test_a_device_with_marks_and_sensors_tells_its_own_time_energy_and_conditions(source, tmp_path):
    (tmp_path / "metered.py").write_text(METERED, encoding="utf-8")
    native, found = source
    experiments = plan(
        found.benchmarks, ["behaviour.good[n=2000]"], profile="quick", target=Target(), seed=1, launches=2
    )
    results, _ = run_experiments(
        experiments, device="metered:Metered", path=[*native.path, str(tmp_path)], progress=SilentProgress(),
        finished=lambda index, result: None,
    )  # fmt: skip
    arm = results[0].results[0]
    time, own, energy = (arm.measurement(name) for name in ("time", "device_time", "device_energy"))
    assert [len(row) for row in own.launches] == [len(row) for row in time.launches]
    assert own.loops == time.loops
    assert set(own.launches[0]) == {4_000}
    rounds = len(results[0].launches[0].rounds)
    per_round = len(time.launches[0]) // (rounds // len(results[0].results))
    assert energy.launches[0][0] == 5 * per_round
    assert energy.loops == time.loops * per_round
    seen = results[0].launches[0].rounds[0].device
    assert (seen.clock_mhz, seen.throttled, seen.foreign, seen.power_w) == (1980, ("power cap",), 2, None)
    assert "the device held its clock down (power cap)" in causes(results[0])
    assert "up to 2 other processes on the device" in causes(results[0])
    run = replace(make_run(), experiments=results)
    assert decode_run(encode_run(run)) == run
