"""The metrics that are taken when asked, from real workers, one of them under real valgrind."""

from dataclasses import replace

import pytest

from bench.experiment import run_experiments
from bench.gate import judge
from bench.model import Arm, Experiment, ExperimentResult, Target, Verdict
from bench.paired import GATE
from bench.plan import POLICIES, plan
from bench.sources.native import NativeSource
from bench.testing import SilentProgress
from bench.tradeoffs import tradeoffs

SUITE = '''
import os

from bench.api import Work, benchmark


def slower():
    return int(os.environ.get("MORE", "0"))


@benchmark(axes={"n": (3000, 6000)}, baseline={"n": 3000})
def sums(device, n):
    """Twice the numbers, and what a variable of the target adds."""
    return Work(run=lambda: sum(range(n + slower())))


@benchmark()
def marks(device):
    """Does itself what marks the end of a counted region."""
    return Work(run=lambda: os.getpgid(0))


@benchmark()
def fills(device):
    """A megabyte, and another one after the first is gone."""

    def run():
        for _ in range(2):
            bytearray(1_000_000)

    return Work(run=run)


@benchmark()
def once(device):
    """Its time is its only call."""
    return Work(run=lambda: None, once=True)
'''


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    folder = tmp_path_factory.mktemp("asked")
    (folder / "asked.py").write_text(SUITE)
    source = NativeSource([str(folder)])
    return source, source.discover(Target())


def measure(suite, selector, launches=1, **policy):
    source, found = suite
    experiments = plan(
        found.benchmarks, [selector], profile="quick", target=Target(), seed=1,
        policy=replace(POLICIES["quick"], launches=launches, **policy),
    )  # fmt: skip
    return run(source, experiments)


def run(source, experiments):
    (result,), _ = run_experiments(
        experiments, device="bench.testing:FakeDevice", path=source.path, progress=SilentProgress(),
        finished=lambda index, result: None,
    )  # fmt: skip
    return result


def test_a_call_of_microseconds_is_timed_alone_in_every_launch(suite):
    result = measure(suite, "asked.sums", launches=2)
    for arm in result.results:
        single = arm.measurement("single_call")
        assert arm.measurement("time").loops > 1
        assert single.loops == 1
        assert [len(row) for row in single.launches] == [len(single.launches[0])] * 2
        assert len(single.launches[0]) >= 100
    small, large = tradeoffs(result)
    assert small.estimates["p50"].value < large.estimates["p50"].value
    assert small.estimates["p50"].value <= small.estimates["p99"].value


def test_a_call_of_nanoseconds_has_no_tail_and_says_why(suite):
    result = measure(suite, "asked.marks")
    assert result.results[0].measurement("single_call") is None
    (summary,) = tradeoffs(result)
    assert "too short to be timed alone" in summary.absent["p99"]


def test_what_the_machine_has_no_counter_for_is_null_with_the_reason(suite):
    result = measure(suite, "asked.sums")
    for arm in result.results:
        energy = arm.measurement("energy")
        assert (energy is None) == ("energy" in arm.absent)
        assert energy is None or min(energy.launches[0]) >= 0


def test_the_peak_of_allocations_is_taken_when_asked_in_every_launch(suite):
    assert measure(suite, "asked.fills").results[0].measurement("allocation_peak") is None
    (arm,) = measure(suite, "asked.fills", launches=2, allocations=True).results
    rows = arm.measurement("allocation_peak").launches
    assert len(rows) == 2
    assert all(1_000_000 <= value < 1_100_000 for (value,) in rows)
    (once,) = measure(suite, "asked.once", allocations=True).results
    assert once.measurement("allocation_peak") is None
    assert once.absent["allocation_peak"].startswith("the call is made once in a process")


@pytest.mark.service("valgrind")
def test_instructions_repeat_to_the_last_one_and_a_hundredth_more_work_is_a_change(suite):
    source, found = suite
    benchmark = next(b for b in found.benchmarks if b.name == "asked.sums")
    variant = replace(benchmark.variants()[0], baseline=False)
    targets = [Target(label=label, variables={"MORE": more}) for label, more in (("a", "0"), ("b", "30"), ("c", "0"))]
    arms = tuple(Arm(variant=variant, target=target) for target in targets)
    policy = replace(GATE, launches=1, instructions=True)
    all_three = run(source, [Experiment(benchmark=benchmark, arms=arms, policy=policy, seed=1)])
    counts = [result.measurement("instructions").launches[0][0] for result in all_three.results]
    assert counts[0] == counts[2]
    assert 1.005 < counts[1] / counts[0] < 1.015
    for head, verdict in ((1, Verdict.REGRESSED), (2, Verdict.UNCHANGED)):
        pair = Experiment(benchmark=benchmark, arms=(arms[0], arms[head]), policy=policy, seed=1)
        results = (all_three.results[0], all_three.results[head])
        answer = judge(ExperimentResult(experiment=pair, results=results, launches=all_three.launches))
        assert next(c for c in answer.comparisons if c.metric.name == "instructions").verdict is verdict


@pytest.mark.service("valgrind")
def test_what_cannot_be_counted_says_why_and_is_measured_all_the_same(suite):
    (marks,) = measure(suite, "asked.marks", instructions=True).results
    assert marks.absent["instructions"].startswith("the work itself asks for its process group")
    assert marks.measurement("instructions") is None
    assert marks.measurement("time") is not None
